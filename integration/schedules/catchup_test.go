//go:build integration

package schedules

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
	"redlock-proxy/internal/redistest/faultlink"
)

// keeper keeps one lock for as long as it can, by EXTENDs to varying TTLs through all proxies in
// turn. Meanwhile a rival tries to take the lock.
type keeper struct {
	key        string
	clients    []*redistest.Client
	rival      *redistest.Client
	mayRelease bool // the keeper sometimes releases the lock

	mu                                                                     sync.Mutex
	validUntil                                                             time.Time
	commandCount                                                           int
	extendCount, noQuorumCount, lostCount, refusedRivalCount, releaseCount atomic.Int64
}

func (k *keeper) currentValidUntil() time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.validUntil
}

// extendOrLock sends one EXTEND, LOCK or UNLOCK. It returns an error if the lock is lost before its
// lease expires.
func (k *keeper) extendOrLock() error {
	ttl := fmt.Sprint(2000 + rand.IntN(20_000))
	command := []string{"EXTEND", k.key, "owner", "PX", ttl}
	oldValidUntil := k.currentValidUntil()
	switch {
	// Without a lock, every fourth command is an EXTEND, which may extend the leftover of a LOCK.
	case oldValidUntil.IsZero() && k.commandCount%4 != 0:
		command[0] = "LOCK"
	case k.mayRelease && rand.IntN(12) == 0:
		command = []string{"UNLOCK", k.key, "owner"}
		k.mu.Lock()
		k.validUntil = time.Time{}
		k.mu.Unlock()
	}
	sentAt := time.Now()
	reply, err := k.clients[k.commandCount%len(k.clients)].Do(command...)
	if k.commandCount++; err != nil {
		return err
	}
	switch validity, _ := reply.(int64); {
	case command[0] == "UNLOCK" && reply == any(int64(1)):
		k.releaseCount.Add(1)
	case validity > 0:
		k.extendCount.Add(1)
		if validUntil := sentAt.Add(time.Duration(validity) * time.Millisecond); validUntil.After(oldValidUntil) {
			k.mu.Lock()
			k.validUntil = validUntil
			k.mu.Unlock()
		}
	case kit.IsNoQuorum(reply):
		k.noQuorumCount.Add(1)
	case command[0] != "UNLOCK" && time.Now().Before(oldValidUntil), command[0] == "UNLOCK" && reply != any(int64(1)) &&
		time.Now().Before(oldValidUntil):
		return fmt.Errorf("%s: %v: %v, %v before its lease ends", k.key, command, reply, time.Until(oldValidUntil))
	default:
		k.lostCount.Add(1)
		k.mu.Lock()
		k.validUntil = time.Time{}
		k.mu.Unlock()
	}
	return nil
}

// tryAsRival lets the rival try to take the lock. It immediately releases a granted lock.
func (k *keeper) tryAsRival() error {
	reply, err := k.rival.Do("LOCK", k.key, "rival", "PX", "1000")
	now := time.Now()
	switch validUntil := k.currentValidUntil(); {
	case err != nil:
		return err
	case isGrant(reply) && now.Before(validUntil):
		return fmt.Errorf("%s is granted to a rival %v before the lease of its owner ends", k.key, validUntil.Sub(now))
	case isGrant(reply):
		_, err = k.rival.Do("UNLOCK", k.key, "rival")
	default:
		k.refusedRivalCount.Add(1)
	}
	return err
}

// TestCatchUpsDuringExtends lets the masters lose all data in turn. The next master loses its data
// when all masters vote again. Of five masters, sometimes two lose their data at the same time.
// Meanwhile many locks are held, and some are extended all the time.
func TestCatchUpsDuringExtends(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	locks := int(kit.NumberFrom(t, "REDLOCK_CATCHUP_LOCKS", 5000))
	n := int(kit.NumberFrom(t, "REDLOCK_CATCHUP_MASTERS", 3))
	rounds := int(kit.NumberFrom(t, "REDLOCK_CATCHUP_ROUNDS", 3))
	f := startFleet(t, n)
	proxies := []*proxy{f.startProxy(t), f.startProxy(t), f.startProxy(t)}
	f.lockCatchUpProbe(t, connect(t, proxies[0]))
	start := time.Now()
	client := connect(t, proxies[0])
	for from := 0; from < locks; from += 1000 {
		var batch []byte
		for i := from; i < from+1000; i++ {
			batch = redistest.AppendCommand(batch, "LOCK", fmt.Sprint("lock:many:", i), "t", "PX", "3600000")
		}
		kit.Must(t, client.Send(batch))
		for range 1000 {
			_, err := client.Receive()
			kit.Must(t, err)
		}
	}
	t.Logf("%d locks taken in %v", locks, time.Since(start).Round(time.Millisecond))
	f.delayKeptLocks(proxies, int(kit.NumberFrom(t, "REDLOCK_CATCHUP_LATE", 0)))
	keepers, stopped, stop := f.startKeepers(t, proxies, 12)
	for turn := range rounds * n {
		if stopped.Load() {
			break
		}
		start := time.Now()
		i := turn % n
		if n >= 5 && turn%3 == 0 {
			mustSend(t, f.masters[(i+1)%n], "FLUSHALL")
		}
		if turn%2 == 0 {
			kit.Must(t, f.masters[i].Restart())
		} else {
			mustSend(t, f.masters[i], "FLUSHALL")
		}
		kit.AwaitWithin(t, 2*time.Minute, func() error {
			info := string(fmt.Sprint(kit.Do(t, client, "PROXY", "INFO")))
			if !contains(f.holders(t, catchUpProbe, "sentinel"), i) || strings.Count(info, ",state=") != strings.Count(info,
				",state=voting,") {
				return fmt.Errorf("master %d does not vote:\n%s", i, info)
			}
			return nil
		})
		t.Logf("master %d votes again after %v", i, time.Since(start).Round(time.Millisecond))
	}
	stop()
	logKeepers(t, keepers)
}

// startKeepers starts clients that keep n locks until stop is called or a client gets an error.
// Either event sets stopped.
func (f *fleet) startKeepers(t *testing.T, proxies []*proxy, n int) (keepers []*keeper, stopped *atomic.Bool, stop func()) {
	t.Helper()
	stopped = &atomic.Bool{}
	var tasks sync.WaitGroup
	stop = func() { stopped.Store(true); tasks.Wait() }
	t.Cleanup(stop)
	for i := range n {
		name := fmt.Sprint("lock:kept:", i)
		if f.tags {
			name = fmt.Sprintf([]string{"lock:kept:%d", "x:{lock:kept:%d}", "y:{lock:kept:%d}"}[i%3], i/3)
		}
		k := &keeper{key: name, mayRelease: f.tags || i%2 == 0, rival: connect(t, proxies[i%len(proxies)]), commandCount: i}
		for _, p := range proxies {
			k.clients = append(k.clients, connect(t, p))
		}
		keepers = append(keepers, k)
		for name, step := range map[string]func() error{"keep": k.extendOrLock, "contend": k.tryAsRival} {
			tasks.Go(func() {
				for !stopped.Load() {
					if err := step(); err != nil {
						stopped.Store(true)
						t.Errorf("%s: %v", name, err)
					}
					// The sleep sets the pace of a client.
					time.Sleep(time.Duration(20+rand.IntN(200)) * time.Millisecond)
				}
			})
		}
	}
	return keepers, stopped, stop
}

func logKeepers(t *testing.T, keepers []*keeper) {
	t.Helper()
	for _, k := range keepers {
		t.Logf("%s: extended %d, NOQUORUM %d, lost %d, released %d, rival refused %d", k.key, k.extendCount.Load(),
			k.noQuorumCount.Load(), k.lostCount.Load(), k.releaseCount.Load(), k.refusedRivalCount.Load())
	}
}

// TestClockStepsDuringExtends steps the clock of one random master after the other while locks are
// extended all the time.
func TestClockStepsDuringExtends(t *testing.T) {
	t.Parallel()
	redistest.SkipShort(t)
	turns := int(kit.NumberFrom(t, "REDLOCK_CLOCK_TURNS", 6))
	f := &fleet{upstream: kit.StartRedis(t)}
	var clocks []*redistest.Clock
	for range 3 {
		clock := kit.NewClock(t)
		clocks = append(clocks, clock)
		f.masters = append(f.masters, redistest.New(t, redistest.Options{Clock: clock}))
	}
	proxies := []*proxy{f.startProxy(t), f.startProxy(t)}
	client := connect(t, proxies[0])
	f.lockCatchUpProbe(t, client)
	// Some commands are delayed, so that clocks step within a ballot.
	f.delayKeptLocks(proxies, int(kit.NumberFrom(t, "REDLOCK_CLOCK_LATE", 10)))
	keepers, stopped, stop := f.startKeepers(t, proxies, 12)
	offsets := make([]time.Duration, 3)
	steps := []time.Duration{900 * time.Millisecond, -900 * time.Millisecond, 5 * time.Second, -5 * time.Second,
		10 * time.Minute, -10 * time.Minute, 60 * time.Millisecond, -60 * time.Millisecond}
	for range turns {
		if stopped.Load() {
			break
		}
		i, start := rand.IntN(3), time.Now()
		step := steps[rand.IntN(len(steps))]
		offsets[i] += step
		kit.Must(t, clocks[i].Set(offsets[i]))
		time.Sleep(2500 * time.Millisecond) // each proxy probes the clock once a second
		for _, p := range proxies {
			statusClient := connect(t, p)
			kit.AwaitWithin(t, 2*time.Minute, func() error {
				info := string(fmt.Sprint(kit.Do(t, statusClient, "PROXY", "INFO")))
				if strings.Count(info, ",state=") != strings.Count(info, ",state=voting,") {
					return fmt.Errorf("master %d does not vote:\n%s", i, info)
				}
				return nil
			})
		}
		t.Logf("master %d by %v: all vote again after %v", i, step, time.Since(start).Round(time.Millisecond))
	}
	stop()
	logKeepers(t, keepers)
}

// delayKeptLocks delays a random share of the commands about the keys lock:kept:*. The share is
// perMille of 1000 commands.
func (f *fleet) delayKeptLocks(proxies []*proxy, perMille int) {
	if perMille == 0 {
		return
	}
	for _, p := range proxies {
		for _, link := range p.links {
			link.DelayCommands(func(c []byte) bool {
				return bytes.Contains(c, []byte("lock:kept")) &&
					rand.IntN(1000) < perMille
			}, 450*time.Millisecond)
		}
	}
}

// TestTagsDuringFaults uses locks of the same tags while replies and commands are delayed or lost.
func TestTagsDuringFaults(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	f := startFleet(t, 3)
	f.tags = true
	proxies := []*proxy{f.taggedProxy(t), f.taggedProxy(t)}
	f.delayKeptLocks(proxies, 10)
	keepers, stopped, stop := f.startKeepers(t, proxies, 12)
	for range int(kit.NumberFrom(t, "REDLOCK_FAULTS", 20)) {
		if stopped.Load() {
			break
		}
		p := proxies[rand.IntN(2)]
		match := func(c []byte) bool { return bytes.Contains(c, []byte("lock:kept")) && rand.IntN(3) == 0 }
		var holds []*faultlink.Hold
		for _, m := range rand.Perm(3)[:1+rand.IntN(3)] {
			if rand.IntN(2) == 0 {
				holds = append(holds, p.links[m].HoldReplies(match))
			} else {
				holds = append(holds, p.links[m].HoldCommands(match))
			}
		}
		time.Sleep(time.Duration(200+rand.IntN(2800)) * time.Millisecond) // the fault lasts
		for _, hold := range holds {
			if rand.IntN(2) == 0 {
				hold.Release()
			} else {
				hold.Discard()
			}
		}
		time.Sleep(time.Duration(rand.IntN(1500)) * time.Millisecond) // no fault for a while
	}
	stop()
	logKeepers(t, keepers)
	for _, p := range proxies {
		p.wantVoting(t)
	}
	kit.Eventually(t, func() error {
		for _, p := range proxies {
			if info := fmt.Sprint(kit.Do(t, connect(t, p), "PROXY", "INFO")); !strings.Contains(info,
				"removals_pending:0") {
				return fmt.Errorf("removals are pending: %s", info)
			}
		}
		return nil
	})
}
