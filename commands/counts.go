package commands

// Counts holds the counters of a table. Waiters, RemovalsPending and KeptLocks are current values.
// The other fields count since the creation of the table.
type Counts struct {
	// Waiters counts the clients that wait for a lock, or for another client's change of a lock
	// key.
	Waiters int
	// LocksWithoutTTL counts the lock keys that clients set without a TTL. LostSideEffects counts
	// the side effects of scripts that may be lost, because an error followed the commit.
	LocksWithoutTTL, LostSideEffects int64
	// ScriptRuns counts the runs of scripts on lock keys. A script runs again if another client
	// changes its keys meanwhile. ScriptsStopped counts the runs that the proxy stopped at a limit,
	// or could not start in time (BUSY).
	ScriptRuns, ScriptsStopped int64
	// DetectedLocks counts the commands for the upstream that take a lock on a key that is not a
	// lock key. DetectedReleases counts the commands that release such a lock.
	DetectedLocks, DetectedReleases int64
	// DirectLocks counts lock keys changed at the upstream while the locks were at the masters.
	DirectLocks int64
	// RemovalsPending counts the possible locks of failed commands that the proxy must still
	// remove.
	RemovalsPending int
	// KeptLocks counts the locks that the proxy renews for clients.
	KeptLocks int64
}

// Counts returns the current counters.
func (t *Table) Counts() Counts {
	c := Counts{Waiters: t.WaiterCount(), DirectLocks: t.opts.Server.DirectWrites.Count()}
	if pending := t.opts.Server.RemovalsPending; pending != nil {
		c.RemovalsPending = pending()
	}
	c.KeptLocks = t.keeper.Counts().Kept
	c.ScriptRuns, c.ScriptsStopped = t.router.scripts.Counts()
	c.LocksWithoutTTL, c.LostSideEffects = t.lockKeys.Counts()
	if t.lockDetector != nil {
		c.DetectedLocks, c.DetectedReleases = t.lockDetector.Counts()
	}
	return c
}
