//go:build integration

package guard

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// startFleetOf starts the given number of masters and two proxies, and waits until all masters
// vote.
func startFleetOf(t *testing.T, masters int, args ...string) *kit.Fleet {
	t.Helper()
	f := &kit.Fleet{}
	for range masters {
		f.Masters = append(f.Masters, kit.StartRedis(t))
	}
	for range 2 {
		f.Proxies = append(f.Proxies, kit.StartProxy(t, redistest.URLs(f.Masters), args...))
	}
	f.WantVoting(t, masters)
	return f
}

// TestCatchUpWithForeignValue stores, on a minority of the masters, a value that no proxy wrote.
// When another master restarts without its data, the proxies do not copy the value to it. Each
// proxy can free the key.
func TestCatchUpWithForeignValue(t *testing.T) {
	redistest.SkipShort(t)
	for _, test := range []struct{ masters, holders int }{{3, 1}, {5, 2}} {
		t.Run(fmt.Sprintf("%d of %d", test.holders, test.masters), func(t *testing.T) {
			t.Parallel()
			f := startFleetOf(t, test.masters)
			for _, key := range []string{"k0", "k1"} {
				for _, master := range f.Masters[:test.holders] {
					kit.Must(t, kit.SendToMaster(master, "SET", key, "theirs"))
				}
			}
			last := test.masters - 1
			kit.Must(t, f.Masters[last].Restart())
			waitAllVoteAfterRestart(t, f, last)
			for i, proxy := range f.Proxies {
				client, key := kit.Connect(t, proxy), fmt.Sprint("k", i)
				for _, master := range f.Masters[test.holders:] {
					if err := kit.CheckToken(master, "0", key, "theirs"); err == nil {
						t.Errorf("%s is on %s, too", key, master.Addr())
					}
				}
				kit.Want(t, client, int64(1), "FORCEUNLOCK", key)
				kit.Eventually(t, func() error {
					if _, granted := kit.Do(t, client, "LOCK", key, "t", "PX", "60000").(int64); !granted {
						return errors.New("it is not granted")
					}
					return nil
				})
			}
		})
	}
}

// TestForeignLockPreservation covers a lock that a client took directly on a majority of the
// masters. One of these masters restarts without its data. No other client gets the lock, whether
// or not a majority remains.
func TestForeignLockPreservation(t *testing.T) {
	redistest.SkipShort(t)
	for _, holders := range []int{2, 3} {
		t.Run(fmt.Sprint(holders), func(t *testing.T) {
			t.Parallel()
			f := startFleetOf(t, 3)
			for _, master := range f.Masters[3-holders:] {
				kit.Must(t, kit.SendToMaster(master, "SET", "k", "theirs", "PX", "600000"))
			}
			kit.Must(t, f.Masters[2].Restart())
			waitAllVoteAfterRestart(t, f, 2)
			for _, proxy := range f.Proxies {
				reply := kit.Do(t, kit.Connect(t, proxy), "LOCK", "k", "t", "PX", "60000")
				if _, granted := reply.(int64); granted || holders == 3 && reply != nil {
					t.Errorf("LOCK: %v", reply)
				}
			}
		})
	}
}

// TestFenceCounterFarAhead almost uses up the fence counters of one master. Clients of two proxies
// request fences, and another master restarts without its data. Every client gets a fence, and no
// other master gets such a high counter.
func TestFenceCounterFarAhead(t *testing.T) {
	redistest.SkipShort(t)
	for _, masters := range []int{3, 5} {
		t.Run(fmt.Sprint(masters), func(t *testing.T) {
			t.Parallel()
			f := startFleetOf(t, masters)
			keys := []string{"k0", "k1", "k2"}
			for _, key := range keys {
				setFenceCounters(t, f.Masters[:1], key, 1<<53-2)
			}
			wantFences := func() {
				var clients sync.WaitGroup
				for i := range 8 {
					clients.Go(func() { takeFences(t, f, i, keys) })
				}
				clients.Wait()
				for _, master := range f.Masters[1:] {
					for _, key := range keys {
						text, err := kit.QueryDatabase(master, "0", "GET", "redlock-proxy:fence:"+key)
						if fence, _ := strconv.ParseInt(fmt.Sprint(text), 10, 64); err != nil || fence == 0 ||
							fence > highCounter {
							t.Errorf("%s: the counter of %s is %v, %v", master.Addr(), key, text, err)
						}
					}
				}
			}
			wantFences()
			kit.Must(t, f.Masters[masters-1].Restart())
			waitAllVoteAfterRestart(t, f, masters-1)
			wantFences()
			for _, proxy := range f.Proxies {
				fence, _ := kit.Do(t, kit.Connect(t, proxy), "FENCE", "k0").(int64)
				if fence == 0 || fence > highCounter {
					t.Errorf("FENCE: %d", fence)
				}
				kit.WantLogged(t, proxy,
					"ignored a fence counter: it is far ahead of the other masters' counters and clocks")
			}
		})
	}
}

// takeFences takes locks with fences, and checks that the fences of each key grow. It repeats what got
// NOQUORUM, whose outcome is unknown, and a LOCK that waited in vain, maybe for such an outcome.
func takeFences(t *testing.T, f *kit.Fleet, i int, keys []string) {
	client, last := kit.Connect(t, f.Proxies[i%2]), map[string]int64{}
	repeat := func(args ...string) (reply any, repeated bool) {
		deadline := time.Now().Add(kit.WaitLimit)
		for ; ; repeated = true {
			var err error
			if reply, err = client.Do(args...); err != nil {
				t.Error(args, err)
				return nil, repeated
			}
			if !kit.IsNoQuorum(reply) && reply != nil || time.Now().After(deadline) {
				return reply, repeated
			}
		}
	}
	for n := range 150 {
		key, token := keys[n%len(keys)], fmt.Sprint(i, "-", n)
		reply, _ := repeat("LOCK", key, token, "PX", "60000", "FENCE", "BLOCK", "10000")
		fence, _, ok := fenceOf(reply)
		if !ok || fence <= last[key] || fence > highCounter {
			t.Errorf("LOCK %s: %v after %d", key, reply, last[key])
			return
		}
		last[key] = fence
		reply, repeated := repeat("UNLOCK", key, token)
		if reply != int64(1) && !(repeated && reply == int64(0)) {
			t.Errorf("UNLOCK %s: %v", key, reply)
			return
		}
	}
}

// TestRecordOfLongTTL stores a record of a TTL of ten years on one master. The other masters do not
// copy it. When all other masters have lost their data, they vote again after the longest TTL in
// use, even for a proxy that starts then. If only one master lost its data, it votes without delay.
func TestRecordOfLongTTL(t *testing.T) {
	redistest.SkipShort(t)
	for _, masters := range []int{3, 5} {
		for _, allOthers := range []bool{true, false} {
			t.Run(fmt.Sprintf("%d masters, all others forget: %v", masters, allOthers), func(t *testing.T) {
				t.Parallel()
				f := startFleetOf(t, masters, "--max-ttl", "5s", "--master-timeout", "2s")
				kit.WantGrant(t, kit.Connect(t, f.Proxies[0]), "LOCK", "k", "t", "PX", "4000")
				kit.Must(t, kit.SendToMaster(f.Masters[0], "SET", "redlock-proxy:longest", "315360000000"))
				for _, proxy := range f.Proxies {
					_, err := proxy.WaitLog("longer than max-ttl and than every other master's", kit.WaitLimit)
					kit.Must(t, err)
				}
				losing := f.Masters[1:]
				if !allOthers {
					losing = losing[:1]
				}
				for _, master := range losing {
					kit.Must(t, master.Kill())
				}
				for _, master := range losing {
					kit.Must(t, master.Restart())
				}
				f.Proxies = append(f.Proxies, kit.StartProxy(t, redistest.URLs(f.Masters), "--max-ttl", "5s",
					"--master-timeout", "2s"))
				f.WantVoting(t, masters)
				for _, master := range f.Masters[1:] {
					text, err := kit.QueryDatabase(master, "0", "GET", "redlock-proxy:longest")
					if err != nil || len(fmt.Sprint(text)) > len("5000") {
						t.Errorf("%s: %v, %v", master.Addr(), text, err)
					}
				}
			})
		}
	}
}
