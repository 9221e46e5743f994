package guard

import (
	"testing"
	"time"

	"redlock-proxy/quorum/guard/marker"
)

func marked(runID, nonce string, durable bool) marker.Stored[marker.Marker] {
	return stands(marker.Marker{RunID: runID, ReplID: "r", Nonce: nonce, Durable: durable, Proof: marker.ProofLease,
		Address: "m"}, 0)
}

func stands(m marker.Marker, db int) marker.Stored[marker.Marker] {
	return marker.ReadMarker(marker.InDatabase(m.String(), db))
}

// TestJudge checks every decision about a master, by its report and by the proxy's knowledge.
func TestJudge(t *testing.T) {
	rec := func(runID string, why Reason) marker.Stored[marker.Record] {
		return marker.ReadRecord(marker.Record{RunID: runID, Nonce: "n", Since: 1, Claim: marker.NoClaim,
			Reason: string(why)}.String())
	}
	claims := func(nonce, of string) marker.Stored[marker.Record] {
		return marker.ReadRecord(marker.Record{RunID: "1", Nonce: "n-1", Since: 1, Claim: nonce, ClaimOf: of,
			Reason: string(Restarted)}.String())
	}
	fresh := stands(marker.Marker{RunID: "1", ReplID: "r", Nonce: "f", Proof: marker.ProofFresh, Address: "m"}, 0)
	elsewhere := stands(marker.Marker{RunID: "9", ReplID: "r", Nonce: "a", Durable: true, Proof: marker.ProofLease,
		Address: "other"}, 0)
	known := history{nonce: "a", runID: "1"}
	for _, c := range []struct {
		name  string
		v     Report
		past  history
		want  nextAction
		why   Reason
		claim string
	}{
		{"marked, in its first life", Report{Marker: marked("1", "a", false)}, history{}, actionTrust, "", marker.NoClaim},
		{"marked by another proxy since", Report{Marker: marked("1", "b", false)}, known, actionTrust, "", marker.NoClaim},
		{"marked, and its clock stepped", Report{Marker: marked("1", "a", false)}, history{stepped: true},
			actionQuarantine, ClockStepped, marker.NoClaim},
		{"marked, and was a replica since", Report{ReplID: "x", Marker: marked("1", "a", false)}, history{},
			actionQuarantine, Replicated, marker.NoClaim},
		{"marked, and was a replica since a proxy saw it", Report{ReplID: "x", WasReplica: true,
			Marker: marked("1", "a", false)}, known, actionQuarantine, Replicated, marker.NoClaim},
		{"marked, and got its first replica", Report{ReplID: "x", Marker: marked("1", "a", false)}, known,
			actionUpdateMarker, "", marker.NoClaim},
		{"marked, and its sequence went back", Report{Marker: marked("1", "a", false)},
			history{nonce: "a", older: true}, actionQuarantine, Replicated, marker.NoClaim},
		{"marked, and evicted since", Report{Evicted: 1, Marker: marked("1", "a", false)}, history{}, actionQuarantine,
			Evicted, marker.NoClaim},
		{"marked with the number of another database", Report{Marker: stands(marked("1", "a", false).Value, 1)},
			known, actionQuarantine, Flushed, marker.NoClaim},
		{"marked as fresh", Report{Marker: fresh}, history{}, actionTrust, "", marker.NoClaim},
		{"marked as fresh, where locks may live", Report{Marker: fresh}, history{nonce: "a", lives: true},
			actionQuarantine, Restarted, marker.NoClaim},
		{"marked as fresh, long after", Report{Marker: fresh}, known, actionTrust, "", marker.NoClaim},
		{"marked as fresh, as known", Report{Marker: fresh}, history{nonce: "f", lives: true}, actionTrust, "",
			marker.NoClaim},
		{"durable when it was marked, not now", Report{Appendfsync: "off", Marker: marked("1", "a", true)}, known,
			actionUpdateMarker, "", marker.NoClaim},
		{"restarted with a marker", Report{RunID: "2", Marker: marked("1", "a", false)}, history{}, actionQuarantine,
			Restarted, marker.NoClaim},
		{"restarted, durable now only", Report{RunID: "2", Appendfsync: "always", Marker: marked("1", "a", false)},
			history{}, actionQuarantine, Restarted, marker.NoClaim},
		{"restarted, durable then only", Report{RunID: "2", Appendfsync: "everysec", Marker: marked("1", "a", true)},
			history{}, actionQuarantine, Restarted, marker.NoClaim},
		{"restarted, durable", Report{RunID: "2", Appendfsync: "always", Marker: marked("1", "a", true)}, history{},
			actionQuarantine, Restarted, "a"},
		{"restarted, durable, and its clock stepped", Report{RunID: "2", Appendfsync: "always",
			Marker: marked("1", "a", true)}, history{stepped: true}, actionQuarantine, ClockStepped, marker.NoClaim},
		{"restarted, durable but for rewrites", Report{RunID: "2", Appendfsync: "always", RewriteUnsynced: true,
			Marker: marked("1", "a", true)}, history{}, actionQuarantine, Restarted, marker.NoClaim},
		{"restarted, durable, as known", Report{RunID: "2", Appendfsync: "always", Marker: marked("1", "a", true)},
			known, actionQuarantine, Restarted, "a"},
		{"restarted, durable, from older data", Report{RunID: "2", Appendfsync: "always",
			Marker: marked("1", "a", true)}, history{nonce: "b"}, actionQuarantine, Restarted, marker.NoClaim},
		{"restarted, durable, with another's data", Report{RunID: "2", Appendfsync: "always", Marker: elsewhere},
			history{}, actionQuarantine, Replicated, marker.NoClaim},
		{"another's data", Report{Marker: elsewhere}, history{nonce: "b", runID: "1"}, actionQuarantine, Replicated,
			marker.NoClaim},
		{"nothing, never seen", Report{}, history{}, actionUnmarked, Restarted, marker.NoClaim},
		{"nothing, known in this life", Report{}, known, actionQuarantine, Flushed, marker.NoClaim},
		{"nothing, known in an earlier life", Report{RunID: "2"}, known, actionQuarantine, Restarted, marker.NoClaim},
		{"in quarantine", Report{Record: rec("1", Flushed)}, history{}, actionWait, Flushed, marker.NoClaim},
		{"met empty", Report{Record: rec("1", Empty)}, history{}, actionEmpty, Empty, marker.NoClaim},
		{"met empty, where it was known", Report{Record: rec("1", Empty)}, known, actionQuarantine, Restarted,
			marker.NoClaim},
		{"met empty in an earlier life", Report{RunID: "2", Record: rec("1", Empty)}, history{}, actionQuarantine,
			Restarted, marker.NoClaim},
		{"in quarantine, and its clock stepped", Report{Record: rec("1", Flushed)}, history{stepped: true},
			actionQuarantine, ClockStepped, marker.NoClaim},
		{"in quarantine in an earlier life", Report{RunID: "2", Record: rec("1", Flushed)}, history{}, actionQuarantine,
			Restarted, marker.NoClaim},
		{"restarted again, durable", Report{RunID: "2", Appendfsync: "always", Record: claims("a", "m")}, history{},
			actionQuarantine, Restarted, "a"},
		{"restarted again, as known", Report{RunID: "2", Appendfsync: "always", Record: claims("a", "other")}, known,
			actionQuarantine, Restarted, "a"},
		{"restarted again, from older data", Report{RunID: "2", Appendfsync: "always", Record: claims("a", "m")},
			history{nonce: "b"}, actionQuarantine, Restarted, marker.NoClaim},
		{"restarted again, with another's data", Report{RunID: "2", Appendfsync: "always",
			Record: claims("a", "other")}, history{}, actionQuarantine, Restarted, marker.NoClaim},
		{"restarted again, not durable now", Report{RunID: "2", Appendfsync: "everysec", Record: claims("a", "m")},
			history{}, actionQuarantine, Restarted, marker.NoClaim},
		{"restarted again, of another set of masters", Report{RunID: "2", Appendfsync: "always",
			Record: claims("a", "m")}, history{suffix: "-2"}, actionQuarantine, Restarted, marker.NoClaim},
		{"restarted again, and its clock stepped", Report{RunID: "2", Appendfsync: "always",
			Record: claims("a", "m")}, history{stepped: true}, actionQuarantine, Restarted, marker.NoClaim},
		{"restarted again, without a claim", Report{RunID: "2", Appendfsync: "always", Record: rec("1", Restarted)},
			history{}, actionQuarantine, Restarted, marker.NoClaim},
		{"a marker that is none", Report{Marker: marker.ReadMarker("x@0")}, history{}, actionQuarantine, Restarted,
			marker.NoClaim},
		{"a record that is none", Report{Record: marker.ReadRecord("x")}, history{}, actionQuarantine, Restarted,
			marker.NoClaim},
		{"a server that does not show its run_id", Report{RunID: NotReported,
			Marker: marked(NotReported, "a", false)}, history{}, actionTrust, "", marker.NoClaim},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.v.RunID == "" {
				c.v.RunID = "1"
			}
			if c.v.ReplID == "" {
				c.v.ReplID = "r"
			}
			c.past.name = "m"
			if got, why := judge(c.v, c.past); got != c.want || why != c.why {
				t.Errorf("got %d, %q, want %d, %q", got, why, c.want, c.why)
			}
			if claim := claimOf(c.v, c.past); claim != c.claim {
				t.Errorf("claims %q, want %q", claim, c.claim)
			}
		})
	}
}

func TestLeaseLeft(t *testing.T) {
	for _, c := range []struct{ watched, longest, want time.Duration }{
		{0, 20 * time.Second, 20*time.Second + 202*time.Millisecond},
		{15 * time.Second, 20 * time.Second, 5*time.Second + 202*time.Millisecond},
		{0, time.Second, allChecked},
		{time.Hour, time.Second, allChecked - time.Hour},
	} {
		if got := leaseLeft(c.watched, c.longest); got != c.want {
			t.Errorf("%v: got %v", c, got)
		}
	}
}
