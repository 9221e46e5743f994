package model

import (
	"strings"
	"testing"

	"redlock-proxy/internal/redistest"
)

// follow executes the events of a script, and then explores all states that can follow. A search
// from the beginning would not reach these states. A line of the script is one event: the first
// event whose description contains all texts between the &. Lines that begin with # are comments.
// If no event matches, the test fails with a list of the possible events.
func follow(t *testing.T, s Scenario, script string, limit int) Result {
	t.Helper()
	e := newExplorer(&s)
	current := e.root()
	var trace []string
	for line := range strings.Lines(script) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		var next *state
		var possibleEvents []string
		e.successors(current, func(ev event, successor *state) {
			text := e.describe(ev, successor)
			head, _, _ := strings.Cut(text, "\n")
			possibleEvents = append(possibleEvents, head)
			if next == nil && containsAll(head, strings.Split(line, "&")) {
				next = successor
				trace = append(trace, text)
			}
		})
		if next == nil {
			t.Fatalf("%s\n%q is not possible; possible events:\n%s", strings.Join(trace, "\n"), line, strings.Join(possibleEvents, "\n"))
		}
		next.normalize()
		current = next
		if violation := e.check(current); violation != "" {
			return Result{Violation: violation, Trace: trace}
		}
	}
	r := e.explore(current, limit)
	r.Trace = append(trace, r.Trace...)
	return r
}

func containsAll(text string, words []string) bool {
	for _, word := range words {
		if !strings.Contains(text, strings.TrimSpace(word)) {
			return false
		}
	}
	return true
}

// TestBallotBeyondItsLimit checks that a ballot sends nothing after its time limit, because a
// master may have forgotten its promise by then.
func TestBallotBeyondItsLimit(t *testing.T) {
	s := Scenario{N: 3, InitialHolders: 3, SlowTicks: 1, Restarts: 1, Retries: 4, Ops: []Op{
		lockA, {Kind: Unlock, Token: 'a', Proxy: 2}, {Kind: GetSet, Token: 'b', Proxy: 1}, {Kind: Get, Proxy: 3, After: []int{3}},
	}}
	r := follow(t, s, `
UNLOCK a by proxy 3 starts
deliver & proxy 3's prepare(13) at C
# C forgets its promise
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
# the first ballot would continue with the replies of C, and of A, which lacks the new value
`, quickLimit)
	if t.Logf("%d states follow", r.States); r.Violation != "" || !r.Complete {
		t.Errorf("complete: %v, %s\n%s", r.Complete, r.Violation, strings.Join(r.Trace, "\n"))
	}
}

// TestAcceptBeyondItsDeadline checks that an accept that arrives after its deadline has no effect.
// Another value may have been chosen meanwhile, with the vote of a master that has forgotten its
// promise.
func TestAcceptBeyondItsDeadline(t *testing.T) {
	s := Scenario{N: 3, InitialHolders: 3, SlowTicks: 1, Restarts: 1, Ops: []Op{
		lockA, {Kind: Unlock, Token: 'a', Proxy: 2}, {Kind: GetSet, Token: 'b', Proxy: 1}, {Kind: Get, Proxy: 3, After: []int{3}},
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
	s.Variant = lateAcceptVariant()
	r = follow(t, s, script, quickLimit)
	if t.Logf("%d states follow: %s", r.States, r.Violation); r.Violation == "" {
		t.Error("no violation without the deadline")
	}
}

// TestLateTake checks a take whose connection broke and which may arrive at any later time. The
// proxy that sent it therefore releases the lock by ballot. A master with the removal then differs
// from a master that the take has not reached. After a plain deletion, the late take could bring
// the lock back.
func TestLateTake(t *testing.T) {
	s := Scenario{N: 3, Losses: 3, Retries: 1, Ops: []Op{
		lockA, {Kind: Del, Proxy: 1, After: []int{1}}, unlockA, {Kind: Get, Proxy: 2, After: []int{2}},
	}}
	script := `
LOCK a by proxy 1 starts
deliver & take & at C
deliver & take & at B | & … yes yes
lose
`
	limit := max(quickLimit, redistest.StateLimit(quickLimit, longLimit))
	r := follow(t, s, script, limit)
	if t.Logf("%d states follow, complete: %v", r.States, r.Complete); r.Violation != "" {
		t.Errorf("%s\n%s", r.Violation, strings.Join(r.Trace, "\n"))
	}
	s.Variant = ignoredBreaksVariant()
	r = follow(t, s, script, limit)
	if t.Logf("%d states follow: %s", r.States, r.Violation); r.Violation == "" {
		t.Error("no violation if broken connections are ignored")
	}
}
