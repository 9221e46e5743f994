package guard

import (
	"testing"
	"time"

	"redlock-proxy/quorum/guard/marker"
	"redlock-proxy/quorum/guard/reconfig"
)

// TestMayHaveHadMajority checks when the rules of the former set end: as soon as a majority of the
// masters may have voted in the new era.
func TestMayHaveHadMajority(t *testing.T) {
	names := []string{"a", "b", "c"}
	era := reconfig.Era{Number: 1, Masters: 3, Hash: reconfig.Hash(names)}
	report := func(m marker.Marker) Report {
		m.RunID = "run"
		return Report{RunID: "run", Marker: marker.ReadMarker(marker.InDatabase(m.String(), 0))}
	}
	recorded := func(reason Reason) Report {
		r := marker.Record{RunID: "run", Nonce: "n", Claim: marker.NoClaim, Reason: string(reason)}
		return Report{RunID: "run", Record: marker.ReadRecord(r.String())}
	}
	votes := report(marker.Marker{Nonce: "v", Proof: marker.ProofJoined, Era: era})
	sealed := report(marker.Marker{Nonce: "s", Proof: marker.ProofIntact,
		Seal: reconfig.Seal{Ballot: "1", Change: reconfig.Change{Before: 3, Names: names}}})
	for name, c := range map[string]struct {
		reports []Report
		down    int // the index of a master that does not answer
		want    bool
	}{
		"none has voted":              {[]Report{sealed, sealed, recorded(Empty)}, -1, false},
		"one has voted":               {[]Report{votes, sealed, recorded(Empty)}, -1, false},
		"one missed the seal":         {[]Report{votes, recorded(Joining), recorded(Empty)}, -1, false},
		"two vote":                    {[]Report{votes, sealed, votes}, -1, true},
		"two have voted, one forgot":  {[]Report{votes, sealed, recorded(Flushed)}, -1, true},
		"all have voted, two forgot":  {[]Report{votes, recorded(Restarted), recorded(Flushed)}, -1, true},
		"one may vote for others":     {[]Report{votes, sealed, recorded(Empty)}, 2, true},
		"one has not been asked yet":  {[]Report{votes, sealed}, -1, true},
		"one has lost its quarantine": {[]Report{votes, sealed, {RunID: "run"}}, -1, true},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEraTracker([]Master{{Name: "a"}, {Name: "b"}, {Name: "c"}}, &era, time.Now())
			for i, v := range c.reports {
				e.observe(i, v, time.Now())
			}
			if got := e.mayHaveHadMajority(func(i int, checked bool) bool { return !checked || i == c.down }); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}
