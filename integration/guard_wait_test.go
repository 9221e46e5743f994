//go:build integration

package integration

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"redlock-proxy/integration/harness"
)

var (
	readyInError = regexp.MustCompile(`^NOQUORUM 0 of 5 masters vote: 5 restarted without proof of their data, ready in (\d+) s`)
	readyInInfo  = regexp.MustCompile(`state=quarantine,reason=restarted,ready_in_seconds=(\d+)`)
)

// announcement follows a number of seconds that is rounded up: when it falls by one, the lower one is exact.
type announcement struct {
	name    string
	first   int // the first number
	seconds int
	exact   time.Duration // the first exact announcement
	at      time.Time     // when that was made; zero: not yet
}

func (a *announcement) hear(seconds int, now time.Time) {
	if a.first == 0 {
		a.first = seconds
	}
	if a.at.IsZero() && seconds == a.seconds-1 {
		a.exact, a.at = time.Duration(seconds)*time.Second, now
	}
	a.seconds = seconds
}

// check compares with when the wait was over.
func (a *announcement) check(t *testing.T, over time.Time) {
	t.Helper()
	if a.at.IsZero() {
		t.Errorf("%s announced no wait that went down", a.name)
		return
	}
	measured := over.Sub(a.at)
	off := float64(measured-a.exact) / float64(a.exact)
	t.Logf("%s: at first %d s; announced %v, measured %v: %+.1f %%", a.name, a.first, a.exact, measured.Round(time.Millisecond), 100*off)
	if off < -0.05 || off > 0.05 {
		t.Errorf("%s: the wait ended %+.1f %% off what was announced", a.name, 100*off)
	}
}

// TestGuardWaitIsAsAnnounced: all masters restart without their data at once, and locks come back by themselves, as soon as the error and
// PROXY INFO said, within a twentieth, and not before the lock from before is over.
func TestGuardWaitIsAsAnnounced(t *testing.T) {
	const ttl = 8 * time.Second
	f := startGuarded(t, true, 2)
	client := connect(t, f.proxies[0])
	asked := time.Now()
	validity := wantGrant(t, client, "LOCK", "k", "t", "PX", strconv.FormatInt(ttl.Milliseconds(), 10))
	for _, master := range f.masters {
		must(t, master.Kill())
	}
	for _, master := range f.masters {
		must(t, master.Restart())
	}
	began := time.Now()
	inError, inInfo := &announcement{name: "NOQUORUM"}, &announcement{name: "PROXY INFO"}
	over := f.untilGranted(t, client, inError, inInfo, 4*ttl)
	t.Logf("locks of %v: granted again %v after the restart, %v after the grant before", ttl,
		over.Sub(began).Round(time.Millisecond), over.Sub(asked).Round(time.Millisecond))
	inError.check(t, over)
	inInfo.check(t, over)
	if over.Before(asked.Add(validity)) {
		t.Errorf("DOUBLE GRANT: %v after the first", over.Sub(asked))
	}
	f.wantVoting(t, len(f.masters))
}

// untilGranted asks for the lock again and again, and listens to what is announced meanwhile.
func (f *fleet) untilGranted(t *testing.T, client *harness.Client, inError, inInfo *announcement, patience time.Duration) time.Time {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		reply := do(t, client, "LOCK", "k", "u", "PX", "1000")
		now := time.Now()
		if _, granted := reply.(int64); granted {
			return now
		}
		if match := readyInError.FindStringSubmatch(fmt.Sprint(reply)); match != nil {
			inError.hear(number(t, match[1]), now)
		}
		// A majority is there with the third of five.
		var waits []int
		for _, match := range readyInInfo.FindAllStringSubmatch(fmt.Sprint(do(t, client, "PROXY", "INFO")), -1) {
			waits = append(waits, number(t, match[1]))
		}
		if len(waits) == len(f.masters) {
			slices.Sort(waits)
			inInfo.hear(waits[len(waits)/2], time.Now())
		}
	}
	t.Fatal("there is no lock any more")
	return time.Time{}
}

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	must(t, err)
	return n
}
