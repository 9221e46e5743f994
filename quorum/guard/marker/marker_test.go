package marker

import (
	"strconv"
	"strings"
	"testing"

	"redlock-proxy/quorum/guard/reconfig"
	"redlock-proxy/quorum/location"
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

// TestEraOfRecord checks the era in a record's nonce, also in the format of version 0.3.0, which
// wrote the era's number only.
func TestEraOfRecord(t *testing.T) {
	fourth := reconfig.Era{Number: 4, Masters: 3, Hash: "ab", Place: location.Masters}
	otherFourth := reconfig.Era{Number: 4, Masters: 3, Hash: "cd"}
	first := reconfig.Era{}
	for _, c := range []struct {
		name   string
		r      Record
		stated bool
		isOf   []reconfig.Era
		isNot  []reconfig.Era
	}{
		{"an era", Record{Nonce: NewRecordNonce(fourth)}, true, []reconfig.Era{fourth}, []reconfig.Era{otherFourth, first}},
		{"the first era", Record{Nonce: NewRecordNonce(first)}, true, []reconfig.Era{first}, []reconfig.Era{fourth}},
		{"an era of 0.3.0", Record{Nonce: NewNonce() + ".4"}, false, []reconfig.Era{fourth, otherFourth}, []reconfig.Era{first}},
		{"no era", Record{Nonce: NewNonce()}, false, []reconfig.Era{first}, []reconfig.Era{fourth}},
		{"the era of a former record", Record{Nonce: NewNonce()}.WithEraOf(Record{Nonce: NewRecordNonce(fourth)}),
			true, []reconfig.Era{fourth}, []reconfig.Era{first}},
		{"no former record", Record{Nonce: NewNonce()}.WithEraOf(Record{}), false, []reconfig.Era{first}, []reconfig.Era{fourth}},
	} {
		era, stated := c.r.Era()
		if stated != c.stated || stated && era != c.isOf[0] {
			t.Errorf("%s: %v, %v", c.name, era, stated)
		}
		for _, era := range c.isOf {
			if !c.r.IsOfEra(era) {
				t.Errorf("%s: %q is not of era %q", c.name, c.r.Nonce, era)
			}
		}
		for _, era := range c.isNot {
			if c.r.IsOfEra(era) {
				t.Errorf("%s: %q is of era %q", c.name, c.r.Nonce, era)
			}
		}
		// Proxies of version 0.3.0 look for the number at the end.
		if number := "." + strconv.Itoa(c.isOf[0].Number); c.stated && !strings.HasSuffix(c.r.Nonce, number) {
			t.Errorf("%s: %q does not end with %s", c.name, c.r.Nonce, number)
		}
		if ProtocolOf("", "r "+c.r.Nonce+" 1") != Protocol {
			t.Errorf("%s: %q shows protocol %d", c.name, c.r.Nonce, ProtocolOf("", "r "+c.r.Nonce+" 1"))
		}
	}
}
