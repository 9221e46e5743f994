//go:build integration

package clients

import (
	"fmt"
	"sync/atomic"
	"time"

	"redlock-proxy/integration/kit"
)

const (
	longLease    = 20 * time.Second // for locks that must be held while they are read
	longerLease  = 60 * time.Second
	briefLease   = 300 * time.Millisecond
	coarseLease  = time.Second // the shortest lease of libraries that count in seconds
	pause        = 3 * time.Millisecond
	turns        = 6 // grants of each client in a contest
	contestTurns = 2 * turns
)

// whole tests a dialect with all masters, while a minority is killed, and when it is restarted.
func (s *side) whole(d dialect) {
	s.t.Helper()
	s.life(d, d.key("life"))
	s.contest(d, d.key("contest"), func() error { return nil })
	if d.more != nil {
		d.more(s, d)
	}
	kept := d.key("kept")
	s.take(s.a, d, kept, longerLease)
	s.contest(d, d.key("contest-killed"), s.killMinority)
	s.stillKept(d, kept)
	s.life(d, d.key("life-killed"))
	s.contest(d, d.key("contest-back"), s.restartMinority)
	s.stillKept(d, kept)
	s.say(s.a, d, "release", kept)
	s.take(s.b, d, kept, longLease)
	s.say(s.b, d, "release", kept)
}

// stillKept fails the test unless client a still holds a lock.
func (s *side) stillKept(d dialect, key string) {
	s.t.Helper()
	s.refuse(s.b, d, key)
	s.strangers(d, key)
	if d.extends {
		s.say(s.a, d, "extend", key, kit.Millis(longerLease))
	}
}

// life takes and releases a lock, while another client tries to take it, too.
func (s *side) life(d dialect, key string) {
	s.t.Helper()
	s.take(s.a, d, key, longLease)
	s.wantOnMasters(d, key)
	s.refuse(s.b, d, key)
	s.strangers(d, key)
	if d.extends {
		s.prolong(d, key)
	}
	s.say(s.a, d, "release", key)
	s.say(s.a, d, "release", key)
	if d.extends {
		s.say(s.a, d, "extend", key, kit.Millis(longerLease))
		s.say(s.a, d, "release", key) // some libraries take a lock again by extending it
	}
	s.take(s.b, d, key, longLease)
	s.refuse(s.a, d, key)
	s.say(s.b, d, "release", key)
	s.note("after all: %v", s.values(d, key))
}

// prolong lets the holder extend its lock.
func (s *side) prolong(d dialect, key string) {
	s.t.Helper()
	low := longLease
	if d.fixed {
		low /= 2
		kit.Want(s.t, s.raw, int64(1), "PEXPIRE", key, kit.Millis(low))
	}
	s.say(s.a, d, "extend", key, kit.Millis(longerLease))
	if !d.endless {
		s.remaining(d, key, low, longLease+longerLease) // some libraries add the time to the remaining time
	}
}

// strangers lets the other client extend and release a lock that it does not hold.
func (s *side) strangers(d dialect, key string) {
	s.t.Helper()
	if !d.owned {
		return
	}
	s.undisturbed(d, key, func() {
		if d.extends {
			s.say(s.b, d, "extend", key, kit.Millis(longerLease))
		}
		s.say(s.b, d, "release", key)
	})
}

// expiries lets locks of all dialects expire. It calls midway before their expiry.
func (s *side) expiries(dialects []dialect, name string, midway func() error) {
	s.t.Helper()
	for _, d := range dialects {
		s.takeSoon(s.a, d, d.key(name), d.short())
	}
	kit.Must(s.t, midway())
	for _, d := range dialects {
		key := d.key(name)
		s.takeSoon(s.b, d, key, longLease)
		if d.owned {
			s.undisturbed(d, key, func() {
				if d.extends {
					s.say(s.a, d, "extend", key, kit.Millis(longerLease))
				}
				s.say(s.a, d, "release", key)
			})
		}
		s.say(s.b, d, "release", key)
	}
}

// contest lets both clients take one lock repeatedly: each is granted it, and never both at the
// same time. It calls midway after half of the grants.
func (s *side) contest(d dialect, key string, midway func() error) {
	s.t.Helper()
	c := &contestants{dialect: d, key: key, refusal: s.refusals[d.kind(key)], midway: midway}
	failures := make(chan error, 2)
	for _, client := range []*driver{s.a, s.b} {
		go func() { failures <- c.run(client) }()
	}
	for range 2 {
		if err := <-failures; err != nil {
			s.t.Errorf("%s: contest for %s: %v", d.name, key, err)
		}
	}
	s.note("%s: contest for %s: %d grants", d.name, key, c.granted.Load())
}

// contestants holds the state of two clients that contend for one lock.
type contestants struct {
	dialect dialect
	key     string
	refusal string
	midway  func() error
	inside  atomic.Int32
	granted atomic.Int32
}

// run lets one client take the lock until it has been granted the lock often enough.
func (c *contestants) run(client *driver) error {
	began := time.Now()
	for taken := 0; taken < turns; {
		shown, err := client.ask(c.dialect.name, "take", c.key, kit.Millis(c.dialect.contestLease()))
		switch {
		case err != nil:
			return err
		case shown == c.dialect.taken:
			taken++
			if err := c.hold(client); err != nil {
				return err
			}
		case shown != c.refusal:
			return fmt.Errorf("client %s: got %s, want %s or %s", client.name, shown, c.dialect.taken, c.refusal)
		case time.Since(began) > driverPatience:
			return fmt.Errorf("client %s was granted the lock %d times only in %v", client.name, taken, driverPatience)
		}
		time.Sleep(pause / 2) // so that the other client gets a turn
	}
	return nil
}

// hold keeps the lock for a while, and releases it.
func (c *contestants) hold(client *driver) error {
	if c.inside.Add(1) > 1 {
		return fmt.Errorf("client %s was granted the lock while the other held it", client.name)
	}
	if c.granted.Add(1) == contestTurns/2 {
		if err := c.midway(); err != nil {
			return err
		}
	}
	time.Sleep(pause) // the other client is refused meanwhile
	c.inside.Add(-1)
	_, err := client.ask(c.dialect.name, "release", c.key)
	return err
}
