package guard

import (
	"slices"
	"testing"
	"time"

	"redlock-proxy/quorum/guard/marker"
	"redlock-proxy/quorum/guard/reconfig"
)

// TestSourcesOfJoiningMasters checks the sources of a new set of four masters after a change from
// three, while one of the four votes. Masters of the former set are the sources only if they still
// form a read quorum of that set. With fewer, the masters that have lost their seals would wait for
// the longest lease.
func TestSourcesOfJoiningMasters(t *testing.T) {
	names := []string{"a", "b", "c", "d"}
	era := reconfig.Era{Number: 1, Masters: 4, Hash: reconfig.Hash(names)}
	seal := marker.Marker{Nonce: "s", Proof: marker.ProofIntact, RunID: "run",
		Seal: reconfig.Seal{Ballot: "1", Change: reconfig.Change{PreviousMasterCount: 3, Names: names}}}
	vote := marker.Marker{Nonce: "v", Proof: marker.ProofJoined, RunID: "run", Era: era}
	report := func(m marker.Marker) Report {
		return Report{RunID: "run", Marker: marker.ReadMarker(marker.AppendDatabase(m.String(), 0))}
	}
	joining := marker.Record{RunID: "run", Nonce: "n", Claim: marker.NoClaim, Reason: string(Joining)}
	for name, c := range map[string]struct {
		sealedMasters, joiningMasters, downMasters []int
		wantFormer                                 bool
		wantSources                                int
		wantAwaits                                 bool
	}{
		"all are sealed":             {[]int{0, 1}, nil, nil, true, 3, true},
		"one has lost its seal":      {[]int{0}, []int{1}, nil, true, 2, true},
		"two have lost their seals":  {nil, []int{0, 1}, nil, false, 1, true},
		"two that are down may vote": {[]int{0}, nil, []int{1, 3}, false, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			masters := make([]Master, len(names))
			for i, name := range names {
				masters[i] = Master{Name: name, Wake: func() {}, IsDown: func() bool { return slices.Contains(c.downMasters, i) }}
			}
			s := NewSet(Options{JoinedEra: &era, TimeSinceBoot: func() time.Duration { return 0 }}, masters)
			for _, i := range []int{0, 1} {
				s.eras.observe(i, report(seal), time.Now())
			}
			s.eras.observe(2, report(vote), time.Now())
			s.eras.observe(3, Report{RunID: "run", Record: marker.ReadRecord(joining.String())}, time.Now())
			s.guards[2].trust = trust{Marker: vote, term: 1}
			for _, i := range c.sealedMasters {
				s.guards[i].trust = trust{Marker: seal, term: 1, eraEnded: true}
			}
			for _, i := range c.joiningMasters {
				s.eras.observe(i, Report{RunID: "run", Record: marker.ReadRecord(joining.String())}, time.Now())
			}
			from := s.sourcesFor(s.guards[3])
			from.targetUnused = true
			if from.isFormer != c.wantFormer || len(from.sources) != c.wantSources || !from.hasReadQuorum() ||
				s.awaitsReports() != c.wantAwaits {
				t.Errorf("former %v, %d sources, enough %v; awaits reports %v", from.isFormer, len(from.sources), from.hasReadQuorum(),
					s.awaitsReports())
			}
		})
	}
}

// TestMayHaveHadMajority checks whether a majority of the masters may have voted in the new era.
// Until then, the former set provides the sources.
func TestMayHaveHadMajority(t *testing.T) {
	names := []string{"a", "b", "c"}
	era := reconfig.Era{Number: 1, Masters: 3, Hash: reconfig.Hash(names)}
	report := func(m marker.Marker) Report {
		m.RunID = "run"
		return Report{RunID: "run", Marker: marker.ReadMarker(marker.AppendDatabase(m.String(), 0))}
	}
	recorded := func(reason Reason) Report {
		r := marker.Record{RunID: "run", Nonce: "n", Claim: marker.NoClaim, Reason: string(reason)}
		return Report{RunID: "run", Record: marker.ReadRecord(r.String())}
	}
	votes := report(marker.Marker{Nonce: "v", Proof: marker.ProofJoined, Era: era})
	sealed := report(marker.Marker{Nonce: "s", Proof: marker.ProofIntact,
		Seal: reconfig.Seal{Ballot: "1", Change: reconfig.Change{PreviousMasterCount: 3, Names: names}}})
	for name, c := range map[string]struct {
		reports []Report
		down    int // the index of a master that does not reply, or -1
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
