package guard

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"redlock-proxy/quorum/guard/marker"
	"redlock-proxy/quorum/guard/reconfig"
	"redlock-proxy/quorum/guard/script"
	"redlock-proxy/quorum/location"
)

// TestMarkerPositions checks the position of a marker for a proxy with the masters a, b and c.
func TestMarkerPositions(t *testing.T) {
	ownNames, otherNames := []string{"a", "b", "c"}, []string{"a", "b", "d"}
	changeTo := func(names []string) reconfig.Change { return reconfig.Change{PreviousMasterCount: 3, Names: names} }
	firstEra, noMarker := reconfig.Era{}, marker.Marker{Proof: "none"}
	otherSecond, ownSecond := changeTo(otherNames).NextEra(firstEra), changeTo(ownNames).NextEra(firstEra)
	ownThird := changeTo(ownNames).NextEra(otherSecond)
	votingIn := func(e reconfig.Era) marker.Marker { return marker.Marker{Era: e} }
	sealedFor := func(e reconfig.Era, names []string) marker.Marker {
		return marker.Marker{Era: e, Seal: reconfig.Seal{Ballot: "1", Change: changeTo(names)}}
	}
	for _, test := range []struct {
		name     string
		markers  []marker.Marker // of the masters in turn
		want     eraPosition     // of the last master
		hasEnded bool
	}{
		{"too few told", []marker.Marker{votingIn(firstEra)}, positionUnknown, false},
		{"the others have no markers", []marker.Marker{noMarker, noMarker, votingIn(firstEra)}, positionOwn, false},
		{"one has no marker", []marker.Marker{noMarker, votingIn(firstEra)}, positionUnknown, false},
		{"the first set", []marker.Marker{votingIn(firstEra), votingIn(firstEra)}, positionOwn, false},
		{"ours, numbered", []marker.Marker{votingIn(ownSecond), votingIn(ownSecond)}, positionOwn, false},
		{"another set", []marker.Marker{votingIn(otherSecond), votingIn(otherSecond)}, positionEnded, true},
		{"one of another set", []marker.Marker{votingIn(otherSecond)}, positionEnded, false},
		{"one of another set, and a majority of ours", []marker.Marker{votingIn(firstEra), votingIn(firstEra), votingIn(otherSecond)},
			positionEnded, false},
		{"one of a later set of ours, and a majority of ours", []marker.Marker{votingIn(firstEra), votingIn(firstEra),
			votingIn(ownThird)}, positionEnded, false},
		{"one of an earlier set", []marker.Marker{votingIn(ownSecond), votingIn(ownSecond), votingIn(firstEra)}, positionStale, false},
		{"one of a later set of ours, one that was away, and one without a marker", []marker.Marker{noMarker, votingIn(firstEra),
			votingIn(ownThird)}, positionOwn, false},
		{"one that was away", []marker.Marker{noMarker, votingIn(ownThird), votingIn(firstEra)}, positionStale, false},
		{"one that was away, and one is not reached", []marker.Marker{votingIn(ownSecond), votingIn(firstEra)}, positionUnknown, false},
		{"one of a later set of ours, and one sealed for others", []marker.Marker{noMarker, votingIn(ownThird),
			sealedFor(firstEra, otherNames)}, positionEnded, true},
		{"one sealed for others", []marker.Marker{votingIn(firstEra), votingIn(firstEra), sealedFor(firstEra, otherNames)}, positionEnded, false},
		{"two sealed for others", []marker.Marker{votingIn(firstEra), sealedFor(firstEra, otherNames), sealedFor(firstEra, otherNames)},
			positionEnded, true},
		{"sealed for us, and nobody has joined", []marker.Marker{sealedFor(firstEra, ownNames), sealedFor(firstEra, ownNames)}, positionEnded, true},
		{"sealed for us, and some have joined", []marker.Marker{votingIn(ownSecond), votingIn(ownSecond), sealedFor(firstEra, ownNames)},
			positionFormer, false},
		{"some have joined, and others are sealed for us", []marker.Marker{sealedFor(firstEra, ownNames), votingIn(ownSecond),
			votingIn(ownSecond)}, positionOwn, false},
		{"sealed for others long ago", []marker.Marker{votingIn(ownThird), votingIn(ownThird), sealedFor(firstEra, otherNames)},
			positionStale, false},
		{"sealed for us later", []marker.Marker{votingIn(ownThird), votingIn(ownThird), sealedFor(otherSecond, ownNames)},
			positionFormer, false},
		{"others follow us", []marker.Marker{votingIn(ownSecond), sealedFor(ownSecond, otherNames),
			votingIn(changeTo(otherNames).NextEra(ownSecond))}, positionEnded, true},
		{"we follow others who followed us", []marker.Marker{sealedFor(otherSecond, ownNames), votingIn(ownThird),
			votingIn(ownThird)}, positionOwn, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := newEraTracker([]Master{{Name: "a"}, {Name: "b"}, {Name: "c"}}, nil, time.Now())
			for i, m := range test.markers {
				v := reportOf(m, i)
				if m.Proof == noMarker.Proof {
					v.Marker = marker.ReadMarker("")
				}
				e.observe(i, v, time.Now())
			}
			if got := e.position(len(test.markers) - 1); got != test.want || (e.reconfiguration != nil) != test.hasEnded {
				t.Errorf("got %v, over %v; want %v, %v", got, e.reconfiguration != nil, test.want, test.hasEnded)
			}
		})
	}
}

// reportOf returns the report of a master with a marker.
func reportOf(m marker.Marker, i int) Report {
	m.RunID, m.ReplID, m.Nonce, m.Proof, m.Address = "r", "p", fmt.Sprintf("n%d:%s:%s", i, m.Era, m.Seal),
		marker.ProofLease, "a"
	v := Report{RunID: "r", Marker: marker.ReadMarker(m.String() + "@0")}
	v.ClockReading.SentAt = time.Now()
	return v
}

// TestClaims checks that one master's claim is credible if another master supports it, and refuted
// once a majority has reported after it without supporting it.
func TestClaims(t *testing.T) {
	change := reconfig.Change{PreviousMasterCount: 3, Names: []string{"a", "b", "d"}}
	seal := marker.Marker{Seal: reconfig.Seal{Ballot: "05", Change: change}}
	laterEra := marker.Marker{Era: change.NextEra(reconfig.Era{})}
	for _, test := range []struct {
		name              string
		claim             marker.Marker
		promise           string // of another master
		hasEnded, refuted bool
	}{
		{"a seal", seal, "", false, true},
		{"a seal of a ballot that another master promised", seal, "0 05", true, false},
		{"a seal, and a promise below it", seal, "0 04", false, true},
		{"a seal, and a promise of another set", seal, "1.3.x 06", false, true},
		{"a later set", laterEra, "0 05", false, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := newEraTracker([]Master{{Name: "a"}, {Name: "b"}, {Name: "c"}}, nil, time.Now())
			observe := func(i int, m marker.Marker, promise string) {
				v := reportOf(m, i)
				v.Promise = promise
				e.observe(i, v, time.Now())
			}
			observe(1, marker.Marker{}, "")
			observe(2, marker.Marker{}, "")
			observe(0, test.claim, "")
			if e.reconfiguration != nil || !e.hasPendingClaim() {
				t.Fatalf("over %v, open %v", e.reconfiguration != nil, e.hasPendingClaim())
			}
			observe(1, marker.Marker{}, test.promise)
			observe(2, marker.Marker{}, "")
			if (e.reconfiguration != nil) != test.hasEnded || e.isRefuted(0) != test.refuted {
				t.Errorf("over %v, refuted %v", e.reconfiguration != nil, e.isRefuted(0))
			}
			if e.observe(0, Report{}, time.Now()); e.hasPendingClaim() {
				t.Error("the claim of a flushed master is still open")
			}
		})
	}
}

// TestSealOfAnotherSize checks that the tracker rejects a seal with a different number of masters
// than its own era. It does so even if two masters have the seal before the other masters report.
func TestSealOfAnotherSize(t *testing.T) {
	names := []string{"a", "b", "c", "d", "e"}
	ownEra := reconfig.Change{PreviousMasterCount: 5, Names: names}.NextEra(reconfig.Era{})
	for before, want := range map[int]bool{1: false, 5: true} {
		e := newEraTracker([]Master{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"}, {Name: "e"}}, nil, time.Now())
		seal := marker.Marker{Era: ownEra, Seal: reconfig.Seal{Ballot: "05",
			Change: reconfig.Change{PreviousMasterCount: before, Names: append([]string{"f"}, names[1:before]...)}}}
		for i := range 2 {
			e.observe(i, reportOf(seal, i), time.Now())
		}
		if (e.reconfiguration != nil) != want || e.isRefuted(0) == want {
			t.Errorf("%d masters before: over %v, refuted %v", before, e.reconfiguration != nil, e.isRefuted(0))
		}
	}
}

// TestNamesOfSuccessor checks that a proxy knows the names of the masters that follow if the removed
// master is still sealed, although the markers of their own era have only a hash.
func TestNamesOfSuccessor(t *testing.T) {
	change := reconfig.Change{PreviousMasterCount: 3, Names: []string{"a", "b", "d"}}
	next := marker.Marker{Era: change.NextEra(reconfig.Era{})}
	seal := marker.Marker{Seal: reconfig.Seal{Ballot: "05", Change: change}}
	for _, test := range []struct {
		markers map[int]marker.Marker
		want    string
	}{
		{map[int]marker.Marker{0: next, 1: next, 2: seal}, "[a b d]"},
		{map[int]marker.Marker{0: next, 1: next}, "[]"},
	} {
		e := newEraTracker([]Master{{Name: "a"}, {Name: "b"}, {Name: "c"}}, &reconfig.Era{}, time.Now())
		for i, m := range test.markers {
			e.observe(i, reportOf(m, i), time.Now())
		}
		if s := e.successor(); s == nil || !s.Begun || fmt.Sprint(s.Change.Names) != test.want {
			t.Errorf("%v: %+v", test.want, s)
		}
	}
}

// TestErasOfRecords checks what quarantine records tell a proxy that starts, if no marker states an
// era: the latest era, and whether other masters have followed this proxy's.
func TestErasOfRecords(t *testing.T) {
	names := []string{"a", "b", "c"}
	fourth := reconfig.Change{PreviousMasterCount: 3, Names: names, Place: location.Upstream}.NextEra(reconfig.Era{Number: 3})
	fifth := reconfig.Change{PreviousMasterCount: 3, Names: names, Place: location.Masters}.NextEra(fourth)
	ofOthers := reconfig.Change{PreviousMasterCount: 3, Names: []string{"x", "y", "z"}}.NextEra(fifth)
	seventh := reconfig.Change{PreviousMasterCount: 3, Names: names, Place: location.Upstream}.NextEra(ofOthers)
	first := reconfig.Era{}
	record := func(nonce string) Report {
		r := marker.Record{RunID: "r", Nonce: nonce, Claim: marker.NoClaim, Reason: string(Restarted)}
		return Report{RunID: "r", Record: marker.ReadRecord(r.String())}
	}
	recorded := func(era reconfig.Era) Report { return record(marker.NewRecordNonce(era)) }
	ofEarlierVersion := record(marker.NewNonce() + ".4")
	voting := func(era reconfig.Era) Report { return reportOf(marker.Marker{Era: era}, 0) }
	for _, test := range []struct {
		name     string
		reports  []Report // of the masters in turn
		want     reconfig.Era
		isMarked bool
		isFormer bool // this proxy may have a former list
	}{
		{"a record", []Report{recorded(fourth)}, fourth, false, false},
		{"records of two eras", []Report{recorded(fourth), recorded(fifth), recorded(fourth)}, fifth, false, false},
		{"a vote", []Report{recorded(fifth), {}, voting(fourth)}, fourth, true, false},
		{"a record of other masters", []Report{recorded(fourth), recorded(ofOthers)}, fourth, false, false},
		{"records of other masters", []Report{recorded(fourth), recorded(ofOthers), recorded(ofOthers)}, fourth, false, true},
		{"records of other masters, of an earlier era", []Report{recorded(ofOthers), recorded(ofOthers), recorded(seventh)}, seventh, false, false},
		{"a record of 0.3.0", []Report{ofEarlierVersion}, first, false, false},
	} {
		e := newEraTracker([]Master{{Name: "a"}, {Name: "b"}, {Name: "c"}}, nil, time.Now())
		for i, v := range test.reports {
			e.observe(i, v, time.Now())
		}
		era, isMarked := e.statedEra()
		if isFormer := e.othersAreLater(era); era != test.want || isMarked != test.isMarked || isFormer != test.isFormer {
			t.Errorf("%s: era %v, marked %v, former %v", test.name, era, isMarked, isFormer)
		}
	}
}

// TestNextRecord checks the era in the next quarantine record of a master, and whether the former
// record is of the present era.
func TestNextRecord(t *testing.T) {
	fourth := reconfig.Change{PreviousMasterCount: 1, Names: []string{"a"}}.NextEra(reconfig.Era{Number: 3})
	fifth := reconfig.Change{PreviousMasterCount: 1, Names: []string{"a"}}.NextEra(fourth)
	former := marker.Record{Nonce: marker.NewRecordNonce(fourth)}
	for _, test := range []struct {
		name  string
		own   *reconfig.Era
		want  reconfig.Era
		isOwn bool
	}{
		{"the era is not known", nil, fourth, true},
		{"the same era", &fourth, fourth, true},
		{"a later era", &fifth, fifth, false},
	} {
		e := newEraTracker([]Master{{Name: "a"}}, test.own, time.Now())
		era, _ := e.withEra(marker.Record{Nonce: marker.NewNonce()}, former).Era()
		if isOwn := e.isOwn(former); era != test.want || isOwn != test.isOwn {
			t.Errorf("%s: %v, own %v", test.name, era, isOwn)
		}
	}
}

// TestSealByAnotherBallot checks a master of the former era that an earlier ballot sealed for a
// different set. The master has not voted in that era since, so its data count like the data of
// masters sealed for this set. They do not count if the master restarted, or was not in that era.
func TestSealByAnotherBallot(t *testing.T) {
	thirdEra := reconfig.Change{PreviousMasterCount: 3, Names: []string{"a", "b", "c"}}.NextEra(reconfig.Era{Number: 2})
	former := newEraTracker([]Master{{Name: "a"}, {Name: "b"}, {Name: "c"}}, &thirdEra, time.Now())
	ownEra := reconfig.Change{PreviousMasterCount: 3, Names: []string{"a", "b", "c", "d"}}.NextEra(former.ownEra)
	sealed := marker.Marker{Era: former.ownEra,
		Seal: reconfig.Seal{Ballot: "1", Change: reconfig.Change{PreviousMasterCount: 3, Names: []string{"a", "b", "c", "x"}}}}
	sealedEarlier := sealed
	sealedEarlier.Era.Number--
	for _, test := range []struct {
		name   string
		master int
		marker marker.Marker
		runID  string
		want   eraPosition
	}{
		{"of the set before", 2, sealed, "r", positionFormer},
		{"restarted since", 2, sealed, "2", positionStale},
		{"new", 3, sealed, "r", positionStale},
		{"sealed long ago", 2, sealedEarlier, "r", positionStale},
	} {
		e := newEraTracker([]Master{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"}}, &ownEra, time.Now())
		e.setFormerTracker(former)
		v := reportOf(test.marker, test.master)
		v.RunID = test.runID
		e.observe(test.master, v, time.Now())
		if got := e.position(test.master); got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}

// TestLatestReconfiguration checks that the tracker adopts the change of masters that began
// last.
func TestLatestReconfiguration(t *testing.T) {
	e := newEraTracker([]Master{{Name: "a"}, {Name: "c"}}, &reconfig.Era{}, time.Now())
	change := reconfig.Change{PreviousMasterCount: 2, Names: []string{"b", "c"}}
	next := change.NextEra(reconfig.Era{})
	e.observe(0, reportOf(marker.Marker{Era: next}, 0), time.Now())
	e.observe(1, reportOf(marker.Marker{Seal: reconfig.Seal{Ballot: "1", Change: change}}, 1), time.Now())
	if e.reconfiguration == nil || !e.reconfiguration.Begun || e.reconfiguration.Era != next {
		t.Errorf("%+v", e.reconfiguration)
	}
}

// TestJudgeSealedMarker checks that a sealed master never votes, and that it cannot claim to have
// all its data after a restart.
func TestJudgeSealedMarker(t *testing.T) {
	change := reconfig.Change{PreviousMasterCount: 3, Names: []string{"a", "b", "d"}}
	m := marker.Marker{RunID: "1", ReplID: "r", Nonce: "n", Durable: true, Proof: marker.ProofCaughtUp, Address: "a",
		Seal: reconfig.Seal{Ballot: "1", Change: change}}
	v := Report{RunID: "1", ReplID: "r", Appendfsync: "always", Marker: marker.ReadMarker(m.String() + "@0")}
	if v.Votes() {
		t.Error("it votes")
	}
	for _, test := range []struct {
		position eraPosition
		want     nextAction
	}{{positionOwn, actionEnded}, {positionEnded, actionEnded}, {positionFormer, actionJoin},
		{positionStale, actionQuarantine}} {
		if got, _ := judge(v, history{name: "a", position: test.position}); got != test.want {
			t.Errorf("at %v: %v, want %v", test.position, got, test.want)
		}
	}
	v.RunID = "2"
	past := history{name: "a", nonce: "n", position: positionFormer}
	if got, _ := judge(v, past); got != actionQuarantine || claimOf(v, past) != marker.NoClaim {
		t.Errorf("restarted: %v with the claim %q", got, claimOf(v, past))
	}
}

// TestPromiseAndSeal runs the scripts on a real server. A seal requires the promise of its own
// ballot, and the marker under which that promise was given. The seal removes the sequence of the
// former marker.
func TestPromiseAndSeal(t *testing.T) {
	w := startRedis(t)
	m := marker.Marker{RunID: "1", ReplID: "2", Nonce: "n1", Proof: marker.ProofFresh, Address: "a:1"}
	want := func(got, want string) {
		t.Helper()
		if got != want && !(strings.HasSuffix(want, "…") && strings.HasPrefix(got, strings.TrimSuffix(want, "…"))) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	want(runScript(t, w, script.Admit, "", "", m.String(), "0", marker.ProofFresh), "1")
	value, field := m.String()+"@0", "n1@0"
	want(runScript(t, w, script.Promise, "other@0", "05", field, "0"), "[-1]")
	want(runScript(t, w, script.Promise, value, "05", field, "0"), "[1 1099511627777 …")
	want(runScript(t, w, script.Promise, value, "05", field, "0"), "[0 05]")
	want(runScript(t, w, script.Promise, value, "04", field, "0"), "[0 05]")
	want(runScript(t, w, script.Promise, value, "06", field, "0"), "[1 1099511627778 …")
	next := m
	next.Nonce, next.Seal = "n2", reconfig.Seal{Ballot: "05",
		Change: reconfig.Change{PreviousMasterCount: 1, Names: []string{"b:1"}}}
	want(runScript(t, w, script.Seal, value, "05", next.String(), "0"), "0")
	want(runScript(t, w, script.Seal, "other@0", "06", next.String(), "0"), "-1")
	next.Seal.Ballot = "06"
	want(runScript(t, w, script.Seal, value, "06", next.String(), "0"), "1")
	want(runScript(t, w, script.Seal, value, "06", next.String(), "0"), "-1")
	if n, err := w.Client(0).HIncrBy(t.Context(), script.SequenceKey, field, 1).Result(); err != nil || n != 1 {
		t.Errorf("the sequence of the former marker continues: %d, %v", n, err)
	}
	// The promise does not bind in another era: the master promises a lower ballot.
	want(runScript(t, w, script.Promise, next.String()+"@0", "01", "n2@0", "1.1.x"), "[1 …")
	want(runScript(t, w, script.AddRecord, next.String()+"@0", "record"), "1")
	want(runScript(t, w, script.AddRecord, next.String()+"@0", "another"), "0")
}

// TestPromiseOfRemovedMarker runs the scripts on a real server. A promise is removed with the
// marker under which it was given. If it stayed, it would support another cluster's seal.
func TestPromiseOfRemovedMarker(t *testing.T) {
	m := marker.Marker{RunID: "1", ReplID: "2", Nonce: "n1", Proof: marker.ProofFresh, Address: "a:1"}
	next := m
	next.Nonce, next.Proof = "n2", marker.ProofLease
	for name, end := range map[string]func(w realRedis) string{
		"quarantine": func(w realRedis) string { return runScript(t, w, script.Quarantine, m.String()+"@0", "", "record") },
		"admission": func(w realRedis) string {
			return runScript(t, w, script.Admit, m.String()+"@0", "", next.String(), "0", marker.ProofLease)
		},
		"flush of a database": func(w realRedis) string {
			runScript(t, w, script.Enrol, m.String(), "3", "lost")
			w.Client(3).FlushDB(t.Context())
			if got := runScript(t, w, script.Enrol, m.String(), "3", "lost"); got != "-1" {
				return got
			}
			return "1"
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := startRedis(t)
			runScript(t, w, script.Admit, "", "", m.String(), "0", marker.ProofFresh)
			runScript(t, w, script.Promise, m.String()+"@0", "05", "n1@0", "0")
			if report, err := w.Examine(t.Context()); err != nil || report.Promise != "0 05" {
				t.Fatalf("promised %q, %v", report.Promise, err)
			}
			if got := end(w); got != "1" {
				t.Fatal(got)
			}
			if report, err := w.Examine(t.Context()); err != nil || report.Promise != "" {
				t.Errorf("still promised: %q, %v", report.Promise, err)
			}
		})
	}
}

// TestJoinOfSealedMaster checks that a master can join after a fresh start and seals by two
// ballots. A proxy that counted its votes before, and a proxy that found it sealed, both see that
// it has lost nothing.
func TestJoinOfSealedMaster(t *testing.T) {
	w := startRedis(t)
	s := NewSet(Options{TimeSinceBoot: func() time.Duration { return 0 }},
		[]Master{{Name: "a:1", Conn: w, IsDown: func() bool { return false }, Wake: func() {}}})
	m := marker.Marker{RunID: "1", ReplID: "2", Nonce: "n1", Proof: marker.ProofFresh, Address: "a:1"}
	runScript(t, w, script.Admit, "", "", m.String(), "0", marker.ProofFresh)
	s.guards[0].grantVote(m, false)
	past := history{name: "a:1", nonce: m.Nonce, runID: "1", mayHoldLock: true, position: positionFormer}
	for _, ballot := range []string{"000000000001", "000000000002"} {
		if _, err := s.Decide(t.Context(), reconfig.Era{}, reconfig.Change{PreviousMasterCount: 1, Names: []string{"a:1", "b:1"}},
			func(uint64) string { return ballot }); err != nil {
			t.Fatal(err)
		}
		text, err := w.Client(0).Get(t.Context(), script.MarkerKey).Result()
		v := Report{RunID: "1", ReplID: "2", Marker: marker.ReadMarker(text)}
		if sealed := v.Marker.Value; err != nil || sealed.Nonce == past.nonce || sealed.Seal.Ballot != ballot {
			t.Fatalf("it has the marker %q, %v", text, err)
		}
		if action, reason := judge(v, past); action != actionJoin {
			t.Errorf("sealed by ballot %s: %v, %s", ballot, action, reason)
		}
		s.eras.credibleNonces[v.Marker.Value.Nonce] = true
		s.guards[0].grantVote(v.Marker.Value, true)
		past.nonce = v.Marker.Value.Nonce
	}
}

// TestRejoin runs the script on a real server. A sealed master votes in the next era of the same
// masters if it has all its data in each database. In addition, it must have been sealed only a
// moment ago by its own clock.
func TestRejoin(t *testing.T) {
	m := marker.Marker{RunID: "1", ReplID: "2", Nonce: "n1", Proof: marker.ProofFresh, Address: "a:1"}
	sealed, next := m, m
	sealed.Nonce, sealed.Seal = "n2", reconfig.Seal{Ballot: "06",
		Change: reconfig.Change{PreviousMasterCount: 1, Names: []string{"a:1"}, Place: location.MovingToMasters}}
	next.Nonce, next.Proof, next.Era = "n3", marker.ProofJoined, sealed.Seal.NextEra(m.Era)
	for _, test := range []struct {
		name    string
		prepare func(w realRedis)
		want    string
	}{
		{"it holds what it held", func(realRedis) {}, "1"},
		{"one database forgot", func(w realRedis) { w.Client(3).FlushDB(t.Context()) }, "0"},
		{"database 0 forgot", func(w realRedis) { w.Client(0).FlushDB(t.Context()) }, "0"},
		{"it was sealed long ago", func(realRedis) { time.Sleep(60 * time.Millisecond) }, "-1"},
		{"when is not known", func(w realRedis) { w.Client(0).HDel(t.Context(), script.SequenceKey, "sealed") }, "-1"},
		{"it did already", func(w realRedis) {
			runScript(t, w, script.Rejoin, sealed.String()+"@0", next.String(), "60000")
		}, "0"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := startRedis(t)
			runScript(t, w, script.Admit, "", "", m.String(), "0", marker.ProofFresh)
			runScript(t, w, script.Enrol, m.String(), "3", "lost")
			runScript(t, w, script.Promise, m.String()+"@0", "06", "n1@0", "0")
			if got := runScript(t, w, script.Seal, m.String()+"@0", "06", sealed.String(), "0"); got != "1" {
				t.Fatalf("it is not sealed: %s", got)
			}
			test.prepare(w)
			within := "60000"
			if test.want == "-1" {
				within = "50"
			}
			got := runScript(t, w, script.Rejoin, sealed.String()+"@0", next.String(), within)
			in0, in3 := w.Client(0).Get(t.Context(), script.MarkerKey).Val(),
				w.Client(3).Get(t.Context(), script.MarkerKey).Val()
			if got != test.want || got == "1" && (in0 != next.String()+"@0" || in3 != next.String()+"@3") {
				t.Errorf("got %s, want %s; %q and %q", got, test.want, in0, in3)
			}
		})
	}
}
