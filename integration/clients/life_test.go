//go:build integration

package clients

import (
	"fmt"
	"sync/atomic"
	"time"

	"redlock-proxy/integration/kit"
)

const (
	longLease       = 20 * time.Second // for locks that must not expire while the test reads them
	longerLease     = 60 * time.Second
	heldLease       = 10 * time.Minute // for locks that are held during contests
	shortestLease   = 300 * time.Millisecond
	coarseLease     = time.Second // the shortest lease of libraries that count in seconds
	holdTime        = 3 * time.Millisecond
	grantsPerClient = 6 // grants of each client in a contest
	contestGrants   = 2 * grantsPerClient
	// contestTimeout limits a contest. Locks with time stamps may each have to expire.
	contestTimeout = 2 * driverTimeout
)

// checkDialect tests a dialect with all masters, while a minority of them is killed, and while the
// minority is restarted.
func (s *lockService) checkDialect(d dialect) {
	s.t.Helper()
	s.checkLifecycle(d, d.key("life"))
	s.checkContest(d, d.key("contest"), func() error { return nil })
	if d.extraCheck != nil {
		d.extraCheck(s, d)
	}
	heldKey := d.key("kept")
	s.wantGrant(s.a, d, heldKey, heldLease)
	s.checkContest(d, d.key("contest-killed"), s.killMinority)
	s.wantStillHeld(d, heldKey)
	s.checkLifecycle(d, d.key("life-killed"))
	s.checkContest(d, d.key("contest-back"), s.restartMinority)
	s.wantStillHeld(d, heldKey)
	s.run(s.a, d, "release", heldKey)
	s.wantGrant(s.b, d, heldKey, longLease)
	s.run(s.b, d, "release", heldKey)
}

// wantStillHeld fails the test unless client a still holds a lock. It also extends the lock, if
// possible.
func (s *lockService) wantStillHeld(d dialect, key string) {
	s.t.Helper()
	s.wantRefusal(s.b, d, key)
	s.checkNonHolder(d, key)
	if d.canExtend {
		s.run(s.a, d, "extend", key, kit.Millis(heldLease))
	}
}

// checkLifecycle takes and releases a lock, while another client tries to take it, too.
func (s *lockService) checkLifecycle(d dialect, key string) {
	s.t.Helper()
	s.wantGrant(s.a, d, key, longLease)
	s.wantOnMasters(d, key)
	s.wantRefusal(s.b, d, key)
	s.checkNonHolder(d, key)
	if d.canExtend {
		s.extendLock(d, key)
	}
	s.run(s.a, d, "release", key)
	s.run(s.a, d, "release", key)
	if d.canExtend {
		s.run(s.a, d, "extend", key, kit.Millis(longerLease))
		s.run(s.a, d, "release", key) // some libraries take a lock again by extending it
	}
	s.wantGrant(s.b, d, key, longLease)
	s.wantRefusal(s.a, d, key)
	s.run(s.b, d, "release", key)
	s.note("after all: %v", s.values(d, key))
}

// extendLock lets the holder extend its lock.
func (s *lockService) extendLock(d dialect, key string) {
	s.t.Helper()
	low := longLease
	if d.fixedLease {
		low /= 2
		kit.Want(s.t, s.reader, int64(1), "PEXPIRE", key, kit.Millis(low))
	}
	s.run(s.a, d, "extend", key, kit.Millis(longerLease))
	if !d.withoutTTL {
		// Some libraries add the new lease to the remaining time.
		s.wantRemaining(d, key, low, longLease+longerLease)
	}
}

// checkNonHolder checks that a client can neither extend nor release a lock of another client.
func (s *lockService) checkNonHolder(d dialect, key string) {
	s.t.Helper()
	if !d.holderOnly {
		return
	}
	s.wantUnchanged(d, key, func() {
		if d.canExtend {
			s.run(s.b, d, "extend", key, kit.Millis(longerLease))
		}
		s.run(s.b, d, "release", key)
	})
}

// checkExpiry lets locks of all dialects expire. It calls midpointAction before their expiry.
func (s *lockService) checkExpiry(dialects []dialect, name string, midpointAction func() error) {
	s.t.Helper()
	for _, d := range dialects {
		s.wantGrantSoon(s.a, d, d.key(name), d.shortLease())
	}
	kit.Must(s.t, midpointAction())
	for _, d := range dialects {
		key := d.key(name)
		s.wantGrantSoon(s.b, d, key, longLease)
		if d.holderOnly {
			s.wantUnchanged(d, key, func() {
				if d.canExtend {
					s.run(s.a, d, "extend", key, kit.Millis(longerLease))
				}
				s.run(s.a, d, "release", key)
			})
		}
		s.run(s.b, d, "release", key)
	}
}

// checkContest lets both clients take one lock repeatedly. Each client is granted the lock, but
// never both at the same time. It calls midpointAction after half of the grants.
func (s *lockService) checkContest(d dialect, key string, midpointAction func() error) {
	s.t.Helper()
	c := &lockContest{dialect: d, key: key, refusal: s.refusalOutputs[d.kind(key)], midpointAction: midpointAction}
	failures := make(chan error, 2)
	for _, client := range []*driver{s.a, s.b} {
		go func() { failures <- c.run(client) }()
	}
	for range 2 {
		if err := <-failures; err != nil {
			s.t.Errorf("%s: contest for %s: %v", d.name, key, err)
		}
	}
	s.note("%s: contest for %s: %d grants", d.name, key, c.grants.Load())
}

// lockContest holds the state of two clients that contend for one lock.
type lockContest struct {
	dialect        dialect
	key            string
	refusal        string
	midpointAction func() error
	holders        atomic.Int32
	grants         atomic.Int32
}

// run lets one client take and release the lock until the client has been granted it
// grantsPerClient times. After a late reply the client may hold the lock. It then releases the lock,
// unless its release would also release the other client's lock.
func (c *lockContest) run(client *driver) error {
	startedAt := time.Now()
	for grants := 0; grants < grantsPerClient; {
		reply, err := client.ask(c.dialect.name, "take", c.key, kit.Millis(c.dialect.contestLease()))
		isLate := kit.IsLateText(reply)
		switch {
		case err != nil:
			return err
		case reply == c.dialect.grantOutput:
			grants++
			if err := c.hold(client); err != nil {
				return err
			}
		case reply != c.refusal && !isLate:
			return fmt.Errorf("client %s: got %s, want %s or %s", client.name, reply, c.dialect.grantOutput, c.refusal)
		case time.Since(startedAt) > contestTimeout:
			return fmt.Errorf("client %s was granted the lock %d times only in %v", client.name, grants, contestTimeout)
		case isLate && c.dialect.holderOnly:
			if _, err := client.ask(c.dialect.name, "release", c.key); err != nil {
				return err
			}
		}
		time.Sleep(holdTime / 2) // so that the other client gets a turn
	}
	return nil
}

// hold keeps the lock for a while, and releases it.
func (c *lockContest) hold(client *driver) error {
	if c.holders.Add(1) > 1 {
		return fmt.Errorf("client %s was granted the lock while the other held it", client.name)
	}
	if c.grants.Add(1) == contestGrants/2 {
		if err := c.midpointAction(); err != nil {
			return err
		}
	}
	time.Sleep(holdTime) // the other client is refused meanwhile
	c.holders.Add(-1)
	_, err := client.ask(c.dialect.name, "release", c.key)
	return err
}
