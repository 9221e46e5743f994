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

// TestWatchedMSetNX lets a client of one proxy watch an absent key. A client of another proxy takes
// the key together with a second key. Then the transaction of the first client fails. A second
// transaction succeeds, because the MSETNX of the other client took nothing.
func TestWatchedMSetNX(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 3)
	watcher, setter := connect(t, f.startProxy(t)), connect(t, f.startProxy(t))

	kit.Want(t, watcher, "OK", "WATCH", "lock:a")
	kit.Want(t, setter, int64(1), "MSETNX", "lock:b", "theirs", "lock:a", "theirs")
	kit.Want(t, watcher, "OK", "MULTI")
	kit.Want(t, watcher, "QUEUED", "SET", "lock:a", "mine")
	kit.Want(t, watcher, nil, "EXEC")
	kit.Want(t, watcher, "theirs", "GET", "lock:a")

	kit.Want(t, watcher, "OK", "WATCH", "lock:c")
	kit.Want(t, setter, int64(0), "MSETNX", "lock:b", "again", "lock:c", "again")
	kit.Want(t, watcher, "OK", "MULTI")
	kit.Want(t, watcher, "QUEUED", "SET", "lock:c", "mine")
	if reply := kit.Do(t, watcher, "EXEC"); reply == nil {
		t.Error("EXEC failed without a change")
	}
	kit.Want(t, setter, "mine", "GET", "lock:c")
}

// TestWatchSideEffects watches absent keys. No master stores a value for them. Other clients can
// take them as if they were not watched, and reads show them as free.
func TestWatchSideEffects(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 3)
	watcher, otherClient := connect(t, f.startProxy(t)), connect(t, f.startProxy(t))
	keys := []string{"lock:looked", "lock:taken", "lock:fenced", "lock:put"}
	kit.Want(t, watcher, "OK", append([]string{"WATCH"}, keys...)...)
	kit.Must(t, f.checkPresence(t, A, false, keys))
	kit.Must(t, kit.CheckSameCells(f.masters, keys...))
	kit.WantPrefix(t, otherClient, "LOCKINFO lock:looked", "[state free")
	wantGrant(t, otherClient, "LOCK", "lock:taken", "t", "PX", longTTL)
	f.wantHolders(t, "lock:taken", "t", A, B, C)
	for i, master := range f.masters {
		if value, _ := readKeys(t, master, "lock:taken")[0].value.(string); !strings.HasPrefix(value, "#p") {
			t.Errorf("%s has %q, which is not the value after a LOCK of a free key", letters([]int{i}), value)
		}
	}
	wantFence(t, otherClient, "lock:fenced", "t")
	kit.Want(t, otherClient, "OK", "SET", "lock:put", "t")
}

// TestWatchDuringHang watches absent keys while C, one of three masters, hangs or is cut off. When
// C is back and B has died, the keys can be taken.
func TestWatchDuringHang(t *testing.T) {
	t.Parallel()
	for _, missing := range []absence{hangingMasters, cutOffMasters} {
		t.Run("C "+missing.name, func(t *testing.T) {
			t.Parallel()
			f := startFleet(t, 3)
			watchProxy, lockProxy := f.startProxy(t), f.startProxy(t)
			keys := []string{"lock:locked", "lock:set", "lock:got"}
			endAbsence := missing.begin(t, f, C)
			kit.Want(t, connect(t, watchProxy), "OK", append([]string{"WATCH"}, keys...)...)
			endAbsence()
			watchProxy.wantVoting(t)
			lockProxy.wantVoting(t)
			kit.Must(t, f.masters[B].Kill())
			client := connect(t, lockProxy)
			wantGrant(t, client, "LOCK", keys[0], "t", "PX", longTTL)
			kit.Want(t, client, "OK", "SET", keys[1], "t", "NX")
			kit.Want(t, client, nil, "GET", keys[2])
		})
	}
}

// TestWatchOfAbsentKey checks that a key that is absent both at the WATCH and at the EXEC counts as
// unchanged. A key that exists at the EXEC counts as changed.
func TestWatchOfAbsentKey(t *testing.T) {
	t.Parallel()
	for _, masters := range []int{3, 5} {
		t.Run(fmt.Sprintf("%d masters", masters), func(t *testing.T) {
			t.Parallel()
			f := startFleet(t, masters)
			first, second := f.startProxy(t), f.startProxy(t)
			watcher := connect(t, first)
			for i, c := range []struct {
				concurrentCommands string // commands of another client, through either proxy
				wantSuccess        bool
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
				for number, p := range []*proxy{first, second} {
					h := history{name: fmt.Sprint(i)}
					key, otherClient := fmt.Sprintf("lock:%d:%d", i, number), connect(t, p)
					kit.Want(t, watcher, "OK", "WATCH", key)
					h.runCommands(t, []*redistest.Client{otherClient}, c.concurrentCommands, key)
					kit.Want(t, watcher, "OK", "MULTI")
					kit.Want(t, watcher, "QUEUED", "SET", key, "mine")
					if reply := kit.Do(t, watcher, "EXEC"); (reply != nil) != c.wantSuccess || kit.IsNoQuorum(reply) {
						t.Errorf("%q through proxy %d: EXEC: %v, want success: %v", c.concurrentCommands, number, reply, c.wantSuccess)
					}
				}
			}
		})
	}
}

// TestWatcherUsesKey watches an absent key, which another client sets and removes again. The
// watching client uses the key in between, with any command. Its transaction fails, because the key
// existed after the watch began.
func TestWatcherUsesKey(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 3)
	watcher, otherClient := connect(t, f.startProxy(t)), connect(t, f.startProxy(t))
	for i, command := range [][]string{{"GET", ""}, {"EXISTS", ""}, {"PTTL", ""}, {"STRLEN", ""}, {"MGET", ""},
		{"SET", "", "mine", "NX"}, {"LOCK", "", "mine", "PX", "60000"}, {"UNLOCK", "", "o"},
		{"EVAL", "return redis.call('get', KEYS[1])", "1", ""}, {"DEL", ""}} {
		key := fmt.Sprint("lock:", i)
		words := slices.Clone(command)
		words[slices.Index(words, "")] = key
		kit.Want(t, watcher, "OK", "WATCH", key)
		kit.Want(t, otherClient, "OK", "SET", key, "o")
		if reply := kit.Do(t, watcher, words...); kit.IsNoQuorum(reply) {
			t.Fatalf("%v: %v", words, reply)
		}
		kit.Do(t, otherClient, "DEL", key)
		kit.Want(t, watcher, "OK", "MULTI")
		kit.Want(t, watcher, "QUEUED", "SET", key, "mine")
		if reply := kit.Do(t, watcher, "EXEC"); reply != nil {
			t.Errorf("after %v: EXEC: %v", words, reply)
		}
	}
}

// TestWatchersOfAbsentKey lets clients of two proxies watch the same absent key, and set it to
// different values in transactions. Exactly one transaction succeeds, unless a result is unknown.
func TestWatchersOfAbsentKey(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		masters       int
		pausedMasters []int
	}{{3, nil}, {5, nil}, {5, []int{D, E}}} {
		t.Run(fmt.Sprintf("%d masters without %s", c.masters, letters(c.pausedMasters)), func(t *testing.T) {
			t.Parallel()
			const rounds = 100
			f := startFleet(t, c.masters)
			proxies := []*proxy{f.startProxy(t), f.startProxy(t)}
			var clients []*redistest.Client
			for i := range 4 {
				clients = append(clients, connect(t, proxies[i%2]))
			}
			for _, i := range c.pausedMasters {
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
				winner, anyUnknown := -1, false
				for i, reply := range replies {
					switch got := <-reply; {
					case got == nil:
					case kit.IsNoQuorum(got):
						anyUnknown = true
					case winner >= 0:
						t.Errorf("round %d: the transactions of clients %d and %d both succeeded", round, winner, i)
					default:
						winner = i
					}
				}
				value := kit.Do(t, clients[0], "GET", key)
				if winner >= 0 && value != any(fmt.Sprint(winner)) || winner < 0 && !anyUnknown {
					t.Errorf("round %d: client %d succeeded, and the key has the value %v", round, winner, value)
				}
			}
		})
	}
}
