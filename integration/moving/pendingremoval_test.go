//go:build integration

package moving

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
	"redlock-proxy/internal/redistest/faultlink"
)

// startLinked starts a rig with the locks on three masters. It returns the links of the first
// proxy.
func startLinked(t *testing.T) (r *rig, links []*faultlink.CommandLink) {
	t.Helper()
	r = &rig{t: t, upstream: kit.StartRedis(t, redistest.DurableArgs()...), masters: kit.StartMasters(t)[:3]}
	r.args = slices.Concat(kit.LockKeyArgs(r.upstream), []string{"--move-from-upstream", "--master-timeout", "2s"})
	urls := make([][]string, 2)
	for _, master := range r.masters {
		junction := kit.StartPasswordRouter(t)
		for i, password := range []string{"first", "other"} {
			link, err := faultlink.NewCommandLink(master.Addr())
			kit.Must(t, err)
			t.Cleanup(func() { kit.Must(t, link.Close()) })
			junction.Route(password, link.Addr())
			urls[i] = append(urls[i], junction.URL(password))
			if i == 0 {
				links = append(links, link)
			}
		}
	}
	for i := range urls {
		proxy := kit.StartProxy(t, urls[i], r.args...)
		r.proxies, r.addrs = append(r.proxies, proxy), append(r.addrs, proxy.Addr())
	}
	r.wantVoting()
	r.mustMove(1)
	return r, links
}

// loseReplies sends a command that reaches all masters and gets NOQUORUM, because the replies and
// later commands about the key are lost. heal ends the fault.
func (r *rig) loseReplies(links []*faultlink.CommandLink, command ...string) (heal func()) {
	r.t.Helper()
	var holds []*faultlink.Hold
	namesKey := faultlink.Containing(command[1])
	for _, link := range links {
		holds = append(holds, link.HoldReplies(namesKey), link.HoldCommands(faultlink.SkipFirst(1, namesKey)))
	}
	reply := kit.ReplyText(kit.Do(r.t, kit.Connect(r.t, r.proxies[0]), command...))
	if !strings.HasPrefix(reply, "NOQUORUM ") {
		r.t.Fatalf("%v: %s, want NOQUORUM", command, reply)
	}
	return func() {
		for _, hold := range holds {
			hold.Discard()
		}
	}
}

// TestRemovalBeforeAMove covers a lock that has reached the masters, although its client got
// NOQUORUM. The locks are moved to the upstream. The move begins before or after the client's proxy
// reaches the key again, and is repeated if it fails. A granted lock is moved, but the lock with
// NOQUORUM is not.
func TestRemovalBeforeAMove(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	for _, command := range [][]string{{"LOCK", "lock:k", "lost", "PX", "600000"},
		{"SET", "lock:k", "lost", "NX", "PX", "600000"}} {
		for _, mover := range []int{0, 1} {
			for _, pause := range []time.Duration{-1, 0, 500 * time.Millisecond, 2500 * time.Millisecond} {
				t.Run(fmt.Sprint(command[0], " moved by ", mover, " well after ", pause), func(t *testing.T) {
					t.Parallel()
					r, links := startLinked(t)
					clientA, clientB := r.clients()
					kit.Want(t, clientB, "OK", "SET", "lock:held", "me", "NX", "PX", "600000")
					heal := r.loseReplies(links, command...)
					if pause < 0 {
						heal()
					}
					startedAt := time.Now()
					moveErr := make(chan error, 1)
					go func() {
						_, err := r.move(mover, backFlag)
						moveErr <- err
					}()
					if pause >= 0 {
						time.Sleep(pause) // chooses how far the move is; no result depends on it
						heal()
					}
					if err := <-moveErr; err != nil {
						t.Logf("the move: %v", err)
						kit.Eventually(t, func() error { _, err := r.move(1, backFlag); return err })
					}
					t.Logf("it took %v", time.Since(startedAt).Round(time.Millisecond))
					if keys := r.keysAtUpstream(); !slices.Equal(keys, []string{"lock:held"}) {
						t.Errorf("at the upstream are %q", keys)
					}
					kit.Want(t, clientA, nil, "GET", "lock:k")
					kit.Want(t, clientA, "OK", "SET", "lock:k", "rival", "NX", "PX", "60000")
					kit.Want(t, clientB, "me", "GET", "lock:held")
					kit.Want(t, clientB, int64(1), "DEL", "lock:k")
					r.mustMove(0)
					kit.Want(t, clientB, nil, "GET", "lock:k")
					kit.Want(t, clientB, "me", "GET", "lock:held")
				})
			}
		}
	}
}
