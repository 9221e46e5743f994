//go:build integration

package guard

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
	"redlock-proxy/quorum/guard/script"
)

// lossCase is a way in which a master can lose a lock that it has granted.
type lossCase struct {
	name    string
	db      string                               // the database of the lock
	prepare func(*redistest.Server) error        // called before the lock is taken
	lose    func(f *kit.Fleet, master int) error // called for a master that holds the lock
}

func lossCases() []lossCase {
	nothing := func(*redistest.Server) error { return nil }
	return []lossCase{
		{"killed without its data", "0", nothing, func(f *kit.Fleet, i int) error { return f.Masters[i].Restart() }},
		{"FLUSHALL", "0", nothing, func(f *kit.Fleet, i int) error { return kit.SendToMaster(f.Masters[i], "FLUSHALL") }},
		{"FLUSHDB of the lock's database", "5", nothing, func(f *kit.Fleet,
			i int) error {
			return kit.SendToDatabase(f.Masters[i], "5", "FLUSHDB")
		}},
		{"replica of another and back", "0", nothing, replicate},
		{"restarted from an older RDB", "0", func(r *redistest.Server) error { return kit.SendToMaster(r, "SAVE") },
			func(f *kit.Fleet, i int) error { return f.Masters[i].RestartWithData() }},
	}
}

// replicate makes a master a replica of the last master, which does not hold the lock. When the
// replica has synchronised, it becomes a master again.
func replicate(f *kit.Fleet, i int) error {
	host, port, _ := strings.Cut(f.Masters[len(f.Masters)-1].Addr(), ":")
	if err := kit.SendToMaster(f.Masters[i], "REPLICAOF", host, port); err != nil {
		return err
	}
	for end := time.Now().Add(kit.WaitLimit); ; time.Sleep(5 * time.Millisecond) {
		info, err := kit.QueryDatabase(f.Masters[i], "0", "INFO", "replication")
		switch text, _ := info.(string); {
		case err != nil:
			return err
		case strings.Contains(text, "master_link_status:up"):
			return kit.SendToMaster(f.Masters[i], "REPLICAOF", "NO", "ONE")
		case time.Now().After(end):
			return fmt.Errorf("master %s does not synchronise: %s", f.Masters[i].Addr(), text)
		}
	}
}

// TestLockLossOnMaster takes a lock on three masters of five. One of these masters loses the lock,
// and a rival at another proxy tries repeatedly to take it. With the guard off, the rival gets the
// lock. With the guard on, the rival does not get the lock before the release, even after the
// master votes again.
func TestLockLossOnMaster(t *testing.T) {
	for _, loss := range lossCases() {
		for _, guard := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, guard %v", loss.name, guard), func(t *testing.T) {
				t.Parallel()
				masters := kit.StartMasters(t)
				// In one loss case, masters[2] becomes a replica of this master.
				masters[4] = kit.StartSameVersion(t, masters[2])
				f := kit.LinkFleet(t, masters, 2, "--guard="+strconv.FormatBool(guard))
				holder, rival := kit.Connect(t, f.Proxies[0]), kit.Connect(t, f.Proxies[1])
				for _, client := range []*redistest.Client{holder, rival} {
					kit.Want(t, client, "OK", "SELECT", loss.db)
					// With this LOCK, every proxy uses the database.
					kit.Do(t, client, "LOCK", "warm", "w", "PX", "60000")
				}
				kit.Must(t, loss.prepare(f.Masters[2]))
				holdOnThree(t, f, holder, loss.db)
				kit.Must(t, loss.lose(f, 2))
				switch isStolen := kit.TryLockAgain(t, rival); {
				case !guard && !isStolen:
					t.Error("the lock was not granted twice with the guard off, so this shows nothing")
				case guard && isStolen:
					t.Error("the lock was granted twice")
				case guard:
					f.WantVoting(t, 5)
					if kit.TryLockAgain(t, rival) {
						t.Error("the lock was granted twice when all voted again")
					}
					kit.Want(t, holder, int64(1), "UNLOCK", "k", "t")
					kit.WantGrant(t, rival, "LOCK", "k", "u", "PX", "60000")
				}
			})
		}
	}
}

// holdOnThree takes the lock k with the token t while the last two masters are unreachable.
func holdOnThree(t *testing.T, f *kit.Fleet, client *redistest.Client, db string) {
	t.Helper()
	f.RunWhileUnreachable(t, []int{3, 4}, func() { kit.WantGrant(t, client, "LOCK", "k", "t", "PX", "60000") })
	kit.EachMaster(t, f.Masters[:3], func(master *redistest.Server) error { return kit.CheckToken(master, db, "k", "t") })
	kit.EachMaster(t, f.Masters[3:], func(master *redistest.Server) error { return kit.CheckToken(master, db, "k", nil) })
}

// TestSuccessiveDataLoss restarts the masters without their data, each as soon as the previous
// master votes again. In the end the lock is still held on all masters.
func TestSuccessiveDataLoss(t *testing.T) {
	t.Parallel()
	f := kit.StartGuardedFleet(t, true, 2)
	client := kit.Connect(t, f.Proxies[0])
	kit.WantGrant(t, client, "LOCK", "k", "t", "PX", "600000")
	kit.EachMaster(t, f.Masters, func(master *redistest.Server) error { return kit.CheckToken(master, "0", "k", "t") })
	for i, master := range f.Masters {
		kit.Must(t, master.Restart())
		waitAllVoteAfterRestart(t, f, i)
		kit.Must(t, kit.CheckToken(master, "0", "k", "t"))
	}
	kit.Want(t, client, int64(1), "UNLOCK", "k", "t")
}

// waitAllVoteAfterRestart waits until a master that restarted without its data has a marker, and
// then until all masters vote.
func waitAllVoteAfterRestart(t *testing.T, f *kit.Fleet, i int) {
	t.Helper()
	kit.Eventually(t, func() error {
		if marker, err := kit.QueryDatabase(f.Masters[i], "0", "GET", "redlock-proxy:marker"); err != nil || marker == nil {
			return fmt.Errorf("master %s has no marker: %v", f.Masters[i].Addr(), err)
		}
		return nil
	})
	f.WantVoting(t, len(f.Masters))
}

// startDurable starts the given number of masters that write everything to disk before they reply,
// and a proxy, and waits until all masters vote.
func startDurable(t *testing.T, masters int) *kit.Fleet {
	t.Helper()
	f := &kit.Fleet{}
	for range masters {
		f.Masters = append(f.Masters, kit.StartRedis(t, redistest.DurableArgs()...))
	}
	f.Proxies = append(f.Proxies, kit.StartProxy(t, redistest.URLs(f.Masters)))
	f.WantVoting(t, masters)
	return f
}

// restartAll kills all masters at the same moment, and starts them with their data.
func restartAll(t *testing.T, masters []*redistest.Server) {
	t.Helper()
	for _, master := range masters {
		kit.Must(t, master.Kill())
	}
	for _, master := range masters {
		kit.Must(t, master.RestartWithData())
	}
}

// wantHeld waits until LOCK reports that another client holds the lock k.
func wantHeld(t *testing.T, client *redistest.Client) {
	t.Helper()
	kit.Eventually(t, func() error {
		if reply := kit.Do(t, client, "LOCK", "k", "u", "PX", "60000"); reply != nil {
			return fmt.Errorf("LOCK k: got %v, want nil", reply)
		}
		return nil
	})
}

// TestDurableMasterRestart checks that killed masters that write everything to disk vote again
// without waiting for the expiry of locks. They still have every lock that they have granted.
func TestDurableMasterRestart(t *testing.T) {
	t.Parallel()
	f := startDurable(t, 3)
	client := kit.Connect(t, f.Proxies[0])
	kit.WantGrant(t, client, "LOCK", "k", "t", "PX", "600000")
	kit.EachMaster(t, f.Masters, func(master *redistest.Server) error { return kit.CheckToken(master, "0", "k", "t") })
	restartAll(t, f.Masters) // all together, so that no master can copy data from another master
	revivedAt := time.Now()
	wantHeld(t, client)
	f.WantVoting(t, 3)
	t.Logf("all vote again %v after the last was back", time.Since(revivedAt).Round(time.Millisecond))
	for _, master := range f.Masters {
		kit.Must(t, kit.CheckToken(master, "0", "k", "t"))
	}
	kit.WantLogged(t, f.Proxies[0], `because="it has all its data"`)
	if strings.Contains(f.Proxies[0].Log(), `because="all locks that it may have lost have expired"`) {
		t.Error("they were admitted for another reason")
	}
}

// TestFullRestartInFirstSecond kills the masters, which write everything to disk, and the only
// proxy. It does so three times, each time as soon as a majority votes again. So no proxy has time
// to check the masters twice. Nevertheless the masters prove that they have all their data.
func TestFullRestartInFirstSecond(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	f := startDurable(t, 5)
	masters, proxy := f.Masters, f.Proxies[0]
	kit.WantGrant(t, kit.Connect(t, proxy), "LOCK", "k", "t", "PX", "600000")
	time.Sleep(2 * time.Second) // the first second of a fresh start has different rules
	for range 3 {
		kit.Must(t, proxy.Kill())
		restartAll(t, masters)
		revivedAt := time.Now()
		proxy = kit.StartProxy(t, redistest.URLs(masters))
		client := kit.Connect(t, proxy)
		wantHeld(t, client)
		t.Logf("a majority votes %v after the last master was back", time.Since(revivedAt).Round(time.Millisecond))
	}
}

// TestRepeatedFullRestart kills the masters twice. The second time, it also kills the proxy, while
// the masters are in quarantine. The lock stays held.
func TestRepeatedFullRestart(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	f := startDurable(t, 3)
	masters, proxy := f.Masters, f.Proxies[0]
	kit.WantGrant(t, kit.Connect(t, proxy), "LOCK", "k", "t", "PX", "600000")
	time.Sleep(2 * time.Second) // the first second of a fresh start has different rules
	restartAll(t, masters)
	kit.EachMaster(t, masters, func(master *redistest.Server) error {
		if record, err := kit.QueryDatabase(master, "0", "GET", "redlock-proxy:quarantine"); err != nil || record == nil {
			return fmt.Errorf("master %s is not in quarantine: %v", master.Addr(), err)
		}
		return nil
	})
	kit.Must(t, proxy.Kill())
	restartAll(t, masters)
	client := kit.Connect(t, kit.StartProxy(t, redistest.URLs(masters)))
	wantHeld(t, client)
}

// TestFullDataLoss checks that, after all masters have lost their data, no lock is granted until
// the longest TTL in use has passed. Then locks are granted again.
func TestFullDataLoss(t *testing.T) {
	t.Parallel()
	f := kit.StartGuardedFleet(t, true, 1)
	client := kit.Connect(t, f.Proxies[0])
	const ttl = 4 * time.Second
	kit.WantGrant(t, client, "LOCK", "k", "t", "PX", strconv.Itoa(int(ttl.Milliseconds())))
	lockedAt := time.Now()
	for _, master := range f.Masters {
		kit.Must(t, master.Kill())
	}
	for _, master := range f.Masters {
		kit.Must(t, master.Restart())
	}
	wasRefused := false
	for end := time.Now().Add(ttl + kit.WaitLimit); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		reply := kit.Do(t, client, "LOCK", "k", "u", "PX", "4000")
		if text := fmt.Sprint(reply); strings.HasPrefix(text,
			"NOQUORUM 0 of 5 masters vote: 5 restarted without proof of their data, ready in ") && !wasRefused {
			wasRefused = true
			t.Log(text)
		}
		if _, granted := reply.(int64); granted {
			if elapsed := time.Since(lockedAt); elapsed < ttl || !wasRefused {
				t.Errorf("granted %v after the first, and told so before: %v", elapsed, wasRefused)
			}
			return
		}
	}
	t.Error("there is no lock any more")
}

// TestWaitOfUnmarkedMasters checks that, without a fresh start, a proxy does not trust masters
// without a marker.
func TestWaitOfUnmarkedMasters(t *testing.T) {
	t.Parallel()
	masters := kit.StartMasters(t)
	proxy := kit.StartProxy(t, redistest.URLs(masters), "--fresh-start=false", "--max-ttl", "30s")
	text := fmt.Sprint(kit.Do(t, kit.Connect(t, proxy), "LOCK", "k", "t", "PX", "1000"))
	if !strings.HasPrefix(text, "NOQUORUM 0 of 5 masters vote: 5 were empty when first seen: they are new, or have lost their data, ready in ") {
		t.Errorf("got %s", text)
	}
}

// TestCatchUpOfManyLocks lets a master catch up with 10,000 locks in two databases, and with a lock
// without an expiry.
func TestCatchUpOfManyLocks(t *testing.T) {
	redistest.SkipShort(t)
	const locks = 10_000
	f := kit.StartGuardedFleet(t, true, 2)
	client := kit.Connect(t, f.Proxies[0])
	const chunk = 1000
	for from := 0; from < locks; from += chunk {
		if from == locks/2 {
			kit.Want(t, client, "OK", "SELECT", "2")
		}
		var lines []byte
		for i := range chunk {
			lines = redistest.AppendCommand(lines, "LOCK", fmt.Sprint("k", from+i), "t", "PX", "7200000")
		}
		kit.Must(t, client.Send(lines))
		for range chunk {
			reply, err := client.Receive()
			if validity, granted := reply.(int64); err != nil || !granted || validity <= 0 {
				t.Fatalf("LOCK: %v, %v", reply, err)
			}
		}
	}
	for _, master := range f.Masters[1:4] { // as other Redlock clients do
		kit.Must(t, kit.SendToMaster(master, "SET", "endless", "t"))
	}
	kit.Must(t, f.Masters[2].Kill())
	kit.Must(t, f.Masters[2].Restart())
	restartedAt := time.Now()
	waitAllVoteAfterRestart(t, f, 2)
	t.Logf("it votes again %v after its restart", time.Since(restartedAt).Round(time.Millisecond))
	for db, keys := range map[string]int{"0": locks / 2, "2": locks / 2} {
		count, err := kit.QueryDatabase(f.Masters[2], db, "EVAL", `local n = 0
for _, key in ipairs(redis.call('keys', '[ke]*')) do
  if string.sub(redis.call('get', key), -1) == 't' and redis.call('pttl', key) > 3600000 then n = n + 1 end
end
return n`, "0")
		if err != nil || count != int64(keys) {
			t.Errorf("database %s: it holds %v locks, %v, want %d", db, count, err, keys)
		}
	}
	if ttl, err := kit.QueryDatabase(f.Masters[2], "0", "PTTL", "endless"); err != nil || ttl != int64(-1) {
		t.Errorf("PTTL endless: %v, %v, want -1", ttl, err)
	}
	const caughtUpMessage = "master caught up"
	logs := func() string { return f.Proxies[0].Log() + f.Proxies[1].Log() }
	kit.Await(t, caughtUpMessage, func() bool { return strings.Contains(logs(), caughtUpMessage) })
	if strings.Count(logs(), caughtUpMessage) != 1 {
		t.Error("two proxies did not do the work once")
	}
}

// TestUnfitMaster checks that replicas and masters that may evict keys do not vote, and that the
// proxy reports why. They vote again after the cause has been removed.
func TestUnfitMaster(t *testing.T) {
	t.Parallel()
	f := kit.StartGuardedFleet(t, true, 1)
	host, port, _ := strings.Cut(kit.StartRedis(t).Addr(), ":")
	kit.Must(t, kit.SendToMaster(f.Masters[4], "REPLICAOF", host, port))
	kit.Must(t, kit.SendToMaster(f.Masters[3], "CONFIG", "SET", "maxmemory-policy", "allkeys-lru"))
	client := kit.Connect(t, f.Proxies[0])
	f.WantVoting(t, 3)
	kit.Eventually(t, func() error {
		info := fmt.Sprint(kit.Do(t, client, "PROXY", "INFO"))
		for _, part := range []string{"state=unfit,cause=it is a replica",
			"state=unfit,cause=maxmemory-policy allkeys-lru may evict a lock"} {
			if !strings.Contains(info, part) {
				return fmt.Errorf("no %q in\n%s", part, info)
			}
		}
		return nil
	})
	kit.WantGrant(t, client, "LOCK", "k", "t", "PX", "60000")
	kit.Must(t, kit.SendToMaster(f.Masters[4], "REPLICAOF", "NO", "ONE"))
	kit.Must(t, kit.SendToMaster(f.Masters[3], "CONFIG", "SET", "maxmemory-policy", "noeviction"))
	f.WantVoting(t, 5)
}

// TestFirstReplica makes a master a replica of another master. The other master keeps its vote,
// although its master_replid changes with its first replica. The replica votes again when it is a
// master again and has caught up.
func TestFirstReplica(t *testing.T) {
	t.Parallel()
	f := kit.StartGuardedFleet(t, true, 2)
	client := kit.Connect(t, f.Proxies[1])
	kit.WantGrant(t, client, "LOCK", "k", "t", "PX", "60000")
	primary, replica := f.Masters[3], f.Masters[4]
	replicationID := func() string {
		info, err := kit.QueryDatabase(primary, "0", "INFO", "replication")
		kit.Must(t, err)
		_, id, _ := strings.Cut(fmt.Sprint(info), "master_replid:")
		return id[:40]
	}
	before := replicationID()
	host, port, _ := strings.Cut(primary.Addr(), ":")
	kit.Must(t, kit.SendToMaster(replica, "REPLICAOF", host, port))
	kit.Eventually(t, func() error {
		markerText, err := kit.QueryDatabase(primary, "0", "GET", script.MarkerKey)
		if now := replicationID(); err != nil || now == before || !strings.Contains(fmt.Sprint(markerText), now) {
			return fmt.Errorf("its marker is %v, %v, its master_replid %s", markerText, err, now)
		}
		return nil
	})
	f.WantVoting(t, 4)
	kit.WantGrant(t, client, "LOCK", "l", "t", "PX", "60000")
	kit.Must(t, kit.SendToMaster(replica, "REPLICAOF", "NO", "ONE"))
	f.WantVoting(t, 5)
	for _, proxy := range f.Proxies {
		for line := range strings.Lines(proxy.Log()) {
			if strings.Contains(line, "master in quarantine") && strings.Contains(line, primary.Addr()) {
				t.Errorf("it lost its vote: %s", line)
			}
		}
	}
}
