//go:build integration

package locks

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/faults"
	"redlock-proxy/integration/holdings"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// TestSharedCommands checks LOCK … SHARED and SLOTS, and the replies of other commands about such
// a lock, at two proxies.
func TestSharedCommands(t *testing.T) {
	masters := redistest.URLs(kit.StartMasters(t)[:3])
	one := kit.Connect(t, kit.StartProxy(t, masters, "--lock-keys", "lock:*"))
	two := kit.Connect(t, kit.StartProxy(t, masters, "--lock-keys", "lock:*"))
	const key = "lock:s"
	kit.WantGrant(t, one, "LOCK", key, "r1", "PX", "60000", "SHARED")
	kit.WantGrant(t, two, "LOCK", key, "r2", "PX", "60000", "SHARED")
	kit.Want(t, one, nil, "LOCK", key, "r2", "PX", "60000", "SHARED")
	kit.Want(t, two, nil, "LOCK", key, "w", "PX", "60000")
	kit.WantGrant(t, one, "EXTEND", key, "r2", "PX", "90000")
	for _, words := range []string{"GET " + key, "HGETALL " + key, "GETSET " + key + " x", "EXPIRE " + key + " 9", "RENAME " + key + " " + key + "2",
		"PERSIST " + key, "SET " + key + " x PX 1000 GET", "APPEND " + key + " x"} {
		reply := kit.Do(t, two, strings.Fields(words)...)
		if text := fmt.Sprint(reply); !strings.HasPrefix(text, "WRONGTYPE ") && !strings.Contains(text, "same hash tag") {
			t.Errorf("%s: %v", words, reply)
		}
	}
	if reply := kit.Do(t, two, "TYPE", key); fmt.Sprint(reply) != "lock" {
		t.Errorf("TYPE: %v", reply)
	}
	kit.Want(t, two, nil, "SET", key, "x", "NX", "PX", "1000")
	kit.Want(t, two, int64(1), "EXISTS", key)
	if left, ok := kit.Do(t, one, "PTTL", key).(int64); !ok || left < 80000 || left > 90000 {
		t.Errorf("PTTL: %v", left)
	}
	if reply := fmt.Sprint(kit.Do(t, one, "LOCK", key, "s", "PX", "1000", "SLOTS", "5")); !strings.Contains(reply, "SHARED") || !strings.Contains(reply, "SLOTS 5") {
		t.Errorf("SLOTS of a shared lock: %s", reply)
	}
	info := fmt.Sprint(kit.Do(t, one, "LOCKINFO", key))
	for _, want := range []string{"state held", "slots", "holders [[left ", "kept 0] [left "} {
		if !strings.Contains(info, want) {
			t.Errorf("LOCKINFO has no %q: %s", want, info)
		}
	}
	kit.Want(t, two, int64(0), "FORCEUNLOCK", key, "r3")
	kit.Want(t, two, int64(1), "FORCEUNLOCK", key, "r1")
	kit.Want(t, one, int64(0), "UNLOCK", key, "r1")
	kit.Want(t, one, int64(1), "UNLOCK", key, "r2")
	kit.WantGrant(t, two, "LOCK", key, "w", "PX", "60000")
	kit.Want(t, one, nil, "LOCK", key, "r1", "PX", "60000", "SHARED")
	kit.Want(t, one, int64(1), "FORCEUNLOCK", key, "w")
	for _, token := range []string{"a", "b", "c"} {
		kit.WantGrant(t, two, "LOCK", key, token, "PX", "60000", "SLOTS", "3")
	}
	kit.Want(t, one, nil, "LOCK", key, "d", "PX", "60000", "SLOTS", "3")
	kit.Want(t, one, int64(1), "FORCEUNLOCK", key)
	kit.WantGrant(t, one, "LOCK", key, "d", "PX", "60000", "SLOTS", "2")
	kit.Want(t, one, int64(1), "DEL", key)
	kit.WantGrant(t, two, "LOCK", key, "w", "PX", "60000")
}

// TestSharedAndSeveral checks MLOCK, MEXTEND and MUNLOCK with keys that have several holders.
func TestSharedAndSeveral(t *testing.T) {
	f := kit.StartLinkedFleet(t, 2)
	one, two := kit.Connect(t, f.Proxies[0]), kit.Connect(t, f.Proxies[1])
	for _, words := range []string{"SHARED", "SLOTS 2"} {
		if reply := fmt.Sprint(kit.Do(t, one, strings.Fields("MLOCK 2 a b me PX 60000 "+words)...)); !strings.Contains(reply, "MLOCK takes exclusive locks only") {
			t.Errorf("MLOCK with %s: %s", words, reply)
		}
		for _, token := range []string{"r1", "r2"} {
			kit.WantGrant(t, one, append([]string{"LOCK", "b", token, "PX", "60000"}, strings.Fields(words)...)...)
		}
		kit.WantReply(t, one, "MLOCK 2 a b me PX 60000", nil)
		kit.WantReply(t, two, "MLOCK 2 b a me PX 60000", nil)
		kit.WantGrant(t, two, "LOCK", "a", "r1", "PX", "60000")
		kit.WantGrant(t, two, "MEXTEND", "2", "a", "b", "r1", "PX", "90000", "KEEPALIVE")
		kit.WantReply(t, two, "MEXTEND 2 a b r2 PX 90000", nil)
		if info := fmt.Sprint(kit.Do(t, two, "LOCKINFO", "b")); strings.Count(info, "kept 1") != 1 {
			t.Errorf("with %s one holder is kept: %s", words, info)
		}
		kit.WantReply(t, two, "MUNLOCK 2 a b r1", int64(2))
		kit.WantReply(t, one, "MLOCK 2 a b me PX 60000", nil)
		kit.WantReply(t, one, "MUNLOCK 2 a b r2", int64(1))
		kit.WantGrant(t, one, "MLOCK", "2", "a", "b", "me", "PX", "60000", "BLOCK", "10000")
		kit.WantReply(t, two, "LOCK b r1 PX 60000 "+words, nil)
		kit.WantReply(t, one, "MUNLOCK 2 a b me", int64(2))
	}
}

// TestSharedTokenOfAnotherKind checks that a client extends and releases an exclusive lock through
// a proxy that granted a shared lock with the same token, which was released through another proxy.
func TestSharedTokenOfAnotherKind(t *testing.T) {
	t.Parallel()
	proxies := startProxyPair(t)
	one, two := kit.Connect(t, proxies[0]), kit.Connect(t, proxies[1])
	for _, words := range []string{"SHARED", "SLOTS 2"} {
		kit.WantGrant(t, one, append([]string{"LOCK", "k", "me", "PX", "60000"}, strings.Fields(words)...)...)
		kit.Want(t, two, int64(1), "UNLOCK", "k", "me")
		kit.WantGrant(t, two, "LOCK", "k", "me", "PX", "60000")
		kit.WantGrant(t, one, "EXTEND", "k", "me", "PX", "90000")
		kit.Want(t, one, int64(1), "UNLOCK", "k", "me")
	}
}

// TestSharedWriterOfDeadProxy checks that readers get a lock again within 3 s after the proxy of a
// waiting writer was killed, and that the present readers keep the lock.
func TestSharedWriterOfDeadProxy(t *testing.T) {
	t.Parallel()
	f := kit.StartFleet(t)
	for range 2 {
		f.Proxies = append(f.Proxies, kit.StartProxy(t, redistest.URLs(f.Masters)))
	}
	f.WantVoting(t, 5)
	one, two := kit.Connect(t, f.Proxies[0]), kit.Connect(t, f.Proxies[1])
	kit.WantGrant(t, one, "LOCK", "k", "r1", "PX", "60000", "SHARED")
	writer := kit.Connect(t, f.Proxies[2])
	kit.Must(t, writer.Send(redistest.AppendCommand(nil, "LOCK", "k", "w", "PX", "60000", "BLOCK", "60000")))
	n := 0
	kit.Await(t, "the waiting writer keeps readers out", func() bool {
		n++
		token := fmt.Sprint("early", n)
		if kit.Do(t, two, "LOCK", "k", token, "PX", "60000", "SHARED") == nil {
			return true
		}
		kit.Want(t, two, int64(1), "UNLOCK", "k", token)
		return false
	})
	kit.Must(t, f.Proxies[2].Kill())
	start := time.Now()
	kit.WantGrant(t, two, "LOCK", "k", "r2", "PX", "60000", "SHARED", "BLOCK", "20000")
	elapsed := time.Since(start)
	if t.Logf("a reader got the lock after %v", elapsed); elapsed > 3*time.Second+kit.WaitLimit/10 {
		t.Errorf("a reader got the lock only after %v", elapsed)
	}
	kit.WantGrant(t, one, "LOCK", "k", "r3", "PX", "60000", "SHARED")
	for _, token := range []string{"r1", "r2", "r3"} {
		kit.Want(t, two, int64(1), "UNLOCK", "k", token)
	}
	kit.WantGrant(t, one, "LOCK", "k", "w", "PX", "60000")
}

// TestSharedExpiry checks that the lease of each holder expires independently, even if no other
// holder releases the lock.
func TestSharedExpiry(t *testing.T) {
	masters := redistest.URLs(kit.StartMasters(t)[:3])
	one, two := kit.Connect(t, kit.StartProxy(t, masters)), kit.Connect(t, kit.StartProxy(t, masters))
	start := time.Now()
	kit.WantGrant(t, one, "LOCK", "k", "long", "PX", "3000", "SLOTS", "2")
	kit.WantGrant(t, two, "LOCK", "k", "short", "PX", "1000", "SLOTS", "2")
	kit.WantGrant(t, two, "LOCK", "k", "next", "PX", "60000", "SLOTS", "2", "BLOCK", "20000")
	if elapsed := time.Since(start); elapsed < time.Second {
		t.Errorf("the third of two got the lock after %v", elapsed)
	}
	kit.Want(t, one, int64(1), "UNLOCK", "k", "next")
	kit.WantGrant(t, one, "LOCK", "k", "writer", "PX", "1000", "BLOCK", "20000")
	if elapsed := time.Since(start); elapsed < 3*time.Second {
		t.Errorf("a writer got the lock after %v", elapsed)
	}
}

// TestSharedExpiryOfSeveral checks that commands on several keys get a key whose holders have
// expired without a release, before the key expires on the masters.
func TestSharedExpiryOfSeveral(t *testing.T) {
	masters := redistest.URLs(kit.StartMasters(t)[:3])
	one := kit.Connect(t, kit.StartProxy(t, masters, "--lock-keys", "lock:*"))
	two := kit.Connect(t, kit.StartProxy(t, masters, "--lock-keys", "lock:*"))
	share := func(key string) {
		t.Helper()
		kit.WantGrant(t, one, "LOCK", key, "long", "PX", "60000", "SHARED")
		kit.WantGrant(t, two, "LOCK", key, "short", "PX", "3000", "SHARED")
		kit.Want(t, one, int64(1), "FORCEUNLOCK", key, "long")
	}
	start := time.Now()
	share("lock:a")
	kit.WantReply(t, two, "MSETNX lock:a 1 lock:b 2", int64(0))
	kit.WantGrant(t, one, "MLOCK", "2", "lock:b", "lock:a", "me", "PX", "60000", "BLOCK", "20000")
	if elapsed := time.Since(start); elapsed < 3*time.Second {
		t.Errorf("MLOCK got the keys after %v", elapsed)
	}
	share("lock:c")
	time.Sleep(3100 * time.Millisecond) // the TTL of the only holder ends
	kit.WantReply(t, two, "MSETNX lock:c 1 lock:d 2", int64(1))
	kit.WantReply(t, one, "GET lock:c", "1")
}

// TestSharedKeepalive checks that the proxy renews the lease of each holder independently.
func TestSharedKeepalive(t *testing.T) {
	proxies := startProxyPair(t)
	clients := []*redistest.Client{kit.Connect(t, proxies[0]), kit.Connect(t, proxies[0]), kit.Connect(t, proxies[1])}
	const ttl = keptTTL * 3 / 4 // the test waits several times for as long
	for i, client := range clients {
		kit.WantGrant(t, client, "LOCK", "k", fmt.Sprint("t", i), "PX", kit.Millis(ttl), "KEEPALIVE", "SHARED")
	}
	other := kit.Connect(t, proxies[1])
	wantTaken(t, other, "k", ttl*6/5)
	kit.WantReleased(t, other, "k", "t0")
	clients[1].Close() // its lease ends
	wantTaken(t, other, "k", ttl*4/3)
	kit.Want(t, other, int64(0), "UNLOCK", "k", "t1")
	kit.WantGrant(t, other, "EXTEND", "k", "t2", "PX", kit.Millis(ttl), "KEEPALIVE") // another client takes it over
	clients[2].Close()
	wantTaken(t, kit.Connect(t, proxies[0]), "k", ttl*6/5)
	kit.WantReleased(t, other, "k", "t2")
	kit.WantGrant(t, other, "LOCK", "k", "w", "PX", "1000")
}

// sharedGrants is the default number of grants for which each contest of TestSharedOverlap waits.
const sharedGrants = 1_500

// TestSharedOverlap lets readers and writers, and clients of a lock with slots, compete at two
// proxies, while a minority of the masters is stopped, disconnected, killed and continued at
// random. A writer never holds the lock with another client, and there are never more holders than
// slots.
func TestSharedOverlap(t *testing.T) {
	for name, words := range map[string][]string{"readers": {"SHARED"}, "slots": {"SLOTS", "5"}} {
		t.Run(name, func(t *testing.T) {
			grants, seed := kit.SizeFrom(t, grantsEnv, sharedGrants), kit.NumberFrom(t, kit.SeedEnv, rand.Uint64())
			t.Logf("%d grants wanted (%s); seed %d (%s)", grants, grantsEnv, seed, kit.SeedEnv)
			f := kit.StartLinkedFleet(t, 2)
			c := holdings.NewContest()
			for i := range contenderCount {
				s := &sharer{
					contender: contender{
						contest: c, name: strconv.Itoa(i), client: kit.Connect(t, f.Proxies[i%len(f.Proxies)]),
						random: rand.New(rand.NewPCG(seed, uint64(i)+2)), hold: randomHoldTime,
					},
					words: words,
				}
				s.client.SetTimeout(time.Minute)
				c.AddClient(s.name, s.runTurn)
			}
			disturber := faults.StartDisturber(f, seed, append(faults.FaultsWithoutDataLoss(), crashFault())...)
			waitErr := c.WaitFor(t, int(grants))
			faultCounts, err := disturber.Stop()
			c.Stop()
			c.Report(t)
			t.Logf("the masters were disturbed: %v", faultCounts)
			kit.Must(t, errors.Join(waitErr, err))
			most := 0
			conflicts := c.History.Conflicts(func(together []holdings.Holding) bool {
				most = max(most, len(together))
				writers := 0
				for _, h := range together {
					if strings.HasPrefix(h.Token, writerToken) {
						writers++
					}
				}
				return writers > 0 && len(together) > 1 || name == "slots" && len(together) > 5
			})
			if len(conflicts) > 0 {
				t.Errorf("%d CONFLICTS in %d grants, such as: %v", len(conflicts), c.History.Count(), conflicts[0])
			}
			if t.Logf("at most %d holders together", most); most < 2 {
				t.Error("no lock had several holders: the test shows nothing")
			}
		})
	}
}

// crashFault returns the fault in which a master dies, and returns with the data that it has
// written to disk.
func crashFault() faults.Fault {
	return faults.Fault{
		Name:   "killed, and back with its data",
		Cause:  func(f *kit.Fleet, i int) error { return f.Masters[i].Kill() },
		Repair: func(f *kit.Fleet, i int) error { return f.Masters[i].RestartWithData() },
	}
}

// writerToken begins the tokens of clients that take the lock exclusively.
const writerToken = "w"

// sharer is a client that usually shares the lock, and sometimes takes it exclusively.
type sharer struct {
	contender
	words []string
}

func (s *sharer) runTurn(token string) {
	words := append([]string{"LOCK", contestedKey, token, "PX", kit.Millis(lease), "BLOCK", "10000"}, s.words...)
	if s.random.IntN(8) == 0 {
		words = words[:len(words)-len(s.words)]
		words[2] = writerToken + token
	}
	received, until := s.requestLock(words...)
	if until == 0 {
		time.Sleep(5 * time.Millisecond) // another error may follow immediately
		return
	}
	holdTime := s.hold(s.random)
	time.Sleep(holdTime) // the client holds the lock
	if holdTime > lease || s.random.IntN(20) == 0 {
		_, extended := s.requestLock("EXTEND", contestedKey, words[2], "PX", kit.Millis(lease))
		until = max(until, extended)
	}
	s.contest.AddHolding(holdings.NewHolding(words[2], received, until, s.contest.History.Now()))
	reply, err := s.client.Do("UNLOCK", contestedKey, words[2])
	s.contest.CountReply("UNLOCK", reply, err)
}
