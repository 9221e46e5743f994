//go:build integration

package masters

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
	"redlock-proxy/quorum/cell"
)

// TestChangeLeavesNoLockBehind: locks that nobody else wants, asked for while the masters are changed, are granted, or it is said that this is not
// known: then they are free soon after. They are taken by ballot, since they were removed by one a moment ago.
func TestChangeLeavesNoLockBehind(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	r := startRig(t, 2, 3, 4)
	var over atomic.Bool
	var clients sync.WaitGroup
	var mu sync.Mutex
	var unknown []string
	for i := range 16 {
		client := kit.Connect(t, r.proxies[i%2])
		clients.Go(func() {
			for key, n := "", 0; !over.Load(); {
				if key == "" {
					key, n = fmt.Sprintf("k-%d-%d", i, n), n+1
				}
				reply, err := client.Do("LOCK", key, "t", "PX", "600000")
				failure, failed := reply.(redistest.RespError)
				switch {
				case err != nil, failed && !strings.HasPrefix(string(failure), "NOQUORUM "):
					t.Errorf("LOCK: %v, %v", reply, err)
					return
				case failed:
					mu.Lock()
					unknown = append(unknown, key)
					mu.Unlock()
					key = ""
				case reply == nil:
					t.Errorf("LOCK of %s, which nobody else wants, is refused", key)
					key = ""
				default:
					_, _ = client.Do("SET", key, "u", "XX", "PX", "600000")
					if removed, _ := client.Do("DEL", key); removed != any(int64(1)) {
						key = "" // it is not known what it holds
					}
				}
			}
		})
	}
	for n := range 10 {
		r.change(0, 1, 2+(n+1)%2)
	}
	over.Store(true)
	clients.Wait()
	t.Logf("%d LOCKs of which the outcome was not known", len(unknown))
	asked := kit.Connect(t, r.proxies[1])
	for _, key := range unknown {
		kit.Settles(t, func() error {
			if reply, err := asked.Do("GET", key); err != nil || reply != nil {
				return fmt.Errorf("%s is held: %v, %v", key, reply, err)
			}
			return nil
		})
	}
}

// TestLeftoversDoNotStopAChange: two masters each hold two locks of one key when the fifth, which is gone, is replaced: nobody can know which of them was granted
// with its vote. Nobody gets that key until both leases are over, or somebody gives it away; all others are to be had.
func TestLeftoversDoNotStopAChange(t *testing.T) {
	t.Parallel()
	const lease = 30 * time.Second
	r := startRig(t, 2, 5, 6)
	ids := cell.NewSource()
	one, other := ids.Attempt(), ids.Attempt()
	began := time.Now()
	for i, server := range r.servers[:4] {
		for _, key := range []string{"k-ends", "k-given"} {
			held := cell.Envelope(one, "a")
			if i >= 2 {
				held = cell.Envelope(other, "b")
			}
			kit.Must(t, kit.Tell(server, "SET", key, held, "PX", fmt.Sprint(lease.Milliseconds())))
		}
	}
	kit.Must(t, r.links[4].Cut())
	r.nameAll(0, 1, 2, 3, 5)
	kit.Soon(t, func() error {
		if said := r.tryReload(0); strings.HasPrefix(said, "ERR") {
			return errors.New(said)
		}
		return nil
	})
	r.wantVoting(0, 1, 2, 3, 5)
	if took := time.Since(began); took > lease {
		t.Errorf("the new masters vote after %v", took)
	}
	client := kit.Connect(t, r.proxies[1])
	if reply := kit.Do(t, client, "LOCK", "k-other", "t", "PX", "60000"); reply == nil {
		t.Error("another key is refused")
	}
	for _, key := range []string{"k-ends", "k-given"} {
		for _, words := range [][]string{{"LOCK", key, "t", "PX", "60000"}, {"UNLOCK", key, "a"}, {"EXTEND", key, "b", "PX", "60000"}} {
			if reply, failed := kit.Do(t, client, words...).(redistest.RespError); !failed || !strings.HasPrefix(string(reply), "NOQUORUM ") {
				t.Errorf("%v: %v", words, reply)
			}
		}
	}
	kit.Do(t, client, "FORCEUNLOCK", "k-given")
	for _, key := range []string{"k-given", "k-ends"} {
		kit.Soon(t, func() error {
			if reply, failed := kit.Do(t, client, "LOCK", key, "t", "PX", "60000").(redistest.RespError); failed {
				return fmt.Errorf("LOCK of %s: %v", key, reply)
			}
			return nil
		})
		if after := time.Since(began); key == "k-ends" && after < lease {
			t.Errorf("granted %v before the lease of what may be a lock was over", lease-after)
		}
	}
}
