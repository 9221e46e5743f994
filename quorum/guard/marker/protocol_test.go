package marker

import (
	"strconv"
	"testing"
)

// TestProtocols checks that the protocol of each version is recognized, even in a text that cannot
// be parsed.
func TestProtocols(t *testing.T) {
	nonce := NewNonce()
	m := Marker{RunID: "1", ReplID: "2", Nonce: nonce, Proof: ProofLease, Address: "a:1"}
	for _, test := range []struct {
		marker, record string
		want           int
	}{
		{"", "", 1},
		{"1 2 ABC 0 4 lease a:1@0", "", 1},
		{AppendDatabase(m.String(), 0), "", Protocol},
		{"", Record{RunID: "1", Nonce: nonce + ".7", Claim: NoClaim}.String(), Protocol},
		{"1 2 ABC-12 something that is not known yet", "", 12},
		{"", "1 ABC-3", 3},
		{"1 2 ABC-x 0 4 lease a:1@0", "1 2", 1},
	} {
		if got := ProtocolOf(test.marker, test.record); got != test.want {
			t.Errorf("%q and %q: %d, want %d", test.marker, test.record, got, test.want)
		}
	}
	if nonce == NewNonce() || nonce[len(nonce)-2:] != "-"+strconv.Itoa(Protocol) {
		t.Error("a nonce:", nonce)
	}
}
