//go:build integration

package chaos

import (
	"sync"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
)

// TestViolationsAreSeen: each of them, done by hand behind the proxies' backs, is found, and nothing is where nobody did anything.
func TestViolationsAreSeen(t *testing.T) {
	c := startCluster(t)
	t.Run("none", func(t *testing.T) {
		r := startRun(t, c, 1)
		r.watch(allWell)
		time.Sleep(time.Second)
		r.stop()
		if grants := r.proxies.granteds(); grants == 0 {
			t.Error("no lock was granted")
		}
		for kind, found := range r.proxies.violations() {
			if len(found) > 0 {
				t.Errorf("%s: %v", kind, found)
			}
		}
	})
	t.Run("overlaps", func(t *testing.T) {
		r := startRun(t, c, 2)
		for range 100 {
			time.Sleep(10 * time.Millisecond)
			c.remove(t, r.lockKeys...)
		}
		r.stop()
		found := r.proxies.violations()
		for _, kind := range []string{"overlaps", "lost"} {
			if len(found[kind]) == 0 {
				t.Errorf("no %s were found", kind)
			}
		}
		t.Logf("%d overlaps, %d lost", len(found["overlaps"]), len(found["lost"]))
	})
	t.Run("lost", func(t *testing.T) {
		l := c.lookAt("lock:lost")
		c.lock(t, l, "lock:lost")
		l.look()
		want(t, l.ledger.lost, 0)
		c.remove(t, "lock:lost")
		l.look()
		want(t, l.ledger.lost, 1)
	})
	t.Run("revived", func(t *testing.T) {
		l := c.lookAt("lock:revived")
		token := c.lock(t, l, "lock:revived")
		value, err := ask(c.masters[0].Addr(), "GET", "lock:revived")
		kit.Must(t, err)
		l.ledger.ended(token)
		_, err = ask(c.proxies[0].addr, "UNLOCK", "lock:revived", token)
		kit.Must(t, err)
		l.ledger.settled(token)
		l.look()
		want(t, l.ledger.revived, 0)
		for _, master := range c.masters {
			_, err := ask(master.Addr(), "SET", "lock:revived", value.(string), "PX", "60000")
			kit.Must(t, err)
		}
		l.look()
		want(t, l.ledger.revived, 1)
	})
}

func allWell() wellBeing { return wellBeing{} }

// lookAt looks at one key, in a ledger of its own.
func (c *cluster) lookAt(key string) *looker {
	return &looker{cluster: c, ledger: newLedger(), keys: []string{key}, well: allWell, confirm: c.holdsByProxy}
}

// lock takes a lock by the first proxy, which stands on all masters then.
func (c *cluster) lock(t *testing.T, l *looker, key string) (token string) {
	t.Helper()
	token = l.ledger.newToken(0)
	reply, err := ask(c.proxies[0].addr, "LOCK", key, token, "PX", "60000")
	if _, granted := reply.(int64); !granted || err != nil {
		t.Fatalf("LOCK: %v, %v", reply, err)
	}
	l.ledger.granted(holding{key, token, l.ledger.now(), time.Minute})
	for end := time.Now().Add(time.Second); len(c.holders(key)) < masterCount; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it stands on %v alone", c.holders(key))
		}
	}
	return token
}

// holders are the masters that hold a key.
func (c *cluster) holders(key string) (all []*master) {
	for _, master := range c.masters {
		if value, err := ask(master.Addr(), "GET", key); err == nil && value != nil {
			all = append(all, master)
		}
	}
	return all
}

// remove deletes keys on a majority of the masters, whoever holds them.
func (c *cluster) remove(t *testing.T, keys ...string) {
	t.Helper()
	var removals sync.WaitGroup
	for _, master := range c.masters[:majority] {
		removals.Go(func() {
			if _, err := ask(master.Addr(), append([]string{"DEL"}, keys...)...); err != nil {
				t.Error(err)
			}
		})
	}
	removals.Wait()
}

func want(t *testing.T, found map[string]violation, n int) {
	t.Helper()
	if len(found) != n {
		t.Errorf("%d were found, want %d: %v", len(found), n, found)
	}
}
