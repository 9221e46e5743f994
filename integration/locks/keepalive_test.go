//go:build integration

package locks

import (
	"cmp"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"redlock-proxy/integration/harness"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// keptTTL is the TTL of kept locks in tests. busySlack is the allowed delay on a busy machine. It
// is less than a third of the TTL, after which the next renewal comes. longSlack is the allowed
// delay of other events. Locks that were renewed for longer than MAXHOLD would be free later.
const keptTTL, busySlack, longSlack = 4500 * time.Millisecond, 1400 * time.Millisecond, 2500 * time.Millisecond

// startProxyPair starts three masters and two proxies.
func startProxyPair(t *testing.T, args ...string) [2]*harness.Proxy {
	t.Helper()
	masters := kit.StartMasters(t)[:3]
	var proxies [2]*harness.Proxy
	for i := range proxies {
		proxies[i] = kit.StartProxy(t, redistest.URLs(masters), args...)
	}
	return proxies
}

// takeKeptLock takes a lock of keptTTL that is kept.
func takeKeptLock(t *testing.T, client *redistest.Client, key string, options ...string) {
	t.Helper()
	kit.WantGrant(t, client, append([]string{"LOCK", key, "t", "PX", fmt.Sprint(keptTTL.Milliseconds()), "KEEPALIVE"},
		options...)...)
}

// wantTaken checks for a time that the lock is held, as another client sees it.
func wantTaken(t *testing.T, client *redistest.Client, key string, duration time.Duration) {
	t.Helper()
	for until := time.Now().Add(duration); time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
		wantNotGranted(t, client, key)
	}
}

// wantNotGranted tries to take a lock that is held. A late reply grants nothing.
func wantNotGranted(t *testing.T, client *redistest.Client, key string) {
	t.Helper()
	if got := kit.Do(t, client, "LOCK", key, "rival", "PX", "10000"); got != nil && !kit.IsLate(got) {
		t.Fatalf("the lock of %s was free, or unknown: %v", key, got)
	}
}

// wantFreeWithin waits for a lock, and checks that the grant comes between minTime and maxTime
// after since.
func wantFreeWithin(t *testing.T, client *redistest.Client, key string, since time.Time, minTime, maxTime time.Duration) {
	t.Helper()
	kit.WantGrant(t, client, "LOCK", key, "rival", "PX", "10000", "BLOCK", "20000")
	if took := time.Since(since); took < minTime || took > maxTime {
		t.Errorf("%s was free after %v, want %v to %v", key, took, minTime, maxTime)
	}
	kit.WantReleased(t, client, key, "rival")
}

// receivePush returns the next push without its validity, and the validity.
func receivePush(t *testing.T, client *redistest.Client) (text string, validity int64) {
	t.Helper()
	reply, err := client.Receive()
	kit.Must(t, err)
	push, ok := reply.(redistest.Push)
	if !ok {
		t.Fatalf("got %#v, want a push", reply)
	}
	if n, ok := push[len(push)-1].(int64); ok {
		return fmt.Sprint([]any(push[:len(push)-1])), n
	}
	return fmt.Sprint([]any(push)), 0
}

// TestKeptLock checks that a lock is kept until its UNLOCK, in RESP2 and RESP3, with and without an
// upstream. A RESP3 client gets a push for each renewal, and a RESP2 client gets none.
func TestKeptLock(t *testing.T) {
	for name, args := range map[string][]string{
		"lock server": nil, "upstream": {"--upstream", kit.StartRedis(t).URL()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxies := startProxyPair(t, args...)
			silent, notified, rival := kit.Connect(t, proxies[0]), kit.Connect(t, proxies[0]), kit.Connect(t, proxies[1])
			kit.Do(t, notified, "HELLO", "3")
			takeKeptLock(t, silent, "silent")
			takeKeptLock(t, notified, "told")
			for range 3 {
				text, validity := receivePush(t, notified)
				most := keptTTL.Milliseconds() * 99 / 100
				if text != "[lock kept told]" || validity > most || validity < most-busySlack.Milliseconds() {
					t.Errorf("%s for %d ms", text, validity)
				}
			}
			// The silent client is parked by now.
			wantTaken(t, rival, "silent", keptTTL)
			// The replies arrive in order, without a push before them.
			kit.Must(t, silent.Send(redistest.AppendCommand(redistest.AppendCommand(nil, "UNLOCK", "silent", "t"),
				"EXTEND", "silent", "t", "PX", kit.Millis(keptTTL), "KEEPALIVE")))
			for _, want := range []any{int64(1), nil} {
				if got, err := silent.Receive(); err != nil || got != want {
					t.Errorf("silent: %v, %v, want %v", got, err, want)
				}
			}
			kit.WantGrant(t, rival, "LOCK", "silent", "rival", "PX", "10000")
			info := kit.ReplyText(kit.Do(t, silent, "PROXY", "INFO"))
			if !strings.Contains(info, "redlock_kept_locks:1\r\n") || strings.Contains(info, "renewals_total:0\r\n") {
				t.Errorf("%s", info)
			}
			if info := kit.ReplyText(kit.Do(t, silent, "LOCKINFO", "told")); !strings.HasSuffix(info, "kept 1]") {
				t.Errorf("LOCKINFO told: %s", info)
			}
		})
	}
}

// TestKeptLockOfDeadHolder checks that the lock of a client whose connection ends stays held until
// its TTL expires, and is free then.
func TestKeptLockOfDeadHolder(t *testing.T) {
	proxies := startProxyPair(t)
	rival := kit.Connect(t, proxies[1])
	rounds := 3
	if testing.Short() {
		rounds = 2
	}
	for i := range rounds {
		key := fmt.Sprint("k", i)
		client := kit.Connect(t, proxies[0])
		takeKeptLock(t, client, key)
		time.Sleep(keptTTL/3 + time.Duration(i)*keptTTL/9) // any moment between two renewals
		end := client.Close
		if i%2 == 0 {
			end = client.Reset
		}
		kit.Must(t, end())
		wantFreeWithin(t, rival, key, time.Now(), keptTTL/3, keptTTL+100*time.Millisecond+busySlack)
	}
}

// TestKeptLockAtAnotherProxy checks that a client whose proxy is killed keeps its lock through the
// other proxy.
func TestKeptLockAtAnotherProxy(t *testing.T) {
	proxies := startProxyPair(t)
	client, rival := kit.Connect(t, proxies[0]), kit.Connect(t, proxies[1])
	takeKeptLock(t, client, "k")
	time.Sleep(keptTTL) // the lock was renewed
	kit.Must(t, proxies[0].Signal(syscall.SIGKILL))
	newClient := kit.Connect(t, proxies[1])
	kit.WantGrant(t, newClient, "EXTEND", "k", "t", "PX", kit.Millis(keptTTL), "KEEPALIVE")
	wantTaken(t, rival, "k", keptTTL*11/10)
	kit.Want(t, rival, int64(1), "FORCEUNLOCK", "k")
	kit.WantGrant(t, rival, "LOCK", "k", "rival", "PX", "10000")
	kit.Want(t, newClient, nil, "EXTEND", "k", "t", "PX", kit.Millis(keptTTL))
}

// TestKeptLockTakeover checks that a second connection to the same proxy can keep the lock
// instead of the first connection.
func TestKeptLockTakeover(t *testing.T) {
	proxies := startProxyPair(t)
	first, second, rival := kit.Connect(t, proxies[0]), kit.Connect(t, proxies[0]), kit.Connect(t, proxies[1])
	takeKeptLock(t, first, "k")
	began := time.Now()
	kit.WantGrant(t, second, "EXTEND", "k", "t", "PX", kit.Millis(keptTTL), "KEEPALIVE", "MAXHOLD", "6000")
	kit.Must(t, first.Close())
	wantFreeWithin(t, rival, "k", began, 5940*time.Millisecond, 6060*time.Millisecond+longSlack)
}

// TestKeptLockToMaxHold checks that a lock is held for MAXHOLD, and that the client then gets a
// push.
func TestKeptLockToMaxHold(t *testing.T) {
	proxies := startProxyPair(t)
	client, rival := kit.Connect(t, proxies[0]), kit.Connect(t, proxies[1])
	kit.Do(t, client, "HELLO", "3")
	began := time.Now()
	takeKeptLock(t, client, "k", "MAXHOLD", "8000")
	wantFreeWithin(t, rival, "k", began, 8000*time.Millisecond, 8080*time.Millisecond+longSlack)
	var texts []string
	for len(texts) == 0 || strings.HasPrefix(texts[len(texts)-1], "[lock kept") {
		text, _ := receivePush(t, client)
		texts = append(texts, text)
	}
	if last := texts[len(texts)-1]; last != "[lock lost k max_hold]" || len(texts) < 3 {
		t.Errorf("pushes %v", texts)
	}
}

// TestKeptLockLoss checks the push about a lock that was taken away at this proxy or at another
// proxy, or that expired without a quorum.
func TestKeptLockLoss(t *testing.T) {
	masters := kit.StartMasters(t)[:3]
	f := kit.LinkFleet(t, masters, 2)
	client, rival := kit.Connect(t, f.Proxies[0]), kit.Connect(t, f.Proxies[1])
	kit.Do(t, client, "HELLO", "3")
	lost := func(want string, since time.Time, most time.Duration) {
		t.Helper()
		for {
			switch text, _ := receivePush(t, client); {
			case strings.HasPrefix(text, "[lock kept"):
				continue
			case text != want:
				t.Errorf("got %s, want %s", text, want)
			}
			if took := time.Since(since); took > most+longSlack {
				t.Errorf("%s came after %v", want, took)
			}
			return
		}
	}
	takeKeptLock(t, client, "a")
	kit.Want(t, rival, int64(1), "FORCEUNLOCK", "a")
	lost("[lock lost a not_held]", time.Now(), keptTTL/3)
	takeKeptLock(t, client, "b")
	kit.Want(t, kit.Connect(t, f.Proxies[0]), int64(1), "FORCEUNLOCK", "b")
	lost("[lock lost b forced]", time.Now(), 0)
	takeKeptLock(t, client, "c")
	for _, i := range []int{0, 2} {
		kit.Must(t, f.Links[0][i].Refuse())
	}
	lost("[lock lost c no_quorum]", time.Now(), keptTTL)
	if info := kit.ReplyText(kit.Do(t, client, "PROXY", "INFO")); !strings.Contains(info, "redlock_kept_locks_lost_total:3\r\n") {
		t.Errorf("%s", info)
	}
}

// TestKeptLockDuringMasterFailures checks that a lock has no gap while one master after the other
// fails.
func TestKeptLockDuringMasterFailures(t *testing.T) {
	redistest.SkipShort(t)
	masters := kit.StartMasters(t)[:3]
	f := kit.LinkFleet(t, masters, 2)
	client, rival := kit.Connect(t, f.Proxies[0]), kit.Connect(t, f.Proxies[1])
	kit.Do(t, client, "HELLO", "3")
	takeKeptLock(t, client, "k")
	for i := range 4 {
		kit.Must(t, f.Links[0][i%3].Refuse())
		wantTaken(t, rival, "k", keptTTL/2) // the proxy renews the lock
		kit.Must(t, f.Links[0][i%3].Heal())
		f.WantVoting(t, 3)
		// A master that was unreachable gets the lock again before the next master fails.
		kit.Eventually(t, func() error {
			if info := kit.ReplyText(kit.Do(t, rival, "LOCKINFO", "k")); strings.Count(info, " held") != 1+len(masters) {
				return fmt.Errorf("not on all masters: %s", info)
			}
			return nil
		})
	}
	kit.Want(t, rival, int64(1), "FORCEUNLOCK", "k")
	for {
		switch text, _ := receivePush(t, client); text {
		case "[lock kept k]":
			continue
		case "[lock lost k not_held]":
			return
		default:
			t.Fatalf("got %s", text)
		}
	}
}

// TestKeptLockDuringDrain checks that a proxy that stops renews a lock once more before it
// closes the connection, and does not release it.
func TestKeptLockDuringDrain(t *testing.T) {
	proxies := startProxyPair(t)
	client, rival := kit.Connect(t, proxies[0]), kit.Connect(t, proxies[1])
	takeKeptLock(t, client, "k")
	time.Sleep(keptTTL/3 + keptTTL*4/15) // the next renewal would come at two thirds
	began := time.Now()
	kit.Must(t, proxies[0].Signal(syscall.SIGTERM))
	if _, err := client.Receive(); err == nil {
		t.Error("a stopping proxy sent something")
	}
	wantFreeWithin(t, rival, "k", began, keptTTL*9/10, keptTTL+100*time.Millisecond+longSlack)
}

// TestKeptLockAfterReset checks that RESET ends the renewals, as the end of the connection does.
func TestKeptLockAfterReset(t *testing.T) {
	for name, args := range map[string][]string{
		"lock server": nil, "upstream": {"--upstream", kit.StartRedis(t).URL()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxies := startProxyPair(t, args...)
			client, rival := kit.Connect(t, proxies[0]), kit.Connect(t, proxies[1])
			takeKeptLock(t, client, "k")
			kit.Do(t, client, "RESET")
			wantFreeWithin(t, rival, "k", time.Now(), keptTTL/3, keptTTL+100*time.Millisecond+busySlack)
		})
	}
}

// TestKeptLocksOfAPipeline checks that many locks of one pipeline are all kept.
func TestKeptLocksOfAPipeline(t *testing.T) {
	proxies := startProxyPair(t)
	client, rival := kit.Connect(t, proxies[0]), kit.Connect(t, proxies[1])
	var pipeline []byte
	const locks = 200
	for i := range locks {
		pipeline = redistest.AppendCommand(pipeline, "LOCK", fmt.Sprint("k", i), "t", "PX", kit.Millis(keptTTL), "KEEPALIVE")
	}
	kit.Must(t, client.Send(pipeline))
	for range locks {
		if reply, err := client.Receive(); err != nil || reply == nil {
			t.Fatalf("got %v, %v", reply, err)
		}
	}
	time.Sleep(keptTTL * 6 / 5) // without renewals the locks would have expired
	keys := []int{0, 1, 77, locks - 1}
	for _, i := range keys {
		wantNotGranted(t, rival, fmt.Sprint("k", i))
	}
	kit.Must(t, client.Close())
	for _, i := range keys {
		kit.WantGrant(t, rival, "LOCK", fmt.Sprint("k", i), "rival", "PX", "10000", "BLOCK", "20000")
	}
}

// TestCostOfKeptLocks compares the processor time for a renewal of a kept lock with that for its
// LOCK, and checks that no lock is lost. REDLOCK_KEPT_LOCKS=100000 is the full size.
func TestCostOfKeptLocks(t *testing.T) {
	redistest.SkipShort(t)
	locks, err := strconv.Atoi(cmp.Or(os.Getenv("REDLOCK_KEPT_LOCKS"), "5000"))
	kit.Must(t, err)
	const ttl, locksPerClient, measureTime = 30 * time.Second, 1000, 20 * time.Second
	const maxRatio = 0.75 // renewals share messages to the masters, and have no client
	proxy := startProxyPair(t)[0]
	client := kit.Connect(t, proxy)
	cpu := func() time.Duration {
		t.Helper()
		d, err := proxy.CPU()
		kit.Must(t, err)
		return d
	}
	begun := cpu()
	var workers sync.WaitGroup
	for from := 0; from < locks; from += locksPerClient {
		client := kit.Connect(t, proxy)
		workers.Go(func() { kit.NoError(t, lockMany(client, from, locksPerClient, ttl)) })
	}
	workers.Wait()
	taken, renewedBefore := cpu(), infoNumber(t, client, "redlock_lock_renewals_total")
	time.Sleep(measureTime) // the renewals of this time are measured
	spent, renewed := cpu()-taken, infoNumber(t, client, "redlock_lock_renewals_total")-renewedBefore
	if kept := infoNumber(t, client, "redlock_kept_locks"); kept != locks || renewed == 0 {
		t.Fatalf("%d locks are kept, want %d; %d renewals", kept, locks, renewed)
	}
	lockCost, renewalCost := (taken-begun).Seconds()/float64(locks), spent.Seconds()/float64(renewed)
	t.Logf("%d kept locks of %v: %d renewals in %v, %.1f %% of a core; %.1f µs each, %.2f times a LOCK in a pipeline",
		locks, ttl, renewed, measureTime, 100*spent.Seconds()/measureTime.Seconds(), 1e6*renewalCost, renewalCost/lockCost)
	if renewalCost > maxRatio*lockCost {
		t.Errorf("a renewal costs %.2f times a LOCK, at most %.2f are allowed", renewalCost/lockCost, maxRatio)
	}
}

// lockMany takes n locks that are kept, in pipelines.
func lockMany(client *redistest.Client, from, n int, ttl time.Duration) error {
	const batchSize = 100
	for key := from; key < from+n; key += batchSize {
		var pipeline []byte
		for i := range batchSize {
			pipeline = redistest.AppendCommand(pipeline, "LOCK", fmt.Sprint("kept:", key+i), "t",
				"PX", fmt.Sprint(ttl.Milliseconds()), "KEEPALIVE")
		}
		if err := client.Send(pipeline); err != nil {
			return err
		}
		for range batchSize {
			if reply, err := client.Receive(); err != nil || reply == nil {
				return fmt.Errorf("LOCK was answered %v, %w", reply, err)
			}
		}
	}
	return nil
}

// infoNumber returns a number of PROXY INFO.
func infoNumber(t *testing.T, client *redistest.Client, field string) int {
	t.Helper()
	_, rest, _ := strings.Cut(kit.ReplyText(kit.Do(t, client, "PROXY", "INFO")), "\n"+field+":")
	text, _, _ := strings.Cut(rest, "\r")
	n, err := strconv.Atoi(text)
	kit.Must(t, err)
	return n
}
