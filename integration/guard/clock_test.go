//go:build integration

package guard

import (
	"fmt"
	"testing"
	"time"

	"redlock-proxy/integration/harness"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// clockStep is the size of a clock jump. It is longer than steppedTTL.
const clockStep = 10 * time.Minute

// steppedTTL is the TTL of a lock during the steps of all clocks, one after another.
const steppedTTL = 5 * time.Minute

// clockedMaster is a master with its own clock.
type clockedMaster struct {
	*redistest.Server
	clock *redistest.Clock
}

// startClockedMasters starts five masters whose clocks are right.
func startClockedMasters(t *testing.T) []clockedMaster {
	t.Helper()
	masters := make([]clockedMaster, 5)
	for i := range masters {
		clock := kit.NewClock(t)
		masters[i] = clockedMaster{redistest.New(t, redistest.Options{Clock: clock}), clock}
	}
	return masters
}

// do sends one command directly to the master.
func (s clockedMaster) do(t *testing.T, command ...string) any {
	t.Helper()
	reply, err := kit.QueryDatabase(s.Server, "0", command...)
	kit.Must(t, err)
	return reply
}

// clockFleet holds two proxies, masters with their own clocks, a held lock, and rivals that try to
// take the lock all the time.
type clockFleet struct {
	*kit.Fleet
	clockedMasters []clockedMaster
	guard          bool
	locks          *heldLocks
	holder         *redistest.Client
	rivals         *rivals
}

func startClockFleet(t *testing.T, guard bool) *clockFleet {
	t.Helper()
	c := &clockFleet{Fleet: &kit.Fleet{}, clockedMasters: startClockedMasters(t), guard: guard, locks: &heldLocks{}}
	var urls []string
	for _, master := range c.clockedMasters {
		urls = append(urls, "redis://"+master.Addr())
	}
	upstream := kit.StartRedis(t)
	for range 2 {
		c.Proxies = append(c.Proxies, kit.StartProxy(t, urls, append(kit.LockKeyArgs(upstream),
			fmt.Sprintf("--guard=%v", guard))...))
	}
	c.WantVoting(t, len(c.clockedMasters))
	c.holder = kit.Connect(t, c.Proxies[0])
	c.rivals = startRivals(t, c.Proxies, c.locks)
	t.Cleanup(c.rivals.stop)
	return c
}

// hold takes the lock with the given TTL.
func (c *clockFleet) hold(t *testing.T, ttl time.Duration) heldLock {
	t.Helper()
	lock := heldLock{key: "lock:k", token: "holder"}
	kit.WantGrant(t, c.holder, "LOCK", lock.key, lock.token, "PX", fmt.Sprint(ttl.Milliseconds()))
	kit.Eventually(t, func() error {
		for _, master := range c.clockedMasters {
			if got := harness.HeldToken(master.do(t, "GET", lock.key)); got != lock.token {
				return fmt.Errorf("master %s: %s is %v", master.Addr(), lock.key, got)
			}
		}
		return nil
	})
	c.locks.add(lock)
	return lock
}

// stepInTurn steps one clock after another, each when the previous master votes again.
func (c *clockFleet) stepInTurn(t *testing.T, masters []clockedMaster, offset time.Duration) {
	t.Helper()
	for _, master := range masters {
		c.stepAll(t, []clockedMaster{master}, offset)
		c.rivals.wantTries(t, 20) // per master, with or without the guard
	}
}

// stepAll steps several clocks at the same moment, and waits until their masters vote again.
func (c *clockFleet) stepAll(t *testing.T, masters []clockedMaster, offset time.Duration) {
	t.Helper()
	var oldMarkers []any
	for _, master := range masters {
		oldMarkers = append(oldMarkers, master.do(t, "GET", "redlock-proxy:marker"))
		before := master.seconds(t)
		kit.Must(t, master.clock.Set(offset))
		if change := master.seconds(t) - before; change < 60 && change > -60 {
			t.Fatalf("the clock of %s was stepped to %v, and moved by %d s", master.Addr(), offset, change)
		}
	}
	for i, master := range masters {
		if c.guard {
			kit.Eventually(t, func() error {
				if marker := master.do(t, "GET", "redlock-proxy:marker"); marker == nil || marker == oldMarkers[i] {
					return fmt.Errorf("master %s was not admitted anew: %v", master.Addr(), marker)
				}
				return nil
			})
		}
	}
	c.WantVoting(t, len(c.clockedMasters))
}

// TestClockStepsDuringProxyStop stops a proxy. Meanwhile two masters' clocks jump, and the
// other proxy lets these masters catch up. When the stopped proxy continues, it notices the jumps,
// but does not exclude the masters. If it did, one more unavailable master would leave no majority.
// The same holds if the proxy then reads replies from before the jumps.
func TestClockStepsDuringProxyStop(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	for _, locking := range []bool{false, true} {
		for _, ahead := range []time.Duration{clockStep, -clockStep} {
			t.Run(fmt.Sprintf("%v, busy %v", ahead, locking), func(t *testing.T) {
				t.Parallel()
				c := startClockFleet(t, true)
				if locking {
					c.hold(t, heldLockTTL)
					c.rivals.wantTries(t, 100)
				} else {
					c.rivals.stop()
				}
				c.stopProxyDuringSteps(t, ahead)
			})
		}
	}
}

// stopProxyDuringSteps stops a proxy, steps the clocks of two masters, and fails the test if a
// master is admitted again after the proxy continues.
func (c *clockFleet) stopProxyDuringSteps(t *testing.T, offset time.Duration) {
	t.Helper()
	running := &clockFleet{Fleet: &kit.Fleet{Proxies: c.Proxies[:1]}, clockedMasters: c.clockedMasters, guard: true}
	kit.Must(t, c.Proxies[1].Pause())
	running.stepAll(t, c.clockedMasters[:2], offset)
	var markers []any
	for _, master := range c.clockedMasters {
		markers = append(markers, master.do(t, "GET", "redlock-proxy:marker"))
	}
	kit.Must(t, c.Proxies[1].Continue())
	// The proxy must not react to the jumps.
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		for i, master := range c.clockedMasters {
			if now := master.do(t, "GET", "redlock-proxy:marker"); now != markers[i] {
				t.Fatalf("master %d has another marker: %v, not %v", i, now, markers[i])
			}
		}
	}
	c.WantVoting(t, len(c.clockedMasters))
}

// seconds returns the time of the master's clock in seconds.
func (s clockedMaster) seconds(t *testing.T) int {
	t.Helper()
	var now int
	parts, _ := s.do(t, "TIME").([]any)
	if len(parts) != 2 {
		t.Fatalf("TIME: %v", parts)
	}
	_, err := fmt.Sscan(fmt.Sprint(parts[0]), &now)
	kit.Must(t, err)
	return now
}

// TestGuardOnSteppedClocks steps the clocks of all masters, one after another, while a lock is
// held. It corrects the clocks while another lock is held. If a clock jumps ahead, the key expires
// on its master. With the guard off, the third jump ahead gives the lock to a rival.
func TestGuardOnSteppedClocks(t *testing.T) {
	redistest.SkipShort(t)
	for _, test := range []struct {
		name   string
		offset time.Duration
		// firstDoubleGrant and secondDoubleGrant are set if, with the guard off, the first and the
		// second lock are granted twice.
		firstDoubleGrant, secondDoubleGrant bool
	}{
		{"forward and back", clockStep, true, false},
		{"back and forward", -clockStep, false, true},
	} {
		for _, guard := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, guard %v", test.name, guard), func(t *testing.T) {
				t.Parallel()
				c := startClockFleet(t, guard)
				c.stepUnderLock(t, test.offset, test.firstDoubleGrant && !guard)
				c.stepUnderLock(t, 0, test.secondDoubleGrant && !guard)
				c.rivals.stop()
				c.rivals.report(t)
			})
		}
	}
}

// stepUnderLock takes the lock and steps all clocks. If doubleGrant is set, a rival must be granted
// the lock, too. Otherwise no rival may be granted it.
func (c *clockFleet) stepUnderLock(t *testing.T, offset time.Duration, doubleGrant bool) {
	t.Helper()
	lock, startedAt, doubles := c.hold(t, steppedTTL), time.Now(), len(c.locks.doubleGrantsFrom(0))
	c.stepInTurn(t, c.clockedMasters, offset)
	stillHeld := c.locks.withdraw(lock.key)
	remaining := c.maxRemainingTTL(t, lock.key)
	reply := kit.Do(t, c.holder, "UNLOCK", lock.key, lock.token)
	t.Logf("all clocks stepped to %v within %v; granted twice: %v; UNLOCK: %v; the key would have stayed for up to %v more (TTL %v)",
		offset, time.Since(startedAt).Round(time.Millisecond), c.locks.doubleGrantsFrom(doubles), reply, remaining, steppedTTL)
	switch {
	case doubleGrant && stillHeld:
		t.Error("the lock was not granted twice with the guard off, so this shows nothing of the guard")
	case !doubleGrant && (!stillHeld || reply != any(int64(1))):
		t.Errorf("DOUBLE GRANT: %v; UNLOCK: %v", c.locks.doubleGrantsFrom(doubles), reply)
	}
}

// maxRemainingTTL returns the longest remaining time of a key on the masters. If a clock was set
// back, this time is longer than the TTL. Then no client gets the lock too early. But if the holder
// has ended without a release, the next client gets the lock late.
func (c *clockFleet) maxRemainingTTL(t *testing.T, key string) time.Duration {
	t.Helper()
	var maxTTL time.Duration
	for _, master := range c.clockedMasters {
		left, _ := master.do(t, "PTTL", key).(int64)
		maxTTL = max(maxTTL, time.Duration(left)*time.Millisecond)
	}
	return maxTTL
}
