package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"redlock-proxy/quorum"
	"redlock-proxy/quorum/availability"
)

// masterDescs describes the metrics of the masters.
type masterDescs struct {
	masters, majority, locksAvailable                                     *prometheus.Desc
	up, votes, quarantine, quarantineLeft, stateChange                    *prometheus.Desc
	removalsPending, catchUps, probeRoundTrip, clockOffset, votingMasters *prometheus.Desc
	watchedKeys, unwatchedMaster                                          *prometheus.Desc
	// formerRemovalsPending describes the metric of removalsPending under its former name.
	formerRemovalsPending *prometheus.Desc
}

func newMasterDescs() masterDescs {
	return masterDescs{
		masters:        newDesc("redlock_masters", "Configured masters."),
		votingMasters:  newDesc("redlock_masters_voting", "Masters that vote."),
		majority:       newDesc("redlock_majority", "Masters whose votes a lock needs."),
		locksAvailable: newDesc("redlock_quorum", "1 while locks are available, else 0."),
		up:             newDesc("redlock_master_up", "1 while the master answers, else 0.", "master"),
		votes:          newDesc("redlock_master_votes", "1 while the master's votes count, else 0.", "master"),
		quarantine: newDesc("redlock_master_quarantined",
			"1 while the master is in quarantine. The label reason says why.", "master", "reason"),
		quarantineLeft: newDesc("redlock_master_quarantine_left_seconds",
			"Time until the master's quarantine ends at the latest, if known.", "master"),
		stateChange: newDesc("redlock_master_changed_timestamp_seconds",
			"When the master last went up or down, or got or lost its vote.", "master"),
		removalsPending: newDesc("redlock_master_removals_pending",
			"Removals that wait until the master is reachable.", "master"),
		formerRemovalsPending: newFormerDesc("redlock_master_removals_pending", "master"),
		catchUps: newDesc("redlock_master_catch_ups_total",
			"Catch-ups of the master that this proxy made.", "master"),
		probeRoundTrip: newDesc("redlock_master_probe_seconds",
			"Shortest round trip of the probe that brought the master up.", "master"),
		watchedKeys: newDesc("redlock_master_watched_keys",
			"Keys that the proxy watches on the master for clients that wait for a lock.", "master"),
		unwatchedMaster: newDesc("redlock_master_unwatched",
			"1 while the proxy polls the master for clients that wait for a lock, because it cannot watch it, "+
				"else 0.", "master"),
		clockOffset: newDesc("redlock_master_clock_offset_seconds",
			"By how much the master's clock is ahead of this machine's, if known.", "master"),
	}
}

func (d *masterDescs) all() []*prometheus.Desc {
	return []*prometheus.Desc{
		d.masters, d.votingMasters, d.majority, d.locksAvailable, d.up, d.votes, d.quarantine, d.quarantineLeft, d.stateChange, d.removalsPending, d.formerRemovalsPending,
		d.catchUps, d.probeRoundTrip, d.clockOffset, d.watchedKeys, d.unwatchedMaster,
	}
}

func (d *masterDescs) describe(out chan<- *prometheus.Desc) {
	for _, desc := range d.all() {
		out <- desc
	}
}

// collect sends the metrics of the masters.
func (d *masterDescs) collect(
	out chan<- prometheus.Metric, statuses []quorum.MasterStatus, inputs availability.Inputs, now time.Time,
) {
	put := func(desc *prometheus.Desc, value float64, labels ...string) {
		out <- metric(desc, prometheus.GaugeValue, value, labels...)
	}
	var names []string
	for _, m := range statuses {
		names = append(names, m.Name)
	}
	for i, name := range masterLabels(names) {
		m := &statuses[i]
		put(d.up, boolValue(m.Err == nil), name)
		put(d.votes, boolValue(m.State == quorum.Voting), name)
		put(d.stateChange, float64(m.Since.UnixMilli())/1000, name)
		put(d.removalsPending, float64(m.RemovalsPending), name)
		put(d.formerRemovalsPending, float64(m.RemovalsPending), name)
		put(d.watchedKeys, float64(m.WatchedKeys), name)
		put(d.unwatchedMaster, boolValue(m.WatchErr != nil), name)
		d.collectOptional(put, m, name, now)
		out <- metric(d.catchUps, prometheus.CounterValue, float64(m.CatchUps), name)
	}
	put(d.masters, float64(len(statuses)))
	put(d.votingMasters, float64(inputs.VotingMasters))
	put(d.majority, float64(quorum.Majority(len(statuses))))
	put(d.locksAvailable, boolValue(inputs.Decide().State == availability.Available))
}

// collectOptional sends the metrics of a master that are not always present.
func (d *masterDescs) collectOptional(
	put func(*prometheus.Desc, float64, ...string), m *quorum.MasterStatus, name string, now time.Time,
) {
	if q := m.Quarantine; q != nil {
		put(d.quarantine, 1, name, reason(q))
		if !q.ReadyAt.IsZero() {
			put(d.quarantineLeft, max(0, q.ReadyAt.Sub(now)).Seconds(), name)
		}
	}
	if m.RoundTrip > 0 {
		put(d.probeRoundTrip, m.RoundTrip.Seconds(), name)
	}
	if m.ClockKnown && m.Err == nil {
		put(d.clockOffset, m.ClockOffset.Seconds(), name)
	}
}

// reason returns the reason of a quarantine, from a fixed list. The word comes from a key on the
// master, which any client of the master could have written.
func reason(q *quorum.QuarantineError) string {
	switch word := q.Reason(); word {
	case "restarted", "flushed", "replicated", "clock", "evicted", "empty", "fresh", "unverified", "settings",
		"place", "vouched", "joining", "replaced":
		return word
	default:
		return "other"
	}
}
