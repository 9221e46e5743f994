package reconfig

import (
	"strings"
	"testing"

	"redlock-proxy/quorum/location"
)

func TestErasAndSealsRoundTrip(t *testing.T) {
	names := []string{"10.0.0.1:6379", "/run/a b,c;d.sock", "c%"}
	change := Change{PreviousMasterCount: 5, Names: names}
	move := Change{PreviousMasterCount: 5, Names: names, Place: location.MovingToUpstream}
	for _, e := range []Era{{}, change.NextEra(Era{}), change.NextEra(Era{Number: 7}), move.NextEra(Era{})} {
		if got, ok := ParseEra(e.String()); !ok || got != e || strings.Contains(e.String(), " ") {
			t.Errorf("%q is read as %v, %v", e, got, ok)
		}
	}
	for _, change := range []Change{change, move} {
		s := Seal{Ballot: "12", Change: change}
		got, ok := ParseSeal(s.String())
		if !ok || got.Ballot != "12" || !got.Equals(change) || strings.Join(got.Names, "|") != strings.Join(names, "|") ||
			strings.Contains(s.String(), " ") {
			t.Errorf("%q is read as %v, %v", s, got, ok)
		}
	}
	for _, text := range []string{"", "1", "1.2", "1.2.", "0.3.a", "x.3.a", "1.03.a", "1.3.a@", "1.3.a@undecided",
		"1.3.a@elsewhere", "1.3.a.masters"} {
		if e, ok := ParseEra(text); ok {
			t.Errorf("%q is read as an era, %v", text, e)
		}
	}
	for _, text := range []string{"", "1;2", "1;2;", ";2;a", "1;0;a", "1;02;a", "1;2;%", "1;2;%40masters",
		"1;2;a,%40elsewhere", "1;2;%40masters,a"} {
		if s, ok := ParseSeal(text); ok {
			t.Errorf("%q is read as a seal, %v", text, s)
		}
	}
}

func TestNameOrderInEra(t *testing.T) {
	e := Change{PreviousMasterCount: 3, Names: []string{"a", "b", "c"}}.NextEra(Era{})
	if !e.HasMasters([]string{"c", "a", "b"}) || e.HasMasters([]string{"a", "b", "d"}) || e.HasMasters([]string{"a", "b"}) {
		t.Error("an era is taken for another")
	}
	if !(Era{}).HasMasters([]string{"x"}) {
		t.Error("the masters of the first era are not unknown")
	}
}

func TestCheckStep(t *testing.T) {
	for _, test := range []struct {
		from, to string
		allowed  bool
	}{
		{"a b c", "a b c d", true}, {"a b c", "a b", true}, {"a b c", "a d c", true}, {"a b", "a", true},
		{"a", "a b", true},
		{"a b c", "a b c d e", false}, {"a b c d e", "a b c", false}, {"a b c", "a d e", false}, {"a", "b", false},
		{"a b c", "a d", false},
	} {
		if err := CheckStep(strings.Fields(test.from), strings.Fields(test.to)); (err == nil) != test.allowed {
			t.Errorf("from %s to %s: %v", test.from, test.to, err)
		}
	}
}

func TestChoose(t *testing.T) {
	ownChange, lowChange, highChange := Change{3, []string{"own"}, location.Undecided}, Change{3, []string{"low"}, location.Undecided},
		Change{3, []string{"high"}, location.Masters}
	if got := Choose([]Seal{{}, {}}, ownChange); !got.Equals(ownChange) {
		t.Errorf("nothing was accepted: %v", got)
	}
	if got := Choose([]Seal{{"2", lowChange}, {}, {"3", highChange}}, ownChange); !got.Equals(highChange) {
		t.Errorf("the highest is not chosen: %v", got)
	}
}
