//go:build integration

package schedules

import (
	"errors"
	"testing"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// TestForceUnlockOfUndeterminedLock covers a lock that reached only A, B and C. Then so few of
// these masters remain that no proxy can decide whether the lock is held. A majority votes
// nevertheless. After FORCEUNLOCK, other clients can take the lock, and the old holder cannot
// extend it.
func TestForceUnlockOfUndeterminedLock(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name           string
		loseLock       func(t *testing.T, f *fleet) (endLoss func())
		afterReconnect func(t *testing.T, f *fleet, p *proxy) // called when D and E are back
		// voters lists the masters that vote when FORCEUNLOCK is sent.
		voters []int
	}{
		{"C lost it", func(t *testing.T, f *fleet) func() {
			kit.Must(t, f.masters[C].Restart())
			return func() {}
		}, func(t *testing.T, f *fleet, p *proxy) { f.wantCaughtUp(t, p, C) }, []int{A, B, C, D, E}},
		{"all lost it, one after the other", func(t *testing.T, f *fleet) func() {
			kit.Must(t, f.masters[C].Restart())
			return func() {}
		}, func(t *testing.T, f *fleet, p *proxy) {
			f.wantCaughtUp(t, p, C)
			f.restartInTurn(t, p, A, B)
		}, []int{A, B, C, D, E}},
		{"A and B are away", func(t *testing.T, f *fleet) func() { return hangingMasters.begin(t, f, A, B) },
			func(*testing.T, *fleet, *proxy) {}, []int{C, D, E}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			f := startFleet(t, 5)
			writer, operators := f.startProxy(t), f.startProxy(t)
			f.lockCatchUpProbe(t, connect(t, operators))
			clients := []*redistest.Client{connect(t, writer), connect(t, operators)}
			var keys []string
			resume := hangingMasters.begin(t, f, D, E)
			for name, commands := range map[string]string{
				"LOCK": "LOCK KEY old PX " + longTTL, "SET": "SET KEY old",
				"transaction": "WATCH KEY|MULTI|SET KEY old|EXEC", "hash": "HSET KEY f v|>HSET KEY g w",
				"released": "LOCK KEY older PX " + longTTL + "|>UNLOCK KEY older|LOCK KEY old PX " + longTTL,
			} {
				keys = append(keys, "lock:"+name)
				history{name: name}.runCommands(t, clients, commands, "lock:"+name)
			}
			endLoss := test.loseLock(t, f)
			resume()
			test.afterReconnect(t, f, operators)
			writer.wantVotesOf(t, test.voters...)
			operators.wantVotesOf(t, test.voters...)
			for _, key := range keys {
				if reply := kit.Do(t, clients[1], "FORCEUNLOCK", key); reply != any(int64(1)) {
					t.Errorf("FORCEUNLOCK %s: %v", key, reply)
				}
				if reply := kit.Do(t, clients[0], "LOCK", key, "new", "PX", longTTL); !isGrant(reply) {
					t.Errorf("LOCK %s after it was forced: %v", key, reply)
				}
			}
			endLoss()
			operators.wantVoting(t)
			for _, key := range keys {
				if reply := kit.Do(t, clients[0], "EXTEND", key, "old", "PX", longTTL); reply != nil {
					t.Errorf("%s was forced, and its old owner extends it: %v", key, reply)
				}
			}
			kit.Eventually(t, func() error {
				return errors.Join(f.checkPresence(t, A, true, keys), kit.CheckSameCells(f.masters, keys...))
			})
			for _, key := range keys {
				if reply := kit.Do(t, clients[1], "GET", key); reply != "new" {
					t.Errorf("GET %s in the end: %v", key, reply)
				}
			}
		})
	}
}
