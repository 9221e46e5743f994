//go:build integration

package chaos

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// TestViolationDetection causes every kind of violation by changes directly on the masters. The
// checks find each violation, and find none in a run without violations.
func TestViolationDetection(t *testing.T) {
	redistest.SkipShort(t)
	c := startCluster(t)
	t.Run("none", func(t *testing.T) {
		r := startRun(t, c, 1)
		r.inspectMasters(noFaults)
		time.Sleep(time.Second) // clients keep running
		kit.Await(t, "a grant", func() bool { return r.proxyLedger.grantCount() > 0 })
		r.stop()
		for kind, violations := range r.proxyLedger.violations() {
			if len(violations) > 0 {
				t.Errorf("%s: %v", kind, violations)
			}
		}
	})
	t.Run("overlaps", func(t *testing.T) {
		r := startRun(t, c, 2)
		for range 100 {
			time.Sleep(10 * time.Millisecond) // clients keep running
			c.remove(t, r.lockKeys...)
		}
		r.stop()
		violations := r.proxyLedger.violations()
		for _, kind := range []string{"overlaps", "lost"} {
			if len(violations[kind]) == 0 {
				t.Errorf("no %s were found", kind)
			}
		}
		t.Logf("%d overlaps, %d lost", len(violations["overlaps"]), len(violations["lost"]))
	})
	t.Run("holders", func(t *testing.T) {
		r := startSharers(c, 3)
		t.Cleanup(r.stop)
		kit.Eventually(t, func() error {
			for range 20 {
				time.Sleep(10 * time.Millisecond) // clients keep running
				for _, kind := range sharings() {
					c.remove(t, kind.keys...)
				}
			}
			found := r.proxyLedger.overlapsBySlots()
			for _, slots := range []int{0, unlimited, slotCount} {
				if found[slots] == 0 {
					return fmt.Errorf("no overlap of a lock with %d slots was found, but %v", slots, found)
				}
			}
			return nil
		})
		r.stop()
		if len(r.proxyLedger.violations()["lost"]) == 0 {
			t.Error("no lost lock was found")
		}
	})
	t.Run("lost", func(t *testing.T) {
		l := c.newKeyInspector("lock:lost")
		c.lock(t, l, "lock:lost")
		l.inspect()
		wantViolations(t, l.ledger.losses, 0)
		c.remove(t, "lock:lost")
		l.inspect()
		wantViolations(t, l.ledger.losses, 1)
	})
	t.Run("revived", func(t *testing.T) {
		l := c.newKeyInspector("lock:revived")
		token := c.lock(t, l, "lock:revived")
		value, err := do(c.masters()[0].Addr(), "GET", "lock:revived")
		kit.Must(t, err)
		l.ledger.recordEnd(token)
		_, err = do(c.proxies[0].addr, "UNLOCK", "lock:revived", token)
		kit.Must(t, err)
		l.ledger.recordSettled(token)
		l.inspect()
		wantViolations(t, l.ledger.revivals, 0)
		for _, master := range c.masters() {
			_, err := do(master.Addr(), "SET", "lock:revived", value.(string), "PX", "60000")
			kit.Must(t, err)
		}
		l.inspect()
		wantViolations(t, l.ledger.revivals, 1)
	})
	t.Run("differing", func(t *testing.T) {
		a := &finalCheck{cluster: c}
		c.lock(t, c.newKeyInspector("lock:differing"), "lock:differing")
		wantDiffering(t, a, false)
		_, err := do(c.masters()[0].Addr(), "DEL", "lock:differing")
		kit.Must(t, err)
		wantDiffering(t, a, true)
	})
	t.Run("open", func(t *testing.T) {
		c.lock(t, c.newKeyInspector("lock:open"), "lock:open")
		value, err := do(c.masters()[0].Addr(), "GET", "lock:open")
		kit.Must(t, err)
		copiedValue := "#b" + value.(string)[2:38]
		for _, cells := range [][masterCount]any{{value, value, copiedValue, nil, nil}, {copiedValue, copiedValue, copiedValue, copiedValue, copiedValue}} {
			for i, value := range cells {
				if value == nil {
					_, err = do(c.masters()[i].Addr(), "DEL", "lock:open")
				} else {
					_, err = do(c.masters()[i].Addr(), "SET", "lock:open", value.(string))
				}
				kit.Must(t, err)
			}
			keys, _ := (&finalCheck{cluster: c}).undeterminedKeys(func(key string) bool { return key == "lock:open" })
			if !slices.Equal(keys, []string{"lock:open"}) {
				t.Errorf("what is open where the masters hold %.100q: %v", cells, keys)
			}
		}
		if err := (&finalCheck{cluster: c}).checkStates(); err == nil || !strings.Contains(err.Error(), "NOQUORUM") {
			t.Errorf("the proxies know of all keys what they hold: %v", err)
		}
	})
}

// wantDiffering fails the test unless the check of the key lock:differing reports a difference if
// and only if wantDifference is set.
func wantDiffering(t *testing.T, a *finalCheck, wantDifference bool) {
	t.Helper()
	_, err := a.undeterminedKeys(func(string) bool { return false })
	if isFound := err != nil && strings.Contains(err.Error(), "under lock:differing "); isFound != wantDifference {
		t.Errorf("it differs: %v, want %v: %v", isFound, wantDifference, err)
	}
}

// TestForceUnlockRecords checks the ledger's records of FORCEUNLOCK. Clients can rely only on locks
// of other keys, and on locks that they requested after its reply.
func TestForceUnlockRecords(t *testing.T) {
	redistest.SkipShort(t)
	l := newLedger()
	grant := func(key, token string, sent time.Duration) {
		l.recordGrant(holding{key, token, l.now(), l.now() + time.Hour, 0}, sent)
	}
	before := l.now()
	firstToken, otherToken := l.newToken(0), l.newToken(0)
	grant("k", firstToken, before)
	grant("l", otherToken, before)
	f := l.beginForceUnlock("k")
	if l.isLive(firstToken) || !l.isLive(otherToken) || len(l.endedHoldings) != 1 || l.endedHoldings[0].to != f.from {
		t.Errorf("live: %v, over: %v", l.liveHoldings(), l.endedHoldings)
	}
	earlyToken, lateToken := l.newToken(1), l.newToken(1)
	sent := l.now()
	grant("k", earlyToken, sent)
	l.endForceUnlock(f, true)
	grant("k", lateToken, l.now())
	if l.isLive(earlyToken) || !l.isLive(lateToken) || !l.mayBeForced("k", sent) || l.mayBeForced("k", l.now()) ||
		l.mayBeForced("l", sent) {
		t.Errorf("live: %v", l.liveHoldings())
	}
	if !l.isSettled(firstToken) || l.isSettled(earlyToken) {
		t.Error("what was held when it was sent is gone for good, and nothing else is known to be")
	}
	l.endForceUnlock(l.beginForceUnlock("l"), false)
	if l.isSettled(otherToken) || !l.mayBeForced("l", l.now()) {
		t.Error("what a FORCEUNLOCK without an answer did is not known")
	}
}

func noFaults() faultState { return faultState{} }

// newKeyInspector returns an inspector of one key, with a ledger of its own.
func (c *cluster) newKeyInspector(key string) *inspector {
	return &inspector{cluster: c, ledger: newLedger(), keys: []string{key}, faultState: noFaults, confirm: c.isHeldAtProxy,
		readTimeout: longReplyTimeout}
}

// lock takes a lock through the first proxy, and waits until all masters hold it.
func (c *cluster) lock(t *testing.T, l *inspector, key string) (token string) {
	t.Helper()
	token = l.ledger.newToken(0)
	kit.Eventually(t, func() error {
		reply, err := do(c.proxies[0].addr, "LOCK", key, token, "PX", "60000")
		if err != nil && strings.HasPrefix(err.Error(), "NOQUORUM ") {
			return err
		}
		if _, granted := reply.(int64); !granted || err != nil {
			t.Fatalf("LOCK: %v, %v", reply, err)
		}
		return nil
	})
	l.ledger.recordGrant(holding{key, token, l.ledger.now(), time.Minute, 0}, l.ledger.now())
	for end := time.Now().Add(kit.WaitLimit / 2); len(c.mastersHolding(key)) < masterCount; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("only %v have it", c.mastersHolding(key))
		}
	}
	return token
}

// mastersHolding returns the masters that hold a key.
func (c *cluster) mastersHolding(key string) (holders []*master) {
	for _, master := range c.masters() {
		if value, err := do(master.Addr(), "GET", key); err == nil && value != nil {
			holders = append(holders, master)
		}
	}
	return holders
}

// remove deletes keys on a majority of the masters, regardless of their values.
func (c *cluster) remove(t *testing.T, keys ...string) {
	t.Helper()
	var removals sync.WaitGroup
	for _, master := range c.masters()[:majority] {
		removals.Go(func() {
			if _, err := do(master.Addr(), append([]string{"DEL"}, keys...)...); err != nil {
				t.Error(err)
			}
		})
	}
	removals.Wait()
}

func wantViolations(t *testing.T, violations map[string]violation, n int) {
	t.Helper()
	if len(violations) != n {
		t.Errorf("%d were found, want %d: %v", len(violations), n, violations)
	}
}
