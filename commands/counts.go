package commands

// Counts are what a table has counted since it was made, and who waits now.
type Counts struct {
	// Waiting are the clients that wait for a lock.
	Waiting int
	// Endless are the lock keys that were set without a TTL, EffectsLost the side effects of
	// scripts that were not carried out.
	Endless, EffectsLost int64
	// ScriptRuns are the runs of scripts on lock keys; a script runs again where others change
	// its keys meanwhile. ScriptsStopped are those of them that were ended at a limit, or found no
	// place in their time (BUSY).
	ScriptRuns, ScriptsStopped int64
	// UncoveredLocks and UncoveredReleases are commands for the upstream that take or release a
	// lock on a key that is no lock key.
	UncoveredLocks, UncoveredReleases int64
	// StrayLocks is how often a lock key was noticed at the upstream while the locks are at the
	// masters.
	StrayLocks int64
	// RemovalsPending are the locks that are still to be removed, since a command with an error may
	// have left them.
	RemovalsPending int
}

// Counts are those of now.
func (t *Table) Counts() Counts {
	c := Counts{Waiting: t.Waiting(), StrayLocks: t.opts.Server.Strays.Count()}
	if pending := t.opts.Server.RemovalsPending; pending != nil {
		c.RemovalsPending = pending()
	}
	c.ScriptRuns, c.ScriptsStopped = t.router.scripts.Counts()
	c.Endless, c.EffectsLost = t.lockKeys.Counts()
	if t.uncovered != nil {
		c.UncoveredLocks, c.UncoveredReleases = t.uncovered.Counts()
	}
	return c
}
