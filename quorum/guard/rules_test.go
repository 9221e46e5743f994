package guard

import (
	"fmt"
	"strings"
	"testing"

	"redlock-proxy/quorum/guard/marker"
	"redlock-proxy/quorum/guard/reconfig"
	"redlock-proxy/quorum/guard/script"
)

// TestParseRules checks that a proxy's rules can be parsed, and that other texts yield different
// settings.
func TestParseRules(t *testing.T) {
	r := rules{settings: "guard true\nlock-keys [\"a b\"]", masters: []member{{"/a socket", "1"}, {"b:1", NotReported}}}
	if got := parseRules(r.String()); got.String() != r.String() || got.settings != r.settings ||
		len(got.masters) != 2 {
		t.Errorf("got %+v", got)
	}
	for _, text := range []string{"", "\n", "master", "master ", "x", "guard true\nmaster"} {
		if got := parseRules(text); got.settings == r.settings {
			t.Errorf("%q: got %+v", text, got)
		}
	}
}

// TestRulesCheck checks the masters a, b, c, … for a proxy with settings s. A word describes each
// master: its rules, "-" (none), or "?" (not reached). "s:abd" means settings s and masters a, b
// and d. A run_id is the master's name in capitals.
func TestRulesCheck(t *testing.T) {
	for _, test := range []struct {
		masters string
		// V: votes; c: gets rules; w: waits; x: has different rules; R: a majority has different
		// rules.
		want string
	}{
		{"- - -", "ccc"},
		{"- ? ?", "wvv"},
		{"- - ?", "ccv"},
		{"s:abc - -", "vcc"},
		{"s:abc s:abc s:abc", "vvv"},
		{"t:abc s:abc s:abc", "xvv"},
		{"t:abc - -", "xcc"},
		{"t:abc - ?", "xwv"},
		{"t:abc t:abc -", "RRR"},
		{"t:abc s:abc -", "xvc"},
		{"t:abc s:abc t:abc", "RRR"},
		{"t:abc - - - ?", "xcccv"},
		{"t:abc t:abc - - ?", "xxwwv"},
		{"s:abd s:abd -", "RRR"},
		{"s:abd s:abd s:cde", "RRR"},
		{"s:abd s:abd ?", "vvv"},
		{"s:abcd s:abcd -", "RRR"},
		{"s:cba s:xyz s:abc", "vxv"},
		{"s:xyz s:xyz s:xyz", "vvv"}, // the same masters by other names
		{"s:ABC s:ABC -", "vvc"},     // the same masters by their run_ids
		{"s:xyz s:xyz -", "RRR"},
		{"t:abc t:abc s:abcd s:abcd", "xxvv"},
		{"garbage s:abc s:abc", "xvv"},
	} {
		words := strings.Fields(test.masters)
		a := newRulesTracker("s", strings.Split("abcde", "")[:len(words)], func() bool { return false },
			func() bool { return false })
		for i, wordOf := range words {
			if wordOf != "?" {
				a.observe(i, Report{RunID: strings.ToUpper(a.names[i]), Rules: rulesIn(wordOf)})
			}
		}
		got := ""
		for i := range words {
			c := a.check(i)
			switch {
			case c.majorityDiffers:
				got += "R"
			case c.differences != "":
				got += "x"
			case words[i] != "-":
				got += "v"
			case c.mayWrite:
				got += "c"
			default:
				got += "w"
			}
		}
		if got != test.want {
			t.Errorf("%s: got %s, want %s", test.masters, got, test.want)
		}
	}
}

// rulesIn returns the rules for a word of TestRulesCheck.
func rulesIn(word string) string {
	settings, names, found := strings.Cut(word, ":")
	if word == "-" || !found {
		return strings.Trim(word, "-")
	}
	r := rules{settings: settings}
	for name := range strings.SplitSeq(names, "") {
		m := member{name: name, runID: NotReported}
		if name == strings.ToUpper(name) {
			m = member{name: "other name", runID: name}
		}
		r.masters = append(r.masters, m)
	}
	return r.String()
}

// TestMemberWithoutData checks that a master stays a member when it returns without data, even if
// this proxy and the rules have different names for it.
func TestMemberWithoutData(t *testing.T) {
	a := newRulesTracker("s", []string{"a", "b", "c"}, func() bool { return false }, func() bool { return false })
	for i := range a.names {
		a.observe(i, Report{RunID: fmt.Sprint(i), Rules: rulesIn("s:xyz")})
	}
	if c := a.check(2); c.differences != "" {
		t.Errorf("as before: %+v", c)
	}
	a.observe(2, Report{RunID: "new"})
	if c := a.check(2); c.differences != "" || !c.mayWrite {
		t.Errorf("without anything: %+v", c)
	}
	if got := a.rulesToWrite(); got != rulesIn("s:xyz") {
		t.Errorf("it is given %q, not what the others have", got)
	}
}

// TestProxyWithoutLocks checks that a proxy without locks compares the masters only.
func TestProxyWithoutLocks(t *testing.T) {
	for rules, want := range map[string]string{"t:ab": "",
		"t:abc": "masters: the masters have a, b, c, this proxy has a, b"} {
		report := Report{RunID: NotReported, Rules: rulesIn(rules)}
		for _, text := range Differences("", []Inspection{{Name: "a", Report: &report}, {Name: "b", Report: &report}}) {
			if text != want {
				t.Errorf("%s: got %q, want %q", rules, text, want)
			}
		}
	}
}

// TestMarkersShowMasters checks that rules need not list the masters if the markers show them.
func TestMarkersShowMasters(t *testing.T) {
	m := marker.Marker{RunID: "1", ReplID: "1", Nonce: "n", Proof: marker.ProofJoined, Address: "a",
		Era: reconfig.Era{Number: 1, Masters: 2, Hash: reconfig.Hash([]string{"a", "b"})}}
	report := Report{RunID: "1", Marker: marker.ReadMarker(marker.AppendDatabase(m.String(), 0)), Rules: rulesIn("s:xyz")}
	for settings, want := range map[string]int{"s": 0, "t": 2} {
		differing := 0
		for _, text := range Differences(settings,
			[]Inspection{{Name: "a", Report: &report}, {Name: "b", Report: &report}}) {
			if text != "" {
				differing++
			}
		}
		if differing != want {
			t.Errorf("settings %s: %d differ, want %d", settings, differing, want)
		}
	}
}

// TestWriteAndReplaceRules runs on a real Redis. A proxy may replace rules only on a master without
// a marker. An operator may replace them on any master. Then each database with a marker gets a new
// marker and a new sequence.
func TestWriteAndReplaceRules(t *testing.T) {
	tr := startRedis(t)
	c, ctx := tr.Client(0), t.Context()
	writeRules := func(from, to string, want int64) {
		t.Helper()
		if result, err := runInt(ctx, tr, script.WriteRules, from, to); err != nil || result != want {
			t.Errorf("%q to %q: got %d, %v, want %d", from, to, result, err, want)
		}
	}
	writeRules("", "a", 1)
	writeRules("", "b", 0)
	writeRules("a", "b", 1)
	m := marker.Marker{RunID: "1", ReplID: "1", Nonce: "n", Proof: marker.ProofFresh, Address: "x"}
	c.Set(ctx, script.MarkerKey, marker.AppendDatabase(m.String(), 0), 0)
	c.SAdd(ctx, script.DatabasesKey, 2)
	tr.Client(2).Set(ctx, script.MarkerKey, marker.AppendDatabase(m.String(), 2), 0)
	writeRules("b", "c", 0)

	v, err := tr.Examine(ctx)
	if err != nil || v.Rules != "b" {
		t.Fatal(v, err)
	}
	if errs := ReplaceSettings(ctx, "s", []Inspection{{Name: "x", Report: &v, Conn: tr}}); errs[0] != nil {
		t.Fatal(errs[0])
	}
	after, err := tr.Examine(ctx)
	next, marked := after.Marker.Value, after.Marker.Valid
	if err != nil || !marked || next.Nonce == m.Nonce || next.Address != m.Address ||
		parseRules(after.Rules).settings != "s" {
		t.Errorf("got %+v, %v", after, err)
	}
	for db := range 3 {
		text, wantText := tr.Client(db).Get(ctx, script.MarkerKey).Val(), marker.AppendDatabase(next.String(), db)
		if db == 1 {
			wantText = ""
		}
		n, _ := tr.Client(db).HGet(ctx, script.SequenceKey, marker.AppendDatabase(next.Nonce, db)).Int64()
		if text != wantText || (n == script.FirstSeq) != (db != 1) {
			t.Errorf("database %d: marker %q, sequence %d, want %q", db, text, n, wantText)
		}
	}
	if errs := ReplaceSettings(ctx, "t", []Inspection{{Name: "x", Report: &v, Conn: tr}}); errs[0] == nil {
		t.Error("it was imposed on a master that is another one by now")
	}
}
