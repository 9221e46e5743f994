package marker

import (
	"testing"

	"redlock-proxy/quorum/guard/reconfig"
)

// FuzzMarker checks that a text that can be parsed is written in the same form again.
func FuzzMarker(f *testing.F) {
	f.Add(Marker{RunID: "1", ReplID: "2", Nonce: "3", Durable: true, Evicted: 4, Proof: ProofLease,
		Address: "/a b"}.String())
	f.Add(Record{RunID: "1", Nonce: "2", WrittenAt: 3, Claim: NoClaim, Reason: "clock"}.String())
	f.Add(Record{RunID: "1", Nonce: "2", WrittenAt: 3, Claim: "4", ClaimAddress: "/a b", Reason: "restarted"}.String())
	f.Add("1 2 3 1 04 x")
	f.Add(sealedMarker().String())
	f.Fuzz(func(t *testing.T, text string) {
		if m, ok := ParseMarker(text); ok && m.String() != text {
			t.Errorf("marker %q was read as %q", text, m)
		}
		if r, ok := ParseRecord(text); ok && r.String() != text {
			t.Errorf("record %q was read as %q", text, r)
		}
	})
}

// sealedMarker returns a marker with an era and a seal.
func sealedMarker() Marker {
	change := reconfig.Change{PreviousMasterCount: 3, Names: []string{"a:1", "b:2"}}
	return Marker{
		RunID: "1", ReplID: "2", Nonce: "3", Durable: true, Evicted: 4, Proof: ProofJoined, Address: "/a b",
		Era: change.NextEra(reconfig.Era{}), Seal: reconfig.Seal{Ballot: "5", Change: change},
	}
}

// TestMarkersWithEras checks that an era and a seal are parsed. A proxy that does not know eras
// rejects such a marker, because its fourth word is neither 0 nor 1.
func TestMarkersWithEras(t *testing.T) {
	m := sealedMarker()
	got, ok := ParseMarker(m.String())
	if !ok || got.Era != m.Era || !got.Seal.Equals(m.Seal.Change) || got.Address != m.Address || !got.Durable {
		t.Errorf("%q is read as %v, %v", m, got, ok)
	}
	unsealed := Marker{RunID: "1", ReplID: "2", Nonce: "3", Evicted: 4, Proof: ProofLease, Address: "a:1"}
	if want := "1 2 3 0 4 lease a:1"; unsealed.String() != want {
		t.Errorf("%q, want %q as ever", unsealed, want)
	}
}
