package quorum

import (
	"time"

	"redlock-proxy/quorum/register"
)

// owe has a version of a key removed (package removals), for as long as its lease of ttl may last.
// Without a version the masters are to agree on the end of what they hold. mayArrive is as of
// removals.Add.
func (c *Cluster) owe(key Key, version string, ttl time.Duration, mayArrive func() bool) {
	if ttl < 0 {
		ttl = c.now().guards.MaxTTL()
	}
	if key.Tag == "" && version != "" && !c.now().keyspace(key.DB).Disown(key.Name, version) {
		return
	}
	if !c.removals.Add(key.anywhere(), version, time.Now().Add(ttl+register.Limit), mayArrive) {
		c.log.Warn("a lock that may be held by nobody stays until its TTL ends: too many removals are pending", "key", key.Name)
	}
}

// owes reports whether a version of a key is owed its removal.
func (c *Cluster) owes(key Key, version string) bool { return c.removals.Owes(key.anywhere(), version) }

// RemovalsPending is how many versions of keys are owed their removal, after an error or because
// their client did not learn of them.
func (c *Cluster) RemovalsPending() int { return c.removals.Len() }

// owing is what has versions removed that a Taking may have given its keys although it was answered
// with an error; nil where they stay.
func (g *generation) owing(t Taking) func(version string, mayArrive func() bool) {
	if t.Stays {
		return nil
	}
	return func(version string, mayArrive func() bool) {
		for _, key := range t.Keys {
			g.of.owe(key, version, t.TTL, mayArrive)
		}
	}
}

// Withdraw takes back, in the background, what a Take or an Update granted of these keys: that
// alone, whatever they hold by now.
func (c *Cluster) Withdraw(keys []Key, got Grant) {
	lease := got.Validity
	if lease >= 0 {
		lease += lease/50 + time.Second // what was given up for clocks
	}
	for _, key := range keys {
		c.owe(key, got.Version, lease, nil)
	}
}
