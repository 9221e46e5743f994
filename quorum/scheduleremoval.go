package quorum

import (
	"time"

	"redlock-proxy/quorum/register"
)

// scheduleRemoval schedules the removal of a version of a key (package removals) until its lease,
// of at most ttl, has expired. If the version is empty, it lets the masters agree on the expiry of
// the current value instead. removals.Add explains mayArrive.
func (c *Cluster) scheduleRemoval(key Key, version string, ttl time.Duration, mayArrive func() bool) {
	if ttl < 0 {
		ttl = c.masterSet().guards.MaxTTL()
	}
	if key.Tag == "" && version != "" && !c.masterSet().database(key.DB).ForgetVersion(key.Name, version) {
		return
	}
	if !c.removals.Add(key.withoutLocation(), version, time.Now().Add(ttl+register.Limit), mayArrive) {
		c.log.Warn("too many removals are pending: a lock that may have no holder stays until its lease expires",
			"key", key.Name)
	}
}

func (c *Cluster) isRemovalPending(key Key, version string) bool {
	return c.removals.IsPending(key.withoutLocation(), version)
}

// RemovalsPending returns the number of versions of keys that this proxy has to remove, after an
// error or because a client did not get the reply.
func (c *Cluster) RemovalsPending() int { return c.removals.Len() }

// removalScheduler returns the function that schedules the removal of versions that a failed
// TakeRequest may have stored. It returns nil if KeepOnNoQuorum is set: then the versions stay.
func (set *masterSet) removalScheduler(t TakeRequest) func(version string, mayArrive func() bool) {
	if t.KeepOnNoQuorum {
		return nil
	}
	return func(version string, mayArrive func() bool) {
		for _, key := range t.Keys {
			set.cluster.scheduleRemoval(key, version, t.TTL, mayArrive)
		}
	}
}

// Withdraw removes the grant of a Take or an Update from these keys, in the background. It leaves
// in place a newer value, and a lock that another client may have extended.
func (c *Cluster) Withdraw(keys []Key, grant GrantedLock) {
	lease := grant.Validity
	if lease >= 0 {
		lease += lease/50 + time.Second // the margin for clock drift
	}
	for _, key := range keys {
		if key.Tag == "" && c.masterSet().database(key.DB).MayHaveEvicted(grant.LeaseStart) {
			continue
		}
		c.scheduleRemoval(key, grant.Version, lease, nil)
	}
}
