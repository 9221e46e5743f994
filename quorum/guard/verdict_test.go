package guard

import (
	"testing"
	"time"

	"redlock-proxy/quorum/guard/marker"
)

func marked(runID, nonce string, durable bool) marker.Stored[marker.Marker] {
	return stands(marker.Marker{RunID: runID, ReplID: "r", Nonce: nonce, Durable: durable, Proof: marker.ProofLease, Address: "m"}, 0)
}

func stands(m marker.Marker, db int) marker.Stored[marker.Marker] {
	return marker.ReadMarker(marker.InDatabase(m.String(), db))
}

// TestJudge is the whole of what is decided about a master, by what it tells and what
// was known of it.
func TestJudge(t *testing.T) {
	rec := func(runID string, why Reason) marker.Stored[marker.Record] {
		return marker.ReadRecord(marker.Record{RunID: runID, Nonce: "n", Since: 1, Claim: marker.NoClaim, Reason: string(why)}.String())
	}
	claims := func(nonce, of string) marker.Stored[marker.Record] {
		return marker.ReadRecord(marker.Record{RunID: "1", Nonce: "n-1", Since: 1, Claim: nonce, ClaimOf: of, Reason: string(Restarted)}.String())
	}
	fresh := stands(marker.Marker{RunID: "1", ReplID: "r", Nonce: "f", Proof: marker.ProofFresh, Address: "m"}, 0)
	elsewhere := stands(marker.Marker{RunID: "9", ReplID: "r", Nonce: "a", Durable: true, Proof: marker.ProofLease, Address: "other"}, 0)
	known := memory{nonce: "a", runID: "1"}
	for _, c := range []struct {
		name  string
		v     Report
		past  memory
		want  verdictOn
		why   Reason
		claim string
	}{
		{"marked, in its first life", Report{Marker: marked("1", "a", false)}, memory{}, onTrust, "", marker.NoClaim},
		{"marked by another proxy since", Report{Marker: marked("1", "b", false)}, known, onTrust, "", marker.NoClaim},
		{"marked, and its clock stepped", Report{Marker: marked("1", "a", false)}, memory{stepped: true}, onQuarantine, ClockStepped, marker.NoClaim},
		{"marked, and was a replica since", Report{ReplID: "x", Marker: marked("1", "a", false)}, memory{}, onQuarantine, Replicated, marker.NoClaim},
		{"marked, and was a replica since a proxy saw it", Report{ReplID: "x", WasReplica: true, Marker: marked("1", "a", false)}, known, onQuarantine, Replicated, marker.NoClaim},
		{"marked, and got its first replica", Report{ReplID: "x", Marker: marked("1", "a", false)}, known, onReword, "", marker.NoClaim},
		{"marked, and its sequence went back", Report{Marker: marked("1", "a", false)}, memory{nonce: "a", older: true}, onQuarantine, Replicated, marker.NoClaim},
		{"marked, and evicted since", Report{Evicted: 1, Marker: marked("1", "a", false)}, memory{}, onQuarantine, Evicted, marker.NoClaim},
		{"marked with the number of another database", Report{Marker: stands(marked("1", "a", false).Value, 1)}, known, onQuarantine, Flushed, marker.NoClaim},
		{"marked as fresh", Report{Marker: fresh}, memory{}, onTrust, "", marker.NoClaim},
		{"marked as fresh, where locks may live", Report{Marker: fresh}, memory{nonce: "a", lives: true}, onQuarantine, Restarted, marker.NoClaim},
		{"marked as fresh, long after", Report{Marker: fresh}, known, onTrust, "", marker.NoClaim},
		{"marked as fresh, as known", Report{Marker: fresh}, memory{nonce: "f", lives: true}, onTrust, "", marker.NoClaim},
		{"durable when it was marked, not now", Report{Appendfsync: "off", Marker: marked("1", "a", true)}, known, onReword, "", marker.NoClaim},
		{"restarted with a marker", Report{RunID: "2", Marker: marked("1", "a", false)}, memory{}, onQuarantine, Restarted, marker.NoClaim},
		{"restarted, durable now only", Report{RunID: "2", Appendfsync: "always", Marker: marked("1", "a", false)}, memory{}, onQuarantine, Restarted, marker.NoClaim},
		{"restarted, durable then only", Report{RunID: "2", Appendfsync: "everysec", Marker: marked("1", "a", true)}, memory{}, onQuarantine, Restarted, marker.NoClaim},
		{"restarted, durable", Report{RunID: "2", Appendfsync: "always", Marker: marked("1", "a", true)}, memory{}, onQuarantine, Restarted, "a"},
		{"restarted, durable, and its clock stepped", Report{RunID: "2", Appendfsync: "always", Marker: marked("1", "a", true)}, memory{stepped: true}, onQuarantine, ClockStepped, marker.NoClaim},
		{"restarted, durable but for rewrites", Report{RunID: "2", Appendfsync: "always", RewriteUnsynced: true, Marker: marked("1", "a", true)}, memory{}, onQuarantine, Restarted, marker.NoClaim},
		{"restarted, durable, as known", Report{RunID: "2", Appendfsync: "always", Marker: marked("1", "a", true)}, known, onQuarantine, Restarted, "a"},
		{"restarted, durable, from older data", Report{RunID: "2", Appendfsync: "always", Marker: marked("1", "a", true)}, memory{nonce: "b"}, onQuarantine, Restarted, marker.NoClaim},
		{"restarted, durable, with another's data", Report{RunID: "2", Appendfsync: "always", Marker: elsewhere}, memory{}, onQuarantine, Replicated, marker.NoClaim},
		{"another's data", Report{Marker: elsewhere}, memory{nonce: "b", runID: "1"}, onQuarantine, Replicated, marker.NoClaim},
		{"nothing, never seen", Report{}, memory{}, onUnmarked, Restarted, marker.NoClaim},
		{"nothing, known in this life", Report{}, known, onQuarantine, Flushed, marker.NoClaim},
		{"nothing, known in an earlier life", Report{RunID: "2"}, known, onQuarantine, Restarted, marker.NoClaim},
		{"in quarantine", Report{Record: rec("1", Flushed)}, memory{}, onWait, Flushed, marker.NoClaim},
		{"met empty", Report{Record: rec("1", Blank)}, memory{}, onBlank, Blank, marker.NoClaim},
		{"met empty, where it was known", Report{Record: rec("1", Blank)}, known, onQuarantine, Restarted, marker.NoClaim},
		{"met empty in an earlier life", Report{RunID: "2", Record: rec("1", Blank)}, memory{}, onQuarantine, Restarted, marker.NoClaim},
		{"in quarantine, and its clock stepped", Report{Record: rec("1", Flushed)}, memory{stepped: true}, onQuarantine, ClockStepped, marker.NoClaim},
		{"in quarantine in an earlier life", Report{RunID: "2", Record: rec("1", Flushed)}, memory{}, onQuarantine, Restarted, marker.NoClaim},
		{"restarted again, durable", Report{RunID: "2", Appendfsync: "always", Record: claims("a", "m")}, memory{}, onQuarantine, Restarted, "a"},
		{"restarted again, as known", Report{RunID: "2", Appendfsync: "always", Record: claims("a", "other")}, known, onQuarantine, Restarted, "a"},
		{"restarted again, from older data", Report{RunID: "2", Appendfsync: "always", Record: claims("a", "m")}, memory{nonce: "b"}, onQuarantine, Restarted, marker.NoClaim},
		{"restarted again, with another's data", Report{RunID: "2", Appendfsync: "always", Record: claims("a", "other")}, memory{}, onQuarantine, Restarted, marker.NoClaim},
		{"restarted again, not durable now", Report{RunID: "2", Appendfsync: "everysec", Record: claims("a", "m")}, memory{}, onQuarantine, Restarted, marker.NoClaim},
		{"restarted again, of another set of masters", Report{RunID: "2", Appendfsync: "always", Record: claims("a", "m")}, memory{suffix: "-2"}, onQuarantine, Restarted, marker.NoClaim},
		{"restarted again, and its clock stepped", Report{RunID: "2", Appendfsync: "always", Record: claims("a", "m")}, memory{stepped: true}, onQuarantine, Restarted, marker.NoClaim},
		{"restarted again, without a claim", Report{RunID: "2", Appendfsync: "always", Record: rec("1", Restarted)}, memory{}, onQuarantine, Restarted, marker.NoClaim},
		{"a marker that is none", Report{Marker: marker.ReadMarker("x@0")}, memory{}, onQuarantine, Restarted, marker.NoClaim},
		{"a record that is none", Report{Record: marker.ReadRecord("x")}, memory{}, onQuarantine, Restarted, marker.NoClaim},
		{"a server that does not show its run_id", Report{RunID: NotReported, Marker: marked(NotReported, "a", false)}, memory{}, onTrust, "", marker.NoClaim},
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
		{0, time.Second, allLooked},
		{time.Hour, time.Second, allLooked - time.Hour},
	} {
		if got := leaseLeft(c.watched, c.longest); got != c.want {
			t.Errorf("%v: got %v", c, got)
		}
	}
}
