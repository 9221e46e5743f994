package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"redlock-proxy/quorum"
	"redlock-proxy/quorum/availability"
)

// masterDescs describes the metrics of the masters.
type masterDescs struct {
	masters, majority, quorum                     *prometheus.Desc
	up, votes, quarantine, left, since            *prometheus.Desc
	pending, catchUps, probe, clockOffset, voting *prometheus.Desc
	watched, unwatched                            *prometheus.Desc
	owed                                          *prometheus.Desc // former name of pending
}

func newMasterDescs() masterDescs {
	return masterDescs{
		masters:  describe("redlock_masters", "Configured masters."),
		voting:   describe("redlock_masters_voting", "Masters that vote."),
		majority: describe("redlock_majority", "Masters whose votes a lock needs."),
		quorum:   describe("redlock_quorum", "1 while locks are available, else 0."),
		up:       describe("redlock_master_up", "1 while the master answers, else 0.", "master"),
		votes:    describe("redlock_master_votes", "1 while the master's votes count, else 0.", "master"),
		quarantine: describe("redlock_master_quarantined",
			"1 while the master is in quarantine. The label reason says why.", "master", "reason"),
		left: describe("redlock_master_quarantine_left_seconds",
			"Time until the master's quarantine ends at the latest, if known.", "master"),
		since: describe("redlock_master_changed_timestamp_seconds",
			"When the master last went up or down, or got or lost its vote.", "master"),
		pending: describe("redlock_master_removals_pending",
			"Removals that wait until the master is reachable.", "master"),
		owed: describeFormer("redlock_master_removals_pending", "master"),
		catchUps: describe("redlock_master_catch_ups_total",
			"Catch-ups of the master that this proxy made.", "master"),
		probe: describe("redlock_master_probe_seconds",
			"Shortest round trip of the probe that brought the master up.", "master"),
		watched: describe("redlock_master_watched_keys",
			"Keys that the proxy watches on the master for clients that wait for a lock.", "master"),
		unwatched: describe("redlock_master_unwatched",
			"1 while the proxy polls the master for clients that wait for a lock, because it cannot watch it, "+
				"else 0.", "master"),
		clockOffset: describe("redlock_master_clock_offset_seconds",
			"By how much the master's clock is ahead of this machine's, if known.", "master"),
	}
}

func (d *masterDescs) all() []*prometheus.Desc {
	return []*prometheus.Desc{
		d.masters, d.voting, d.majority, d.quorum, d.up, d.votes, d.quarantine, d.left, d.since, d.pending, d.owed,
		d.catchUps, d.probe, d.clockOffset, d.watched, d.unwatched,
	}
}

func (d *masterDescs) describe(out chan<- *prometheus.Desc) {
	for _, desc := range d.all() {
		out <- desc
	}
}

// collect sends the metrics of the masters.
func (d *masterDescs) collect(
	out chan<- prometheus.Metric, all []quorum.MasterStatus, look availability.Inputs, now time.Time,
) {
	put := func(desc *prometheus.Desc, value float64, labels ...string) {
		out <- metric(desc, prometheus.GaugeValue, value, labels...)
	}
	var names []string
	for _, m := range all {
		names = append(names, m.Name)
	}
	for i, name := range labels(names) {
		m := &all[i]
		put(d.up, boolValue(m.Err == nil), name)
		put(d.votes, boolValue(m.State == quorum.Voting), name)
		put(d.since, float64(m.Since.UnixMilli())/1000, name)
		put(d.pending, float64(m.RemovalsPending), name)
		put(d.owed, float64(m.RemovalsPending), name)
		put(d.watched, float64(m.Watched), name)
		put(d.unwatched, boolValue(m.Unwatched != nil), name)
		d.collectOptional(put, m, name, now)
		out <- metric(d.catchUps, prometheus.CounterValue, float64(m.CatchUps), name)
	}
	put(d.masters, float64(len(all)))
	put(d.voting, float64(look.Voting))
	put(d.majority, float64(quorum.Majority(len(all))))
	put(d.quorum, boolValue(look.Decide().State == availability.Available))
}

// collectOptional sends the metrics of a master that are not always present.
func (d *masterDescs) collectOptional(
	put func(*prometheus.Desc, float64, ...string), m *quorum.MasterStatus, name string, now time.Time,
) {
	if q := m.Quarantine; q != nil {
		put(d.quarantine, 1, name, reason(q))
		if !q.Ready.IsZero() {
			put(d.left, max(0, q.Ready.Sub(now)).Seconds(), name)
		}
	}
	if m.RoundTrip > 0 {
		put(d.probe, m.RoundTrip.Seconds(), name)
	}
	if m.ClockKnown && m.Err == nil {
		put(d.clockOffset, m.ClockOffset.Seconds(), name)
	}
}

// reason returns the reason of a quarantine, from a closed list. The word comes from a key on the
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
