//go:build integration

package guard

import (
	"errors"
	"fmt"
	"testing"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// startSmall starts so many masters and two proxies, and waits until all vote.
func startSmall(t *testing.T, masters int, args ...string) *kit.Fleet {
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

// TestForeignValueDoesNotGrow: a value that no proxy wrote, and that fewer than a majority of the masters hold, is on no other master
// after one of these restarted without its data. The key can be freed, at each proxy.
func TestForeignValueDoesNotGrow(t *testing.T) {
	for _, test := range []struct{ masters, holders int }{{3, 1}, {5, 2}} {
		t.Run(fmt.Sprintf("%d of %d", test.holders, test.masters), func(t *testing.T) {
			t.Parallel()
			f := startSmall(t, test.masters)
			for _, key := range []string{"k0", "k1"} {
				for _, master := range f.Masters[:test.holders] {
					kit.Must(t, kit.Tell(master, "SET", key, "theirs"))
				}
			}
			last := test.masters - 1
			kit.Must(t, f.Masters[last].Restart())
			wantVotingFrom(t, f, last)
			for i, proxy := range f.Proxies {
				client, key := kit.Connect(t, proxy), fmt.Sprint("k", i)
				for _, master := range f.Masters[test.holders:] {
					if err := kit.Stands(master, "0", key, "theirs"); err == nil {
						t.Errorf("%s is on %s, too", key, master.Addr())
					}
				}
				kit.Want(t, client, int64(1), "FORCEUNLOCK", key)
				kit.Soon(t, func() error {
					if _, granted := kit.Do(t, client, "LOCK", key, "t", "PX", "60000").(int64); !granted {
						return errors.New("it is not granted")
					}
					return nil
				})
			}
		})
	}
}

// TestForeignLockIsKept: a lock of a client of the masters that a majority holds is nobody else's after one of these restarted without its
// data, whether or not the others are a majority still.
func TestForeignLockIsKept(t *testing.T) {
	for _, holders := range []int{2, 3} {
		t.Run(fmt.Sprint(holders), func(t *testing.T) {
			t.Parallel()
			f := startSmall(t, 3)
			for _, master := range f.Masters[3-holders:] {
				kit.Must(t, kit.Tell(master, "SET", "k", "theirs", "PX", "600000"))
			}
			kit.Must(t, f.Masters[2].Restart())
			wantVotingFrom(t, f, 2)
			for _, proxy := range f.Proxies {
				reply := kit.Do(t, kit.Connect(t, proxy), "LOCK", "k", "t", "PX", "60000")
				if _, granted := reply.(int64); granted || holders == 3 && reply != nil {
					t.Errorf("LOCK: %v", reply)
				}
			}
		})
	}
}
