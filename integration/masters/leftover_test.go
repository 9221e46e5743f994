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

// TestLeftoverLocksAfterChange requests locks without contention during changes of the masters.
// Each lock is granted, or the request gets NOQUORUM and the lock is free soon. The locks are taken
// by ballot, because they were just removed by ballot.
func TestLeftoverLocksAfterChange(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	r := startRig(t, 2, 3, 4)
	var stopping atomic.Bool
	var clients sync.WaitGroup
	var mu sync.Mutex
	var unknownKeys []string
	for i := range 16 {
		client := kit.Connect(t, r.proxies[i%2])
		clients.Go(func() {
			for key, n := "", 0; !stopping.Load(); {
				if key == "" {
					key, n = fmt.Sprintf("k-%d-%d", i, n), n+1
				}
				reply, err := client.Do("LOCK", key, "t", "PX", "600000")
				failure, isError := reply.(redistest.RespError)
				switch {
				case err != nil, isError && !strings.HasPrefix(string(failure), "NOQUORUM "):
					t.Errorf("LOCK: %v, %v", reply, err)
					return
				case isError:
					mu.Lock()
					unknownKeys = append(unknownKeys, key)
					mu.Unlock()
					key = ""
				case reply == nil:
					t.Errorf("LOCK of %s, which no other client requests, is refused", key)
					key = ""
				default:
					_, _ = client.Do("SET", key, "u", "XX", "PX", "600000")
					if deleteReply, _ := client.Do("DEL", key); deleteReply != any(int64(1)) {
						key = "" // the state of the key is unknown
					}
				}
			}
		})
	}
	for n := range 10 {
		r.change(0, 1, 2+(n+1)%2)
	}
	stopping.Store(true)
	clients.Wait()
	t.Logf("%d LOCKs of which the outcome was not known", len(unknownKeys))
	reader := kit.Connect(t, r.proxies[1])
	for _, key := range unknownKeys {
		kit.Eventually(t, func() error {
			if reply, err := reader.Do("GET", key); err != nil || reply != nil {
				return fmt.Errorf("%s is held: %v, %v", key, reply, err)
			}
			return nil
		})
	}
}

// TestChangeWithLeftovers leaves two attempts on each of two keys, each attempt on two
// masters. It replaces the fifth, unavailable master, which may have granted either attempt. No
// client gets a key until both leases have expired, or an operator force-unlocks the key. Other
// keys are available.
func TestChangeWithLeftovers(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	const lease = 35 * time.Second
	r := startRig(t, 2, 5, 6)
	startedAt := time.Now()
	r.leaveAttempts(lease, "k-ends", "k-given")
	kit.Must(t, r.links[4].Cut())
	r.writeAllMasters(0, 1, 2, 3, 5)
	kit.Eventually(t, func() error {
		if reply := r.tryReload(0); strings.HasPrefix(reply, "ERR") {
			return errors.New(reply)
		}
		return nil
	})
	r.wantVoting(0, 1, 2, 3, 5)
	if elapsed := time.Since(startedAt); elapsed > lease {
		t.Errorf("the new masters vote after %v", elapsed)
	}
	client := kit.Connect(t, r.proxies[1])
	if reply := kit.Do(t, client, "LOCK", "k-other", "t", "PX", "60000"); reply == nil {
		t.Error("another key is refused")
	}
	for _, key := range []string{"k-ends", "k-given"} {
		for _, words := range [][]string{{"LOCK", key, "t", "PX", "60000"}, {"UNLOCK", key, "a"},
			{"EXTEND", key, "b", "PX", "60000"}} {
			if reply, isError := kit.Do(t, client, words...).(redistest.RespError); !isError ||
				!strings.HasPrefix(string(reply), "NOQUORUM ") {
				t.Errorf("%v: %v", words, reply)
			}
		}
	}
	kit.Do(t, client, "FORCEUNLOCK", "k-given")
	for _, key := range []string{"k-given", "k-ends"} {
		kit.Eventually(t, func() error {
			if reply, isError := kit.Do(t, client, "LOCK", key, "t", "PX", "60000").(redistest.RespError); isError {
				return fmt.Errorf("LOCK of %s: %v", key, reply)
			}
			return nil
		})
		if elapsed := time.Since(startedAt); key == "k-ends" && elapsed < lease {
			t.Errorf("granted %v before the lease of what may be a lock was over", lease-elapsed)
		}
	}
}

// TestCatchUpWithLeftovers repeats TestChangeWithLeftovers for a fifth master that
// loses its data. The master votes again long before a lease expires, and FORCEUNLOCK frees the
// key.
func TestCatchUpWithLeftovers(t *testing.T) {
	t.Parallel()
	const lease = 100 * time.Second
	r := startRig(t, 2, 5, 5)
	// With this lock, no master gets its vote by waiting.
	kit.WantGrant(t, kit.Connect(t, r.proxies[0]), "LOCK", "k-long", "t", "PX", "600000")
	startedAt := time.Now()
	r.leaveAttempts(lease, "k-given")
	kit.Must(t, kit.SendToMaster(r.servers[4], "FLUSHALL"))
	for _, proxy := range r.proxies {
		_, err := proxy.WaitLog(`msg="master in quarantine" master=`+r.links[4].Addr(), kit.WaitLimit)
		kit.Must(t, err)
	}
	r.wantVoting(0, 1, 2, 3, 4)
	client := kit.Connect(t, r.proxies[1])
	kit.Do(t, client, "FORCEUNLOCK", "k-given")
	kit.WantGrant(t, client, "LOCK", "k-given", "t", "PX", "60000")
	if elapsed := time.Since(startedAt); elapsed > lease {
		t.Errorf("it took %v, until the leases were over", elapsed)
	}
}

// leaveAttempts stores one attempt of each key on the first two masters, and another on the next
// two.
func (r *rig) leaveAttempts(lease time.Duration, keys ...string) {
	r.t.Helper()
	ids := cell.NewSource()
	firstCell, secondCell := cell.EncodePlain(ids.Attempt(), "a"), cell.EncodePlain(ids.Attempt(), "b")
	for i, value := range []string{firstCell, firstCell, secondCell, secondCell} {
		for _, key := range keys {
			kit.Must(r.t, kit.SendToMaster(r.servers[i], "SET", key, value, "PX", fmt.Sprint(lease.Milliseconds())))
		}
	}
}
