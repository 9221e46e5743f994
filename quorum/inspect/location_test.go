package inspect

import (
	"testing"

	"redlock-proxy/quorum/guard"
	"redlock-proxy/quorum/guard/marker"
	"redlock-proxy/quorum/guard/reconfig"
	"redlock-proxy/quorum/location"
)

// TestSealedMasters checks that masters which have ended their era do not report a location. If they
// are a majority, the masters are being changed.
func TestSealedMasters(t *testing.T) {
	for sealed, want := range []struct{ known, changing bool }{{true, false}, {true, false}, {false, true}, {false, true}} {
		findings := make([]Finding, 3)
		for i := range findings {
			m := marker.Stored[marker.Marker]{Valid: true, Value: marker.Marker{Era: reconfig.Era{Number: 2, Place: location.Masters}}}
			if i < sealed {
				m.Value.Seal.Names = []string{"a", "b", "c"}
			}
			findings[i].report = &guard.Report{Marker: m}
		}
		at := ReportedLocation(findings)
		if at.Known != want.known || at.Known && at.Place != location.Masters || AreChanging(findings) != want.changing {
			t.Errorf("%d of 3 are sealed: location %v, known %v, changing %v", sealed, at, at.Known, AreChanging(findings))
		}
	}
	if AreChanging(make([]Finding, 3)) {
		t.Error("masters that did not answer are being changed")
	}
}
