//go:build integration

package schedules

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// TestWatchedMSetNX: a client of one proxy watches an absent key, and a client of another proxy
// takes it together with a second key. Then the transaction of the first client fails. It succeeds
// if the second client took nothing.
func TestWatchedMSetNX(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 3)
	one, other := connect(t, f.proxy(t)), connect(t, f.proxy(t))

	kit.Want(t, one, "OK", "WATCH", "lock:a")
	kit.Want(t, other, int64(1), "MSETNX", "lock:b", "theirs", "lock:a", "theirs")
	kit.Want(t, one, "OK", "MULTI")
	kit.Want(t, one, "QUEUED", "SET", "lock:a", "mine")
	kit.Want(t, one, nil, "EXEC")
	kit.Want(t, one, "theirs", "GET", "lock:a")

	kit.Want(t, one, "OK", "WATCH", "lock:c")
	kit.Want(t, other, int64(0), "MSETNX", "lock:b", "again", "lock:c", "again")
	kit.Want(t, one, "OK", "MULTI")
	kit.Want(t, one, "QUEUED", "SET", "lock:c", "mine")
	if reply := kit.Do(t, one, "EXEC"); reply == nil {
		t.Error("EXEC was told of a change, and there was none")
	}
	kit.Want(t, other, "mine", "GET", "lock:c")
}

// TestWatchLeavesNothing: a client watches absent keys. No master stores a value for them, other
// clients can take them as if they were not watched, and reads show them as free.
func TestWatchLeavesNothing(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 3)
	watcher, other := connect(t, f.proxy(t)), connect(t, f.proxy(t))
	keys := []string{"lock:looked", "lock:taken", "lock:fenced", "lock:put"}
	kit.Want(t, watcher, "OK", append([]string{"WATCH"}, keys...)...)
	kit.Must(t, f.hold(t, A, false, keys))
	kit.Must(t, kit.Agree(f.masters, keys...))
	kit.Does(t, other, "LOCKINFO lock:looked", "[state free")
	wantGrant(t, other, "LOCK", "lock:taken", "t", "PX", longTime)
	f.wantHolders(t, "lock:taken", "t", A, B, C)
	for i, master := range f.masters {
		if value, _ := look(t, master, "lock:taken")[0].value.(string); !strings.HasPrefix(value, "#p") {
			t.Errorf("%s holds %q, which is not as a LOCK of a free key leaves it", names([]int{i}), value)
		}
	}
	wantFence(t, other, "lock:fenced", "t")
	kit.Want(t, other, "OK", "SET", "lock:put", "t")
}

// TestWatchBesideAHang: one of three masters hangs while a client watches an absent key. When this
// master is back and another one has died, the key can be taken.
func TestWatchBesideAHang(t *testing.T) {
	t.Parallel()
	for _, away := range []absence{hang, cut} {
		t.Run("C "+away.name, func(t *testing.T) {
			t.Parallel()
			f := startFleet(t, 3)
			watching, taking := f.proxy(t), f.proxy(t)
			keys := []string{"lock:locked", "lock:set", "lock:got"}
			back := away.begin(t, f, C)
			kit.Want(t, connect(t, watching), "OK", append([]string{"WATCH"}, keys...)...)
			back()
			watching.wantVoting(t)
			taking.wantVoting(t)
			kit.Must(t, f.masters[B].Kill())
			client := connect(t, taking)
			wantGrant(t, client, "LOCK", keys[0], "t", "PX", longTime)
			kit.Want(t, client, "OK", "SET", keys[1], "t", "NX")
			kit.Want(t, client, nil, "GET", keys[2])
		})
	}
}

// TestWatchOfNothing: a key that is absent both at the WATCH and at the EXEC counts as unchanged; a
// key that exists at the EXEC counts as changed.
func TestWatchOfNothing(t *testing.T) {
	t.Parallel()
	for _, masters := range []int{3, 5} {
		t.Run(fmt.Sprintf("%d masters", masters), func(t *testing.T) {
			t.Parallel()
			f := startFleet(t, masters)
			one, two := f.proxy(t), f.proxy(t)
			watcher := connect(t, one)
			for i, c := range []struct {
				meanwhile string // commands of another client, through either proxy
				done      bool
			}{
				{"", true},
				{"GET KEY", true},
				{"LOCK KEY o PX 60000|UNLOCK KEY o", true},
				{"SET KEY o|DEL KEY", true},
				{"SET KEY o|SET KEY p|FORCEUNLOCK KEY", true},
				{"LOCK KEY o PX 60000", false},
				{"SET KEY o NX", false},
				{"SET KEY o|DEL KEY|SET KEY o", false},
				{"HSET KEY f v", false},
				{"WATCH KEY|MULTI|SET KEY o|EXEC", false},
			} {
				for through, p := range []*proxy{one, two} {
					h := history{name: fmt.Sprint(i)}
					key, other := fmt.Sprintf("lock:%d:%d", i, through), connect(t, p)
					kit.Want(t, watcher, "OK", "WATCH", key)
					h.send(t, []*redistest.Client{other}, c.meanwhile, key)
					kit.Want(t, watcher, "OK", "MULTI")
					kit.Want(t, watcher, "QUEUED", "SET", key, "mine")
					if reply := kit.Do(t, watcher, "EXEC"); (reply != nil) != c.done || isNoQuorum(reply) {
						t.Errorf("%q through proxy %d: EXEC: %v, want it done: %v", c.meanwhile, through, reply, c.done)
					}
				}
			}
		})
	}
}

// TestWatcherFinds: a client watches an absent key, and another client sets it and removes it
// again. The first client used the key in between, with any command. Its transaction fails, because
// the key existed after the watch began.
func TestWatcherFinds(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 3)
	watcher, other := connect(t, f.proxy(t)), connect(t, f.proxy(t))
	for i, own := range [][]string{{"GET", ""}, {"EXISTS", ""}, {"PTTL", ""}, {"STRLEN", ""}, {"MGET", ""},
		{"SET", "", "mine", "NX"}, {"LOCK", "", "mine", "PX", "60000"}, {"UNLOCK", "", "o"},
		{"EVAL", "return redis.call('get', KEYS[1])", "1", ""}, {"DEL", ""}} {
		key := fmt.Sprint("lock:", i)
		words := slices.Clone(own)
		words[slices.Index(words, "")] = key
		kit.Want(t, watcher, "OK", "WATCH", key)
		kit.Want(t, other, "OK", "SET", key, "o")
		if reply := kit.Do(t, watcher, words...); isNoQuorum(reply) {
			t.Fatalf("%v: %v", words, reply)
		}
		kit.Do(t, other, "DEL", key)
		kit.Want(t, watcher, "OK", "MULTI")
		kit.Want(t, watcher, "QUEUED", "SET", key, "mine")
		if reply := kit.Do(t, watcher, "EXEC"); reply != nil {
			t.Errorf("after %v: EXEC: %v", words, reply)
		}
	}
}

// TestWatchersOfNothing: clients of two proxies watch the same absent key, and each sets it to its
// own value. Exactly one of them succeeds.
func TestWatchersOfNothing(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		masters int
		away    []int
	}{{3, nil}, {5, nil}, {5, []int{D, E}}} {
		t.Run(fmt.Sprintf("%d masters without %s", c.masters, names(c.away)), func(t *testing.T) {
			t.Parallel()
			const rounds = 100
			f := startFleet(t, c.masters)
			proxies := []*proxy{f.proxy(t), f.proxy(t)}
			var clients []*redistest.Client
			for i := range 4 {
				clients = append(clients, connect(t, proxies[i%2]))
			}
			for _, i := range c.away {
				kit.Must(t, f.masters[i].Pause())
			}
			for round := range rounds {
				key := fmt.Sprint("lock:", round)
				for _, client := range clients {
					kit.Want(t, client, "OK", "WATCH", key)
					kit.Want(t, client, "OK", "MULTI")
				}
				for i, client := range clients {
					kit.Want(t, client, "QUEUED", "SET", key, fmt.Sprint(i))
				}
				var replies []<-chan any
				for _, client := range clients {
					replies = append(replies, sendAsync(client, "EXEC"))
				}
				done, unknown := -1, false
				for i, reply := range replies {
					switch got := <-reply; {
					case got == nil:
					case isNoQuorum(got):
						unknown = true
					case done >= 0:
						t.Errorf("round %d: the clients %d and %d both did it", round, done, i)
					default:
						done = i
					}
				}
				holds := kit.Do(t, clients[0], "GET", key)
				if done >= 0 && holds != any(fmt.Sprint(done)) || done < 0 && !unknown {
					t.Errorf("round %d: client %d did it, and the key holds %v", round, done, holds)
				}
			}
		})
	}
}
