package marker

import "testing"

// FuzzMarker: whatever stands under the keys is read as what was written there, or not
// at all.
func FuzzMarker(f *testing.F) {
	f.Add(Marker{RunID: "1", ReplID: "2", Nonce: "3", Durable: true, Evicted: 4, Proof: ProofLease, Address: "/a b"}.String())
	f.Add(Record{RunID: "1", Nonce: "2", Since: 3, Claim: NoClaim, Reason: "clock"}.String())
	f.Add("1 2 3 1 04 x")
	f.Fuzz(func(t *testing.T, text string) {
		if m, ok := Parse(text); ok && m.String() != text {
			t.Errorf("marker %q was read as %q", text, m)
		}
		if r, ok := ParseRecord(text); ok && r.String() != text {
			t.Errorf("record %q was read as %q", text, r)
		}
	})
}
