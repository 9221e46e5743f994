package guard

import (
	"strings"
	"testing"

	"redlock-proxy/quorum/guard/marker"
	"redlock-proxy/quorum/guard/reconfig"
	"redlock-proxy/quorum/location"
)

// inspectionOf returns an inspection of a master with a run_id, rules, and the proxies that it
// lists.
func inspectionOf(name, rulesText string, proxies ...Proxy) Inspection {
	return Inspection{Name: name, Report: &Report{RunID: strings.ToUpper(name), Rules: rulesText, Proxies: proxies}}
}

// withMarker returns the inspection with a marker in an era that a seal may end.
func (v Inspection) withMarker(era reconfig.Era, seal reconfig.Seal) Inspection {
	m := marker.Marker{RunID: v.Report.RunID, ReplID: "1", Nonce: "n", Proof: marker.ProofJoined, Address: v.Name, Era: era, Seal: seal}
	v.Report.Marker = marker.ReadMarker(marker.AppendDatabase(m.String(), 0))
	return v
}

// TestCountProxies checks how many proxies would lose their votes if an operator imposed settings
// on their masters. It describes a master by a word, as TestRulesCheck does.
func TestCountProxies(t *testing.T) {
	const upstream = "s\n" + LocksUpstream
	hashOf := func(settings string) string { return (&rulesTracker{settings: settings}).settingsHash() }
	abc := hashServers([]string{"A", "B", "C"})
	abd := hashServers([]string{"A", "B", "D"})
	same := Proxy{ID: "p", Masters: 3, Servers: abc, Settings: hashOf("s")}
	with := func(change func(*Proxy)) Proxy { p := same; change(&p); return p }
	unreached := Inspection{Name: "c"}
	atMasters := reconfig.Era{Number: 1, Masters: 3, Hash: reconfig.Hash([]string{"a", "b", "c"}), Place: location.Masters}
	for _, test := range []struct {
		name, settings string
		inspections    []Inspection
		wantLosing     int
	}{
		{"the same", "s", []Inspection{inspectionOf("a", rulesIn("s:abc"), same), inspectionOf("b", rulesIn("s:abc"), same), inspectionOf("c", rulesIn("s:abc"))}, 0},
		{"a proxy waits for the new settings", "s", []Inspection{inspectionOf("a", rulesIn("t:abc"), same), inspectionOf("b", rulesIn("t:abc"), same), inspectionOf("c", rulesIn("t:abc"))}, 0},
		{"one witness", "s", []Inspection{inspectionOf("a", rulesIn("t:abc"), with(func(p *Proxy) { p.Settings = hashOf("t") })), inspectionOf("b", ""), inspectionOf("c", "")}, 1},
		{"a different list of equal length", "s", []Inspection{inspectionOf("a", rulesIn("s:abd"), with(func(p *Proxy) { p.Servers = abd })), inspectionOf("b", rulesIn("s:abd")), inspectionOf("c", "")}, 1},
		{"a list with a master that is not reached", "s", []Inspection{inspectionOf("a", rulesIn("s:abd"), with(func(p *Proxy) { p.Servers = abd })), inspectionOf("b", rulesIn("s:abd")), unreached}, 1},
		{"a proxy that has not reached its masters", "s", []Inspection{inspectionOf("a", rulesIn("s:abd"), with(func(p *Proxy) { p.Servers = unknownServers })), inspectionOf("b", rulesIn("s:abd")), unreached}, 1},
		{"a master of the same list is down", "s", []Inspection{inspectionOf("a", rulesIn("s:abc"), with(func(p *Proxy) { p.Servers = unknownServers })), inspectionOf("b", rulesIn("s:abc")), unreached}, 0},
		{"the locks are at the upstream", "s", []Inspection{inspectionOf("a", rulesIn(upstream+":abc"), same), inspectionOf("b", ""), inspectionOf("c", "")}, 1},
		{"the locks are not at the upstream", upstream, []Inspection{inspectionOf("a", rulesIn("s:abc"), same), inspectionOf("b", ""), inspectionOf("c", "")}, 1},
		{"the markers show the location", "s", []Inspection{inspectionOf("a", rulesIn(upstream+":abc"), same).withMarker(atMasters, reconfig.Seal{}), inspectionOf("b", ""), inspectionOf("c", "")}, 0},
		{"not all markers show it", "s", []Inspection{inspectionOf("a", rulesIn(upstream+":abc"), same).withMarker(reconfig.Era{}, reconfig.Seal{}), inspectionOf("b", "").withMarker(atMasters, reconfig.Seal{}), inspectionOf("c", "")}, 1},
	} {
		n := CountProxies(test.settings, test.inspections)
		if n.RunningProxies != 1 || n.LosingProxies != test.wantLosing {
			t.Errorf("%s: %d of %d lose their votes, want %d of 1", test.name, n.LosingProxies, n.RunningProxies, test.wantLosing)
		}
	}
}

// TestChangedMasters checks that the markers decide the list of masters while a change is in
// progress, and after it.
func TestChangedMasters(t *testing.T) {
	change := reconfig.Change{PreviousMasterCount: 3, Names: []string{"a", "b", "d"}}
	sealed := func(name string) Inspection {
		return inspectionOf(name, rulesIn("s:abc")).withMarker(reconfig.Era{}, reconfig.Seal{Ballot: "1", Change: change})
	}
	begun := func(name string) Inspection {
		return inspectionOf(name, rulesIn("s:abc")).withMarker(change.NextEra(reconfig.Era{}), reconfig.Seal{})
	}
	old := func(name string) Inspection {
		return inspectionOf(name, rulesIn("s:abc")).withMarker(reconfig.Era{}, reconfig.Seal{})
	}
	const listDifference, names = changedMasters + ", this proxy has a, b, c", "a, b, d, this proxy has a, b, c"
	for _, test := range []struct {
		name        string
		inspections []Inspection
		want        [3]string
	}{
		{"the new list, while masters are sealed", []Inspection{sealed("a"), inspectionOf("b", rulesIn("s:abc")), inspectionOf("d", "")}, [3]string{}},
		{"the new list", []Inspection{begun("a"), begun("b"), begun("d")}, [3]string{}},
		{"the former list", []Inspection{begun("a"), begun("b"), old("c")}, [3]string{listDifference, listDifference, listDifference}},
		{"the former list, while masters are sealed", []Inspection{sealed("a"), old("b"), old("c")}, [3]string{changedMasters + " to " + names}},
	} {
		if got := Differences("s", test.inspections); [3]string(got) != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
	for i, err := range ReplaceSettings(t.Context(), "s", []Inspection{begun("a"), begun("b"), sealed("c")}) {
		if err == nil || !strings.HasPrefix(err.Error(), changedMasters) {
			t.Errorf("master %d of a former list: %v", i, err)
		}
	}
}

// TestRulesAdvice checks that the advice names init --new-settings only for differences that this
// command may settle.
func TestRulesAdvice(t *testing.T) {
	for differs, want := range map[string]bool{
		"key-prefix: …": true, "masters: the masters have …": true, locationSetting + ": …": false, changedMasters + ", …": false,
	} {
		if text := RulesAdvice(differs); strings.Contains(text, "init") != want {
			t.Errorf("got %s", text)
		}
	}
}
