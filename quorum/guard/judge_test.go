package guard

import (
	"testing"
	"time"

	"redlock-proxy/quorum/guard/marker"
)

func newStoredMarker(runID, nonce string, durable bool) marker.Stored[marker.Marker] {
	return storedMarker(marker.Marker{RunID: runID, ReplID: "r", Nonce: nonce, Durable: durable, Proof: marker.ProofLease,
		Address: "m"}, 0)
}

func storedMarker(m marker.Marker, db int) marker.Stored[marker.Marker] {
	return marker.ReadMarker(marker.AppendDatabase(m.String(), db))
}

// TestJudge checks every decision about a master, by its report and by the proxy's knowledge.
func TestJudge(t *testing.T) {
	recordOf := func(runID string, reason Reason) marker.Stored[marker.Record] {
		return marker.ReadRecord(marker.Record{RunID: runID, Nonce: "n", WrittenAt: 1, Claim: marker.NoClaim,
			Reason: string(reason)}.String())
	}
	recordWithClaim := func(nonce, address string) marker.Stored[marker.Record] {
		return marker.ReadRecord(marker.Record{RunID: "1", Nonce: "n-1", WrittenAt: 1, Claim: nonce, ClaimAddress: address,
			Reason: string(Restarted)}.String())
	}
	fresh := storedMarker(marker.Marker{RunID: "1", ReplID: "r", Nonce: "f", Proof: marker.ProofFresh, Address: "m"}, 0)
	otherMaster := storedMarker(marker.Marker{RunID: "9", ReplID: "r", Nonce: "a", Durable: true, Proof: marker.ProofLease,
		Address: "other"}, 0)
	knownMaster := history{nonce: "a", runID: "1"}
	for _, c := range []struct {
		name   string
		v      Report
		past   history
		want   nextAction
		reason Reason
		claim  string
	}{
		{"marked, in its first life", Report{Marker: newStoredMarker("1", "a", false)}, history{}, actionTrust, "", marker.NoClaim},
		{"marked by another proxy since", Report{Marker: newStoredMarker("1", "b", false)}, knownMaster, actionTrust, "", marker.NoClaim},
		{"marked, and its clock stepped", Report{Marker: newStoredMarker("1", "a", false)}, history{clockStepped: true},
			actionQuarantine, ClockStepped, marker.NoClaim},
		{"marked, and was a replica since", Report{ReplID: "x", Marker: newStoredMarker("1", "a", false)}, history{},
			actionQuarantine, Replicated, marker.NoClaim},
		{"marked, and was a replica since a proxy saw it", Report{ReplID: "x", WasReplica: true,
			Marker: newStoredMarker("1", "a", false)}, knownMaster, actionQuarantine, Replicated, marker.NoClaim},
		{"marked, and got its first replica", Report{ReplID: "x", Marker: newStoredMarker("1", "a", false)}, knownMaster,
			actionUpdateMarker, "", marker.NoClaim},
		{"marked, and its sequence went back", Report{Marker: newStoredMarker("1", "a", false)},
			history{nonce: "a", seqWentBack: true}, actionQuarantine, Replicated, marker.NoClaim},
		{"marked, and evicted since", Report{Evicted: 1, Marker: newStoredMarker("1", "a", false)}, history{}, actionQuarantine,
			Evicted, marker.NoClaim},
		{"marked in an earlier era, and was away since", Report{Marker: newStoredMarker("1", "a", false)}, history{position: positionStale},
			actionQuarantine, Joining, marker.NoClaim},
		{"marked in an earlier era, and was a replica since", Report{ReplID: "x", WasReplica: true, Marker: newStoredMarker("1", "a", false)},
			history{position: positionStale}, actionQuarantine, Replicated, marker.NoClaim},
		{"marked in an earlier era, after a later marker", Report{Marker: newStoredMarker("1", "a", false)},
			history{position: positionStale, nonce: "b", runID: "1"}, actionQuarantine, Replicated, marker.NoClaim},
		{"marked in an earlier era, and evicted since", Report{Evicted: 1, Marker: newStoredMarker("1", "a", false)},
			history{position: positionStale}, actionQuarantine, Evicted, marker.NoClaim},
		{"marked with the number of another database", Report{Marker: storedMarker(newStoredMarker("1", "a", false).Value, 1)},
			knownMaster, actionQuarantine, Flushed, marker.NoClaim},
		{"marked as fresh", Report{Marker: fresh}, history{}, actionTrust, "", marker.NoClaim},
		{"marked as fresh, where locks may live", Report{Marker: fresh}, history{nonce: "a", mayHoldLock: true},
			actionQuarantine, Restarted, marker.NoClaim},
		{"marked as fresh, long after", Report{Marker: fresh}, knownMaster, actionTrust, "", marker.NoClaim},
		{"marked as fresh, as known", Report{Marker: fresh}, history{nonce: "f", mayHoldLock: true}, actionTrust, "",
			marker.NoClaim},
		{"durable when it was marked, not now", Report{Appendfsync: "off", Marker: newStoredMarker("1", "a", true)}, knownMaster,
			actionUpdateMarker, "", marker.NoClaim},
		{"restarted with a marker", Report{RunID: "2", Marker: newStoredMarker("1", "a", false)}, history{}, actionQuarantine,
			Restarted, marker.NoClaim},
		{"restarted, durable now only", Report{RunID: "2", Appendfsync: "always", Marker: newStoredMarker("1", "a", false)},
			history{}, actionQuarantine, Restarted, marker.NoClaim},
		{"restarted, durable then only", Report{RunID: "2", Appendfsync: "everysec", Marker: newStoredMarker("1", "a", true)},
			history{}, actionQuarantine, Restarted, marker.NoClaim},
		{"restarted, durable", Report{RunID: "2", Appendfsync: "always", Marker: newStoredMarker("1", "a", true)}, history{},
			actionQuarantine, Restarted, "a"},
		{"restarted, durable, and its clock stepped", Report{RunID: "2", Appendfsync: "always",
			Marker: newStoredMarker("1", "a", true)}, history{clockStepped: true}, actionQuarantine, ClockStepped, marker.NoClaim},
		{"restarted, durable but for rewrites", Report{RunID: "2", Appendfsync: "always", RewriteUnsynced: true,
			Marker: newStoredMarker("1", "a", true)}, history{}, actionQuarantine, Restarted, marker.NoClaim},
		{"restarted, durable, as known", Report{RunID: "2", Appendfsync: "always", Marker: newStoredMarker("1", "a", true)},
			knownMaster, actionQuarantine, Restarted, "a"},
		{"restarted, durable, from older data", Report{RunID: "2", Appendfsync: "always",
			Marker: newStoredMarker("1", "a", true)}, history{nonce: "b"}, actionQuarantine, Restarted, marker.NoClaim},
		{"restarted, durable, with another's data", Report{RunID: "2", Appendfsync: "always", Marker: otherMaster},
			history{}, actionQuarantine, Replicated, marker.NoClaim},
		{"another's data", Report{Marker: otherMaster}, history{nonce: "b", runID: "1"}, actionQuarantine, Replicated,
			marker.NoClaim},
		{"nothing, never seen", Report{}, history{}, actionUnmarked, Restarted, marker.NoClaim},
		{"nothing, known in this life", Report{}, knownMaster, actionQuarantine, Flushed, marker.NoClaim},
		{"nothing, known in an earlier life", Report{RunID: "2"}, knownMaster, actionQuarantine, Restarted, marker.NoClaim},
		{"in quarantine", Report{Record: recordOf("1", Flushed)}, history{}, actionWait, Flushed, marker.NoClaim},
		{"met empty", Report{Record: recordOf("1", Empty)}, history{}, actionEmpty, Empty, marker.NoClaim},
		{"met empty, where it was known", Report{Record: recordOf("1", Empty)}, knownMaster, actionQuarantine, Restarted,
			marker.NoClaim},
		{"met empty in an earlier life", Report{RunID: "2", Record: recordOf("1", Empty)}, history{}, actionQuarantine,
			Restarted, marker.NoClaim},
		{"in quarantine, and its clock stepped", Report{Record: recordOf("1", Flushed)}, history{clockStepped: true},
			actionQuarantine, ClockStepped, marker.NoClaim},
		{"in quarantine in an earlier life", Report{RunID: "2", Record: recordOf("1", Flushed)}, history{}, actionQuarantine,
			Restarted, marker.NoClaim},
		{"restarted again, durable", Report{RunID: "2", Appendfsync: "always", Record: recordWithClaim("a", "m")}, history{isRecordOwn: true},
			actionQuarantine, Restarted, "a"},
		{"restarted again, as known", Report{RunID: "2", Appendfsync: "always", Record: recordWithClaim("a", "other")}, history{nonce: "a", runID: "1", isRecordOwn: true},
			actionQuarantine, Restarted, "a"},
		{"restarted again, from older data", Report{RunID: "2", Appendfsync: "always", Record: recordWithClaim("a", "m")},
			history{nonce: "b", isRecordOwn: true}, actionQuarantine, Restarted, marker.NoClaim},
		{"restarted again, with another's data", Report{RunID: "2", Appendfsync: "always",
			Record: recordWithClaim("a", "other")}, history{isRecordOwn: true}, actionQuarantine, Restarted, marker.NoClaim},
		{"restarted again, not durable now", Report{RunID: "2", Appendfsync: "everysec", Record: recordWithClaim("a", "m")},
			history{isRecordOwn: true}, actionQuarantine, Restarted, marker.NoClaim},
		{"restarted again, of another set of masters", Report{RunID: "2", Appendfsync: "always",
			Record: recordWithClaim("a", "m")}, history{}, actionQuarantine, Restarted, marker.NoClaim},
		{"restarted again, and its clock stepped", Report{RunID: "2", Appendfsync: "always",
			Record: recordWithClaim("a", "m")}, history{clockStepped: true, isRecordOwn: true}, actionQuarantine, Restarted, marker.NoClaim},
		{"restarted again, without a claim", Report{RunID: "2", Appendfsync: "always", Record: recordOf("1", Restarted)},
			history{}, actionQuarantine, Restarted, marker.NoClaim},
		{"a marker that is none", Report{Marker: marker.ReadMarker("x@0")}, history{}, actionQuarantine, Restarted,
			marker.NoClaim},
		{"a record that is none", Report{Record: marker.ReadRecord("x")}, history{}, actionQuarantine, Restarted,
			marker.NoClaim},
		{"a server that does not show its run_id", Report{RunID: NotReported,
			Marker: newStoredMarker(NotReported, "a", false)}, history{}, actionTrust, "", marker.NoClaim},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.v.RunID == "" {
				c.v.RunID = "1"
			}
			if c.v.ReplID == "" {
				c.v.ReplID = "r"
			}
			c.past.name = "m"
			if got, reason := judge(c.v, c.past); got != c.want || reason != c.reason {
				t.Errorf("got %d, %q, want %d, %q", got, reason, c.want, c.reason)
			}
			if claim := claimOf(c.v, c.past); claim != c.claim {
				t.Errorf("claims %q, want %q", claim, c.claim)
			}
		})
	}
}

func TestRemainingLease(t *testing.T) {
	for _, c := range []struct{ watchTime, longestTTL, want time.Duration }{
		{0, 20 * time.Second, 20*time.Second + 202*time.Millisecond},
		{15 * time.Second, 20 * time.Second, 5*time.Second + 202*time.Millisecond},
		{0, time.Second, allCheckedTime},
		{time.Hour, time.Second, allCheckedTime - time.Hour},
	} {
		if got := remainingLease(c.watchTime, c.longestTTL); got != c.want {
			t.Errorf("%v: got %v", c, got)
		}
	}
}
