package watch

import (
	"strings"
	"testing"
	"time"
)

// mustWatchChange sets a ChangeWatch, and waits until it is settled. The returned channel gets its
// reports.
func mustWatchChange(t *testing.T, w *Watcher, key string) (*ChangeWatch, chan Report) {
	t.Helper()
	reports := make(chan Report, 10)
	m := w.WatchChange(0, key, func(n Report) { reports <- n })
	select {
	case <-m.Settled():
	case <-time.After(30 * time.Second):
		t.Fatal("it is not settled")
	}
	return m, reports
}

func wantReport(t *testing.T, reports chan Report, want Report) {
	t.Helper()
	select {
	case got := <-reports:
		if got != want {
			t.Errorf("%v, want %v", got, want)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("no report arrives")
	}
}

// TestChangeWatch checks that a ChangeWatch reports changes of existing and absent keys, and
// reports ReportUnwatched when the Watcher closes.
func TestChangeWatch(t *testing.T) {
	w, _, client := newRealWatcher(t)
	absent, absentReports := mustWatchChange(t, w, "absent")
	do(t, client, "SET", "k", "x")
	existing, heldReports := mustWatchChange(t, w, "k")
	if !absent.IsWatched() || !existing.IsWatched() {
		t.Fatal("they are not watched")
	}
	do(t, client, "SET", "absent", "x")
	wantReport(t, absentReports, ReportQuorumChanged)
	do(t, client, "PEXPIRE", "k", "1500")
	wantReport(t, heldReports, ReportQuorumChanged)
	second, secondReports := mustWatchChange(t, w, "k")
	existing.Stop()
	wantReport(t, secondReports, ReportQuorumChanged) // the key expires
	third, thirdReports := mustWatchChange(t, w, "k")
	second.Stop()
	w.Close()
	wantReport(t, thirdReports, ReportUnwatched)
	wantReport(t, absentReports, ReportUnwatched)
	if third.IsWatched() || len(heldReports)+len(secondReports) > 0 {
		t.Error("there are more reports")
	}
	third.Stop()
	absent.Stop()
	if len(w.byDB[0][0].listeners) != 0 {
		t.Error("keys remain")
	}
}

// TestChangeWatchUnwatched checks that a ChangeWatch settles if its key cannot be watched.
func TestChangeWatchUnwatched(t *testing.T) {
	w, _, client := newRealWatcher(t)
	long, _ := mustWatchChange(t, w, strings.Repeat("k", maxKeyLength+1))
	do(t, client, "ACL", "SETUSER", "default", "-client|tracking")
	refused, _ := mustWatchChange(t, w, "k")
	for _, m := range []*ChangeWatch{long, refused} {
		if m.IsWatched() {
			t.Error("it is watched")
		}
		m.Stop()
	}
	w.Close()
	closed, _ := mustWatchChange(t, w, "k")
	if closed.IsWatched() {
		t.Error("it is watched after the end")
	}
}

// TestChangeWatchUpdates checks the reports for observations of three masters, one after the other.
func TestChangeWatchUpdates(t *testing.T) {
	observed := func(s state) observation { return observation{state: s} }
	staleRead := observation{state: stateChanged, stale: true}
	for name, test := range map[string]struct {
		updates []observation // of master 0, 1, 2, 0 …
		settled bool
		watched bool
		want    []Report
	}{
		"a majority is armed": {[]observation{observed(stateHeld), observed(stateFree)}, true, true, nil},
		"one master is armed": {[]observation{observed(stateHeld)}, false, false, nil},
		"two are unknown":     {[]observation{observed(stateHeld), observed(stateUnknown), observed(stateUnknown)}, true, false, nil},
		"changes before the reads": {[]observation{observed(stateChanged), observed(stateChanged), observed(stateChanged), observed(stateHeld), observed(stateHeld)}, true,
			true, nil},
		"a read that is stale": {[]observation{staleRead, observed(stateHeld)}, true, true, []Report{ReportSomeChanged}},
		"a change": {[]observation{observed(stateHeld), observed(stateHeld), observed(stateHeld), observed(stateChanged)}, true, true,
			[]Report{ReportSomeChanged}},
		"a change before another read": {[]observation{observed(stateHeld), observed(stateHeld), observed(stateHeld), observed(stateChanged), observed(stateHeld), observed(stateHeld)},
			true, true, []Report{ReportSomeChanged}},
		"two changes": {[]observation{observed(stateHeld), observed(stateHeld), observed(stateHeld), observed(stateChanged), observed(stateChanged)}, true,
			true, []Report{ReportSomeChanged, ReportQuorumChanged}},
		"one master is lost": {[]observation{observed(stateHeld), observed(stateHeld), observed(stateHeld), observed(stateUnknown)}, true, true,
			[]Report{ReportUnwatched}},
		"one master is lost and comes back": {
			[]observation{observed(stateHeld), observed(stateHeld), observed(stateUnknown), observed(stateHeld), observed(stateHeld), observed(stateReading), observed(stateHeld), observed(stateHeld), observed(stateFree)},
			true, true, nil},
		"one master is lost after a change, and not armed again": {[]observation{observed(stateHeld), observed(stateHeld), observed(stateUnknown), observed(stateChanged), observed(stateUnknown)},
			true, false, []Report{ReportSomeChanged, ReportUnwatched}},
	} {
		var reports []Report
		m := &ChangeWatch{quorum: 2, states: []state{stateReading, stateReading, stateReading}, settled: make(chan struct{}),
			report: func(n Report) { reports = append(reports, n) }}
		for i, s := range test.updates {
			m.update(i%3, s)
		}
		settled := false
		select {
		case <-m.Settled():
			settled = true
		default:
		}
		if settled != test.settled || m.IsWatched() != test.watched || len(reports) != len(test.want) {
			t.Errorf("%s: settled %v, watched %v, %v", name, settled, m.IsWatched(), reports)
			continue
		}
		for i := range reports {
			if reports[i] != test.want[i] {
				t.Errorf("%s: %v", name, reports)
			}
		}
	}
}
