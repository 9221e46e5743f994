//go:build integration

package schedules

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// TestReleaseDuringReplacement releases a lock through one proxy while its value is replaced
// through another proxy, repeatedly and without faults. Either command may come first, and any may be
// late. Then all masters agree, and when a master dies every key can still be read and written.
func TestReleaseDuringReplacement(t *testing.T) {
	t.Parallel()
	const tries = 1000
	for _, masters := range []int{3, 5} {
		t.Run(fmt.Sprintf("%d masters", masters), func(t *testing.T) {
			t.Parallel()
			f := startFleet(t, masters)
			owner, otherClient := connect(t, f.startProxy(t)), connect(t, f.startProxy(t))
			replacements := [][]string{
				{"GETSET", "", "v"}, {"SET", "", "v", "PX", longTTL}, {"SET", "", "v", "XX"}, {"SETNX", "", "v"},
				{"DEL", ""},
			}
			var keys []string
			for i := range tries {
				key := fmt.Sprint("lock:", i)
				keys = append(keys, key)
				reply := kit.Do(t, owner, "LOCK", key, "t", "PX", longTTL)
				if kit.IsLate(reply) {
					continue
				}
				if !isGrant(reply) {
					t.Fatalf("LOCK %s: got %#v, want a validity", key, reply)
				}
				replacement := append([]string(nil), replacements[i%len(replacements)]...)
				replacement[1] = key
				releaseReply, replaceReply := sendAsync(owner, "UNLOCK", key, "t"), sendAsync(otherClient, replacement...)
				if err := errors.Join(replyError(<-releaseReply), replyError(<-replaceReply)); err != nil {
					t.Errorf("UNLOCK %s during %v: %v", key, replacement, err)
				}
			}
			kit.Eventually(t, func() error { return kit.CheckSameCells(f.masters, keys...) })
			kit.Must(t, f.masters[A].Kill())
			for _, key := range keys {
				if reply, _ := kit.DoInTime(t, otherClient, "EXISTS", key); kit.IsNoQuorum(reply) {
					t.Errorf("EXISTS %s without A: %v", key, reply)
				}
				if reply, _ := kit.DoInTime(t, owner, "DEL", key); kit.IsNoQuorum(reply) {
					t.Errorf("DEL %s without A: %v", key, reply)
				}
			}
		})
	}
}

// replyError returns the error in a reply, which may be a connection error. A late reply is no error.
func replyError(reply any) error {
	if kit.IsLate(reply) {
		return nil
	}
	err, _ := reply.(error)
	return err
}

// TestReleaseReply checks that a client that releases its lock through the proxy that granted it
// gets the reply 1, or 0 after a late reply. Clients of two proxies compete for a few locks while the masters, one after the
// other, die and restart without their data.
func TestReleaseReply(t *testing.T) {
	t.Parallel()
	for _, masters := range []int{3, 5} {
		t.Run(fmt.Sprintf("%d masters", masters), func(t *testing.T) {
			t.Parallel()
			const rounds = 12
			f := startFleet(t, masters)
			proxies := []*proxy{f.startProxy(t, kit.LongMasterTimeoutArgs()...), f.startProxy(t, kit.LongMasterTimeoutArgs()...)}
			released := 0
			for round := range rounds {
				released += f.releaseDuring(t, proxies, func() {
					time.Sleep(rand.N(100 * time.Millisecond)) // the next step may come at any time
					kit.NoError(t, f.masters[round%masters].Kill())
					time.Sleep(rand.N(300 * time.Millisecond)) // the fault lasts
					kit.NoError(t, f.masters[round%masters].Restart())
					time.Sleep(rand.N(300 * time.Millisecond)) // the next step may come at any time
				})
				for _, p := range proxies {
					p.wantVoting(t)
				}
			}
			t.Logf("%d releases", released)
		})
	}
}

// releaseDuring lets clients take and release locks during an event, and returns the number of
// releases.
func (f *fleet) releaseDuring(t *testing.T, proxies []*proxy, event func()) int {
	t.Helper()
	var stopped atomic.Bool
	var tasks sync.WaitGroup
	var released atomic.Int64
	for i := range 8 {
		client, token := connect(t, proxies[i%2]), fmt.Sprint(i)
		tasks.Go(func() {
			for !stopped.Load() {
				key := fmt.Sprint("lock:", rand.IntN(6))
				if got, err := client.Do("LOCK", key, token, "PX", longTTL); err != nil || !isGrant(got) {
					continue
				}
				if err := kit.Release(client.Do, key, token, false); err != nil {
					t.Error(err)
					continue
				}
				released.Add(1)
			}
		})
	}
	event()
	stopped.Store(true)
	tasks.Wait()
	return int(released.Load())
}

// TestReleaseOfABareMajority takes a lock only on A and C, because B is unreachable. Then C dies,
// and B is reachable again. The holder releases the lock, and the lock is free: its leftover on A
// can no longer get a majority.
func TestReleaseOfABareMajority(t *testing.T) {
	t.Parallel()
	const lock = "LOCK KEY v PX " + longTTL
	for _, c := range []struct{ name, lockCommand, releaseCommand string }{
		{"by the proxy that granted it", lock, "UNLOCK KEY v"},
		{"by a script", lock, "EVAL SCRIPT 1 KEY v"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := startFleet(t, 3)
			firstProxy, secondProxy := f.startProxy(t), f.startProxy(t)
			clients := []*redistest.Client{connect(t, firstProxy), connect(t, secondProxy)}
			h, key := history{name: c.name}, "lock:k"
			reconnect := cutOffMasters.begin(t, f, B)
			h.runCommands(t, clients, c.lockCommand, key)
			kit.Must(t, f.masters[C].Kill())
			reconnect()
			firstProxy.wantVotesOf(t, A, B)
			secondProxy.wantVotesOf(t, A, B)
			words := strings.Fields(strings.ReplaceAll(c.releaseCommand, "KEY", key))
			if words[1] == "SCRIPT" {
				words[1] = releaseIfOwn
			}
			if reply := kit.Do(t, clients[0], words...); reply != any(int64(1)) {
				t.Errorf("%s: %v", c.releaseCommand, reply)
			}
			f.wantFree(t, secondProxy, key)
		})
	}
}
