package model

import (
	"strings"
	"testing"
)

// follow goes through a scenario by a script, and then explores all that may come after it: what is
// too far away for a search from the beginning. A line of the script is one event: the first whose
// description has all the words between the line's signs &. Lines that begin with # are remarks.
// Where an event does not come the test fails, and tells which may.
func follow(t *testing.T, s Scenario, script string, limit int) Result {
	t.Helper()
	e := newExplorer(&s)
	now := e.root()
	var trace []string
	for line := range strings.Lines(script) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		var next *state
		var may []string
		e.successors(now, func(ev event, after *state) {
			text := e.tell(ev, after)
			head, _, _ := strings.Cut(text, "\n")
			may = append(may, head)
			if next == nil && hasAll(head, strings.Split(line, "&")) {
				next = after
				trace = append(trace, text)
			}
		})
		if next == nil {
			t.Fatalf("%s\n%q does not come; what may:\n%s", strings.Join(trace, "\n"), line, strings.Join(may, "\n"))
		}
		next.tidy()
		now = next
		if wrong := e.wrong(now); wrong != "" {
			return Result{Violation: wrong, Trace: trace}
		}
	}
	r := e.explore(now, limit)
	r.Trace = append(trace, r.Trace...)
	return r
}

func hasAll(text string, words []string) bool {
	for _, word := range words {
		if !strings.Contains(text, strings.TrimSpace(word)) {
			return false
		}
	}
	return true
}

// A ballot that goes on when its limit is over may count a promise that its master has forgotten
// since: it sends nothing any more.
func TestBallotBeyondItsLimit(t *testing.T) {
	s := Scenario{N: 3, Held: 3, Slow: 1, Restarts: 1, Retries: 4, Ops: []Op{
		lockA, {Do: Unlock, Token: 'a', Proxy: 2}, {Do: GetSet, Token: 'b', Proxy: 1}, {Do: Get, Proxy: 3, After: []int{3}},
	}}
	r := follow(t, s, `
UNLOCK a by proxy 3 starts
deliver & proxy 3's prepare(13) at C
# which C forgets
restart of C
a round's time passes
first pass reads A
first pass reads B
copies to C
second pass reads A
second pass reads B
admits C
# another value is chosen and returned
GETSET b by proxy 2 starts
deliver & proxy 2's prepare(12) at B
deliver & proxy 2's prepare(12) at C | & … yes & yes
deliver & proxy 2's accept & at B
deliver & proxy 2's accept & at C |
# and the first would go on with what A, which has not got it, and C say
`, quickLimit)
	if t.Logf("%d states follow", r.States); r.Violation != "" || !r.Complete {
		t.Errorf("complete: %v, %s\n%s", r.Complete, r.Violation, strings.Join(r.Trace, "\n"))
	}
}

// An accept that arrives when its deadline is over does nothing: another value may have been chosen
// meanwhile, by a master that has forgotten its promise.
func TestAcceptBeyondItsDeadline(t *testing.T) {
	s := Scenario{N: 3, Held: 3, Slow: 1, Restarts: 1, Ops: []Op{
		lockA, {Do: Unlock, Token: 'a', Proxy: 2}, {Do: GetSet, Token: 'b', Proxy: 1}, {Do: Get, Proxy: 3, After: []int{3}},
	}}
	script := `
UNLOCK a by proxy 3 starts
deliver & proxy 3's prepare(13) at A
deliver & proxy 3's prepare(13) at C | & yes & … yes
restart of C
a round's time passes
first pass reads A
first pass reads B
copies to C
second pass reads A
second pass reads B
admits C
GETSET b by proxy 2 starts
deliver & proxy 2's prepare(12) at B
deliver & proxy 2's prepare(12) at C | & … yes & yes
deliver & proxy 2's accept & at B
deliver & proxy 2's accept & at C |
`
	r := follow(t, s, script, quickLimit)
	if t.Logf("%d states follow", r.States); r.Violation != "" || !r.Complete {
		t.Errorf("complete: %v, %s\n%s", r.Complete, r.Violation, strings.Join(r.Trace, "\n"))
	}
	s.Variant = acceptsLate()
	r = follow(t, s, script, quickLimit)
	if t.Logf("%d states follow: %s", r.States, r.Violation); r.Violation == "" {
		t.Error("without the deadline nothing is wrong")
	}
}

// A take whose connection broke arrives at any time. The proxy that sent it releases the lock by
// ballot, whose removal can be told from what the take has not reached; deleted as others are, the
// lock may be back on a key that held nothing.
func TestTakeThatStrays(t *testing.T) {
	s := Scenario{N: 3, Losses: 3, Retries: 1, Ops: []Op{
		lockA, {Do: Del, Proxy: 1, After: []int{1}}, unlockA, {Do: Get, Proxy: 2, After: []int{2}},
	}}
	script := `
LOCK a by proxy 1 starts
deliver & take & at C
deliver & take & at B | & … yes yes
lose
`
	limit := quickLimit
	if all() {
		limit = longLimit
	}
	r := follow(t, s, script, limit)
	if t.Logf("%d states follow, complete: %v", r.States, r.Complete); r.Violation != "" {
		t.Errorf("%s\n%s", r.Violation, strings.Join(r.Trace, "\n"))
	}
	s.Variant = unnoticed()
	r = follow(t, s, script, limit)
	if t.Logf("%d states follow: %s", r.States, r.Violation); r.Violation == "" {
		t.Error("released as others are nothing is wrong")
	}
}
