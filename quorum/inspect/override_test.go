package inspect

import (
	"errors"
	"strings"
	"testing"
	"time"

	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/guard"
)

// TestCheckOverride checks that CheckOverride accepts an override only if all masters are reachable
// and fit, and no master holds a lock that contradicts the override. If a majority votes, the
// override is not needed.
func TestCheckOverride(t *testing.T) {
	empty := Finding{Name: "m", New: true}
	twoLocks := Finding{Name: "h", Locks: guard.Locks{
		Count: 2,
		Keys:  []guard.LockedKey{{Name: "a", Left: 30 * time.Second}, {Name: "b", Left: time.Second}},
	}}
	oneLock := Finding{Name: "o", Locks: guard.Locks{
		Count: 1, Keys: []guard.LockedKey{{Name: "a", Left: 30 * time.Second}},
	}}
	twoLocksOneEndless := Finding{Name: "t", Locks: guard.Locks{
		Count: 2,
		Keys:  []guard.LockedKey{{Name: "a", Left: cell.NoExpiry}, {Name: "b", Left: time.Second}},
	}}
	endlessLock := Finding{Name: "e", Locks: guard.Locks{
		Count: 1, Keys: []guard.LockedKey{{Name: "a", Left: cell.NoExpiry}},
	}}
	voting := Finding{Name: "v", Votes: true}
	dead := Finding{Name: "d", Err: errors.New("connection refused")}
	unfit := Finding{Name: "u", Votes: true, SafetyProblems: []string{"it is a replica"}}
	const forceAdvice = "; if no client holds these locks any more, use --force"
	for _, c := range []struct {
		name     string
		findings []Finding
		ttl      time.Duration
		want     string
	}{
		{"new masters", []Finding{empty, empty, empty}, 0, ""},
		{"one votes", []Finding{empty, voting, empty}, 0, ""},
		{"a majority votes", []Finding{empty, voting, voting}, 0, ErrNotNeeded.Error()},
		{"a majority votes, and one is dead", []Finding{dead, voting, voting}, 0, ErrNotNeeded.Error()},
		{"one is dead", []Finding{dead, empty, empty}, 0, "d: connection refused"},
		{"one is unfit, and so is its vote", []Finding{unfit, empty, voting}, 0, "u: it is a replica"},
		{"locks stand", []Finding{twoLocks, empty, empty}, 0, `h: it holds 2 locks, for up to 30s, such as "a" "b"` + forceAdvice},
		{"locks stand that last longer", []Finding{twoLocks, empty, empty}, 29 * time.Second,
			`h: it holds 2 locks, for up to 30s, such as "a"` + forceAdvice},
		{"locks stand that are over by then", []Finding{twoLocks, empty, empty}, 30 * time.Second, ""},
		{"one lock stands", []Finding{oneLock, empty, empty}, 0, `o: it holds 1 lock, for up to 30s, such as "a"` + forceAdvice},
		{"one without an end", []Finding{endlessLock, empty, empty}, time.Hour,
			`e: it holds 1 lock, without a TTL, such as "a"` + forceAdvice},
		{"two, one without an end", []Finding{twoLocksOneEndless, empty, empty}, time.Hour,
			`t: it holds 2 locks, one of them without a TTL, such as "a"` + forceAdvice},
	} {
		got := ""
		if err := CheckOverride(c.findings, c.ttl, false); err != nil {
			got = err.Error()
		}
		if forcedErr := CheckOverride(c.findings, c.ttl, true); strings.HasSuffix(c.want, forceAdvice) && forcedErr != nil {
			t.Errorf("%s, forced: %v", c.name, forcedErr)
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}
