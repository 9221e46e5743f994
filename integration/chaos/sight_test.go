//go:build integration

package chaos

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// TestViolationsAreSeen makes every kind of violation without the proxies. The checks find each of
// them, and find none if there is none.
func TestViolationsAreSeen(t *testing.T) {
	redistest.SkipShort(t)
	c := startCluster(t)
	t.Run("none", func(t *testing.T) {
		r := startRun(t, c, 1)
		r.watch(allWell)
		time.Sleep(time.Second) // clients keep running
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
			time.Sleep(10 * time.Millisecond) // clients keep running
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
		l := c.observeKey("lock:lost")
		c.lock(t, l, "lock:lost")
		l.look()
		want(t, l.ledger.lost, 0)
		c.remove(t, "lock:lost")
		l.look()
		want(t, l.ledger.lost, 1)
	})
	t.Run("revived", func(t *testing.T) {
		l := c.observeKey("lock:revived")
		token := c.lock(t, l, "lock:revived")
		value, err := ask(c.masters()[0].Addr(), "GET", "lock:revived")
		kit.Must(t, err)
		l.ledger.ended(token)
		_, err = ask(c.proxies[0].addr, "UNLOCK", "lock:revived", token)
		kit.Must(t, err)
		l.ledger.settled(token)
		l.look()
		want(t, l.ledger.revived, 0)
		for _, master := range c.masters() {
			_, err := ask(master.Addr(), "SET", "lock:revived", value.(string), "PX", "60000")
			kit.Must(t, err)
		}
		l.look()
		want(t, l.ledger.revived, 1)
	})
	t.Run("differing", func(t *testing.T) {
		a := &agreement{cluster: c}
		c.lock(t, c.observeKey("lock:differing"), "lock:differing")
		wantDiffering(t, a, false)
		_, err := ask(c.masters()[0].Addr(), "DEL", "lock:differing")
		kit.Must(t, err)
		wantDiffering(t, a, true)
	})
	t.Run("open", func(t *testing.T) {
		c.lock(t, c.observeKey("lock:open"), "lock:open")
		value, err := ask(c.masters()[0].Addr(), "GET", "lock:open")
		kit.Must(t, err)
		copied := "#b" + value.(string)[2:38]
		for _, of := range [][masterCount]any{{value, value, copied, nil, nil}, {copied, copied, copied, copied, copied}} {
			for i, held := range of {
				if held == nil {
					_, err = ask(c.masters()[i].Addr(), "DEL", "lock:open")
				} else {
					_, err = ask(c.masters()[i].Addr(), "SET", "lock:open", held.(string))
				}
				kit.Must(t, err)
			}
			open, _ := (&agreement{cluster: c}).differing(func(key string) bool { return key == "lock:open" })
			if !slices.Equal(open, []string{"lock:open"}) {
				t.Errorf("what is open where the masters hold %.100q: %v", of, open)
			}
		}
		if err := (&agreement{cluster: c}).known(); err == nil || !strings.Contains(err.Error(), "NOQUORUM") {
			t.Errorf("the proxies know of all keys what they hold: %v", err)
		}
	})
}

// wantDiffering fails the test unless the check of the key lock:differing reports a difference if
// differs is set, and none otherwise.
func wantDiffering(t *testing.T, a *agreement, differs bool) {
	t.Helper()
	_, err := a.differing(func(string) bool { return false })
	if found := err != nil && strings.Contains(err.Error(), "under lock:differing "); found != differs {
		t.Errorf("it differs: %v, want %v: %v", found, differs, err)
	}
}

// TestForced: an operator's FORCEUNLOCK removes only locks that were requested before its reply.
func TestForced(t *testing.T) {
	redistest.SkipShort(t)
	l := newLedger()
	grant := func(key, token string, asked time.Duration) {
		l.granted(holding{key, token, l.now(), l.now() + time.Hour}, asked)
	}
	before := l.now()
	held, other := l.newToken(0), l.newToken(0)
	grant("k", held, before)
	grant("l", other, before)
	f := l.forcing("k")
	if l.isLive(held) || !l.isLive(other) || len(l.over) != 1 || l.over[0].to != f.from {
		t.Errorf("live: %v, over: %v", l.held(), l.over)
	}
	early, late := l.newToken(1), l.newToken(1)
	asked := l.now()
	grant("k", early, asked)
	l.forced(f, true)
	grant("k", late, l.now())
	if l.isLive(early) || !l.isLive(late) || !l.mayBeForced("k", asked) || l.mayBeForced("k", l.now()) ||
		l.mayBeForced("l", asked) {
		t.Errorf("live: %v", l.held())
	}
	if !l.isSettled(held) || l.isSettled(early) {
		t.Error("what was held when it was sent is gone for good, and nothing else is known to be")
	}
	l.forced(l.forcing("l"), false)
	if l.isSettled(other) || !l.mayBeForced("l", l.now()) {
		t.Error("what a FORCEUNLOCK without an answer did is not known")
	}
}

func allWell() wellBeing { return wellBeing{} }

// observeKey returns a looker for one key, with a ledger of its own.
func (c *cluster) observeKey(key string) *looker {
	return &looker{cluster: c, ledger: newLedger(), keys: []string{key}, well: allWell, confirm: c.holdsByProxy}
}

// lock takes a lock through the first proxy, so that all masters hold it.
func (c *cluster) lock(t *testing.T, l *looker, key string) (token string) {
	t.Helper()
	token = l.ledger.newToken(0)
	reply, err := ask(c.proxies[0].addr, "LOCK", key, token, "PX", "60000")
	if _, granted := reply.(int64); !granted || err != nil {
		t.Fatalf("LOCK: %v, %v", reply, err)
	}
	l.ledger.granted(holding{key, token, l.ledger.now(), time.Minute}, l.ledger.now())
	for end := time.Now().Add(time.Second); len(c.holders(key)) < masterCount; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("only %v have it", c.holders(key))
		}
	}
	return token
}

// holders returns the masters that hold a key.
func (c *cluster) holders(key string) (all []*master) {
	for _, master := range c.masters() {
		if value, err := ask(master.Addr(), "GET", key); err == nil && value != nil {
			all = append(all, master)
		}
	}
	return all
}

// remove deletes keys on a majority of the masters, whatever their values are.
func (c *cluster) remove(t *testing.T, keys ...string) {
	t.Helper()
	var removals sync.WaitGroup
	for _, master := range c.masters()[:majority] {
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
