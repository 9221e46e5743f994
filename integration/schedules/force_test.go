//go:build integration

package schedules

import (
	"errors"
	"testing"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// TestForceUnlockEndsAnOpenLock: a lock reached only A, B and C. Then so few of these masters
// remain that no proxy can decide whether the lock is held, although a majority votes. After
// FORCEUNLOCK, other clients can take the lock, and it does not return.
func TestForceUnlockEndsAnOpenLock(t *testing.T) {
	t.Parallel()
	for _, open := range []struct {
		name  string
		begin func(t *testing.T, f *fleet) (end func())
		then  func(t *testing.T, f *fleet, p *proxy) // when D and E are back
		// voters lists the masters that vote in the end.
		voters []int
	}{
		{"C forgot it", func(t *testing.T, f *fleet) func() {
			kit.Must(t, f.masters[C].Restart())
			return func() {}
		}, func(t *testing.T, f *fleet, p *proxy) { f.wantCaughtUp(t, p, C) }, []int{A, B, C, D, E}},
		{"all forgot it, one after the other", func(t *testing.T, f *fleet) func() {
			kit.Must(t, f.masters[C].Restart())
			return func() {}
		}, func(t *testing.T, f *fleet, p *proxy) {
			f.wantCaughtUp(t, p, C)
			f.restartInTurn(t, p, A, B)
		}, []int{A, B, C, D, E}},
		{"A and B are away", func(t *testing.T, f *fleet) func() { return hang.begin(t, f, A, B) },
			func(*testing.T, *fleet, *proxy) {}, []int{C, D, E}},
	} {
		t.Run(open.name, func(t *testing.T) {
			t.Parallel()
			f := startFleet(t, 5)
			writer, operators := f.proxy(t), f.proxy(t)
			f.holdSentinel(t, connect(t, operators))
			clients := []*redistest.Client{connect(t, writer), connect(t, operators)}
			var keys []string
			back := hang.begin(t, f, D, E)
			for name, commands := range map[string]string{
				"LOCK": "LOCK KEY old PX " + longTime, "SET": "SET KEY old",
				"transaction": "WATCH KEY|MULTI|SET KEY old|EXEC", "hash": "HSET KEY f v|>HSET KEY g w",
				"released": "LOCK KEY older PX " + longTime + "|>UNLOCK KEY older|LOCK KEY old PX " + longTime,
			} {
				keys = append(keys, "lock:"+name)
				history{name: name}.send(t, clients, commands, "lock:"+name)
			}
			end := open.begin(t, f)
			back()
			open.then(t, f, operators)
			writer.wantVotesOf(t, open.voters...)
			operators.wantVotesOf(t, open.voters...)
			for _, key := range keys {
				if reply := kit.Do(t, clients[1], "FORCEUNLOCK", key); reply != any(int64(1)) {
					t.Errorf("FORCEUNLOCK %s: %v", key, reply)
				}
				if reply := kit.Do(t, clients[0], "LOCK", key, "new", "PX", longTime); !isGrant(reply) {
					t.Errorf("LOCK %s after it was forced: %v", key, reply)
				}
			}
			end()
			operators.wantVoting(t)
			for _, key := range keys {
				if reply := kit.Do(t, clients[0], "EXTEND", key, "old", "PX", longTime); reply != nil {
					t.Errorf("%s was forced, and its old owner extends it: %v", key, reply)
				}
			}
			kit.NoError(t, eventually(func() error {
				return errors.Join(f.hold(t, A, true, keys),
					kit.Agree(f.masters, keys...))
			}))
			for _, key := range keys {
				if reply := kit.Do(t, clients[1], "GET", key); reply != "new" {
					t.Errorf("GET %s in the end: %v", key, reply)
				}
			}
		})
	}
}
