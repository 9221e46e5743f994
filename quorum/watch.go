package quorum

import (
	"time"

	"redlock-proxy/quorum/availability"
	"redlock-proxy/quorum/watch"
)

// ChangeWatch watches a key that a client has read. It sends a Report when the key may have
// changed; see package watch.
type (
	ChangeWatch = watch.ChangeWatch
	Report      = watch.Report
)

// The reports of a ChangeWatch.
const (
	ReportSomeChanged   = watch.ReportSomeChanged
	ReportQuorumChanged = watch.ReportQuorumChanged
	ReportUnwatched     = watch.ReportUnwatched
)

// WatchChange returns a ChangeWatch for a key, which calls notify with each report.
func (c *Cluster) WatchChange(key Key, notify func(Report)) *ChangeWatch {
	return c.masterSet().watcher.WatchChange(key.DB, key.cellName(), notify)
}

// Availability returns the state of the masters from which package availability decides whether
// locks are available.
func (c *Cluster) Availability() availability.Inputs {
	set, u := c.masterSet(), c.currentChange.Load()
	at, known := c.CurrentLocation()
	return availability.Inputs{
		Masters: len(set.masters), VotingMasters: countVoting(set.masters), Place: at.Place, Known: known,
		Changing: u != nil && time.Since(u.start) < changeTimeout || c.IsLeavingMasters(),
	}
}
