package quorum

import "time"

// ObserveReleases calls f with each lock that its client releases through this proxy, and the time
// since this proxy granted the lock. It omits a lock that another proxy granted, and a lock that
// ended otherwise. f must not wait. ObserveReleases must be called before Run.
func (c *Cluster) ObserveReleases(f func(key Key, held time.Duration)) { c.observeRelease = f }

// heldSince returns the time at which this proxy granted the lock of a key with this token. It
// returns the zero time if that is unknown, or if no function observes releases.
func (set *masterSet) heldSince(key Key, token string) time.Time {
	if set.cluster.observeRelease == nil {
		return time.Time{}
	}
	if since := set.database(key.DB).HeldSince(key.Name, token); !since.IsZero() {
		return since
	}
	lone, _, _ := set.knownHolder(key, token)
	return set.holderSince(key, token, lone)
}

// holderSince returns the time at which this proxy granted the lock to one of several holders, or
// the zero time. lone is the result of knownHolder. While the client is the only holder, an EXTEND
// changes only the grant of the key.
func (set *masterSet) holderSince(key Key, token, lone string) time.Time {
	if lone == "" {
		return time.Time{}
	}
	db := set.database(key.DB)
	if since := db.HeldSince(key.Name, lone); !since.IsZero() {
		return since
	}
	return db.HeldSince(key.grantName(token), lone)
}
