//go:build integration

package guard

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
	"redlock-proxy/internal/redistest/faultlink"
)

const (
	// roundsEnv sets the number of masters that TestGuardRounds kills with the guard on.
	roundsEnv = "REDLOCK_ROUNDS"
	// defaultRounds is the default; it takes less than half a minute on two busy cores.
	// unguardedRounds rounds without the guard are enough to show violations.
	defaultRounds   = 12
	unguardedRounds = 6
	// heldLockRounds is the number of rounds for which a lock is held. In these rounds, every
	// master is killed at least once.
	heldLockRounds = 6
	// churnLease is the TTL of the locks that are acquired and released during the rounds.
	churnLease = 2 * time.Second
)

// rounds holds the state of a run. A holder keeps locks, 64 clients acquire and release other
// locks, and rivals try to take the held locks through both proxies. Meanwhile one master after
// another is killed and restarted without its data.
type rounds struct {
	fleet        *kit.Fleet
	guard        bool
	observers    []*redistest.Client // one for each proxy
	holder       *holder
	redsync      *redsyncContest
	votingDelays []time.Duration // time from each kill until all masters vote again
}

// TestGuardRounds checks that locks are granted twice with the guard off. With the guard on, no
// lock is granted twice in the given number of rounds. The test also reports the results of redsync
// on the same masters.
func TestGuardRounds(t *testing.T) {
	redistest.SkipShort(t)
	roundCount, seed := int(kit.NumberFrom(t, roundsEnv, defaultRounds)), kit.NumberFrom(t, kit.SeedEnv, rand.Uint64())
	t.Logf("%d rounds (%s); seed %d (%s)", roundCount, roundsEnv, seed, kit.SeedEnv)
	t.Run("guard off", func(t *testing.T) {
		doubles, _ := runRounds(t, false, unguardedRounds, seed)
		if len(doubles) == 0 {
			t.Error("no lock was granted twice with the guard off, so the rounds with the guard show nothing")
		}
	})
	t.Run("guard on", func(t *testing.T) {
		doubles, lost := runRounds(t, true, roundCount, seed)
		if len(doubles)+len(lost) > 0 {
			t.Errorf("%d DOUBLE GRANTS, %d LOCKS LOST:\n%s", len(doubles), len(lost),
				strings.Join(append(doubles, lost...), "\n"))
		}
	})
}

// runRounds returns the double grants, and the locks that were lost before their release.
func runRounds(t *testing.T, guard bool, roundCount int, seed uint64) (doubleGrants, losses []string) {
	t.Helper()
	f := startRoundsFleet(t, guard)
	r := &rounds{fleet: f, guard: guard, holder: &holder{fleet: f, client: kit.Connect(t, f.Proxies[0]), locks: &heldLocks{}}}
	for _, proxy := range f.Proxies {
		r.observers = append(r.observers, kit.Connect(t, proxy))
	}
	r.redsync = startRedsync(t, f.Masters)
	defer r.redsync.stop()
	rivals := startRivals(t, f.Proxies, r.holder.locks)
	defer rivals.stop()
	churn := startChurn(t, f, &churn{seed: seed, lease: churnLease, lateShare: 200})
	defer churn.stop()

	startedAt := time.Now()
	r.holder.hold(t, roundCount, 0, false) // these two locks are held in all rounds
	for n := range roundCount {
		r.runRound(t, n)
		if (n+1)%100 == 0 {
			t.Logf("%d rounds after %v, granted twice: %v", n+1, time.Since(startedAt).Round(time.Second),
				r.holder.locks.doubleGrantsFrom(0))
		}
	}
	duration := time.Since(startedAt)
	rivals.stop()
	grants, overlaps := churn.stop()
	r.holder.releaseAll(t, r.holder.locks.locksHeldBefore(roundCount+1))
	r.report(t, duration, grants, len(overlaps))
	rivals.report(t)
	t.Logf("errors of the 64 clients: %v", churn.failures)
	doubleGrants = r.holder.locks.doubleGrants
	for _, overlap := range overlaps {
		doubleGrants = append(doubleGrants, overlap.String())
	}
	return doubleGrants, r.holder.locks.losses
}

// startRoundsFleet starts five masters without persistence, and two proxies with lock keys. The
// first proxy uses links to the masters.
func startRoundsFleet(t *testing.T, guard bool) *kit.Fleet {
	t.Helper()
	f := &kit.Fleet{Masters: kit.StartMasters(t)}
	f.Links = [][]*faultlink.Link{kit.StartLinks(t, f.Masters)}
	args := append(kit.LockKeyArgs(kit.StartRedis(t)), fmt.Sprintf("--guard=%v", guard))
	for _, urls := range [][]string{kit.LinkURLs(f.Links[0]), redistest.URLs(f.Masters)} {
		f.Proxies = append(f.Proxies, kit.StartProxy(t, urls, args...))
	}
	f.WantVoting(t, len(f.Masters))
	return f
}

// runRound takes locks, restarts one master without its data, and waits until the master votes
// again. Then it releases the locks of earlier rounds.
func (r *rounds) runRound(t *testing.T, n int) {
	t.Helper()
	victim := n % len(r.fleet.Masters)
	r.holder.hold(t, n, victim, true)
	r.redsync.hold(t, n, victim)
	killedAt := time.Now()
	kit.Must(t, r.fleet.Masters[victim].Restart())
	r.wantVotingAgain(t, victim)
	r.votingDelays = append(r.votingDelays, time.Since(killedAt))
	r.redsync.release()
	r.holder.releaseAll(t, r.holder.locks.locksHeldBefore(n-heldLockRounds+1))
}

// wantVotingAgain waits until both proxies see a restarted master vote. On a busy machine this may
// take longer than kit.WaitLimit. report logs the times.
func (r *rounds) wantVotingAgain(t *testing.T, victim int) {
	t.Helper()
	end := time.Now().Add(6 * kit.WaitLimit)
	for state := r.missingVotes(t, victim); state != ""; state = r.missingVotes(t, victim) {
		if time.Now().After(end) {
			t.Fatalf("master %s does not vote again: %s", r.fleet.Masters[victim].Addr(), state)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// missingVotes describes why not all masters vote, or returns "" if all vote.
func (r *rounds) missingVotes(t *testing.T, victim int) string {
	t.Helper()
	if r.guard { // check the marker: a proxy may not have noticed yet that the master was gone
		if marker, err := kit.QueryDatabase(r.fleet.Masters[victim], "0", "GET", "redlock-proxy:marker"); err != nil ||
			marker == nil {
			return fmt.Sprintf("it has no marker: %v", err)
		}
	}
	for _, observer := range r.observers {
		if info := fmt.Sprint(kit.Do(t, observer, "PROXY", "INFO")); !strings.Contains(info, "redlock_masters_voting:5\r\n") {
			return info
		}
	}
	return ""
}

// report logs the figures.
func (r *rounds) report(t *testing.T, duration time.Duration, grants, overlaps int) {
	t.Helper()
	slices.Sort(r.votingDelays)
	ms := time.Millisecond
	t.Logf("%d rounds in %v, %v each; a master voted again after %v (median), %v (longest)", len(r.votingDelays), duration.Round(ms),
		(duration / time.Duration(len(r.votingDelays))).Round(ms), r.votingDelays[len(r.votingDelays)/2].Round(ms), r.votingDelays[len(r.votingDelays)-1].Round(ms))
	s := r.holder.locks
	t.Logf("standing locks: %d, %d on a bare majority; granted twice: %d; lost: %d; that could not be known: %d",
		s.grants, s.bareMajorities, len(s.doubleGrants), len(s.losses), s.unknownResults)
	t.Logf("64 clients: %d grants, %d overlaps", grants, overlaps)
	t.Logf("redsync on the same masters: %d mutexes held, granted twice: %d", r.redsync.locks.grants,
		len(r.redsync.locks.doubleGrants))
}
