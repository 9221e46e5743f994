package metrics

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"redlock-proxy/quorum"
	"redlock-proxy/quorum/availability"
	"redlock-proxy/quorum/location"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// scrape returns the response to a scrape.
func scrape(t *testing.T, m *Metrics, sources Sources) string {
	t.Helper()
	answer := httptest.NewRecorder()
	m.Handler(sources).ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	if answer.Code != 200 {
		t.Fatalf("got %d: %s", answer.Code, answer.Body)
	}
	return answer.Body.String()
}

// testSources returns the sources of a proxy with these masters and without clients.
func testSources(masters ...quorum.MasterStatus) Sources {
	return Sources{
		Clients: func() Clients { return Clients{} }, Commands: func() Commands {
			return Commands{KeptLocks: 2}
		},
		Masters:      func() []quorum.MasterStatus { return masters },
		Availability: func() availability.Inputs { return availability.Inputs{Masters: len(masters), VotingMasters: 1} },
		LogDropped:   func() int64 { return 3 },
		LastReload:   func() (time.Time, bool) { return time.Unix(1700000000, 0), true },
	}
}

// wantLines checks that a page has these lines.
func wantLines(t *testing.T, page string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains("\n"+page, "\n"+line+"\n") {
			t.Errorf("there is no line %s", line)
		}
	}
}

func TestMasters(t *testing.T) {
	now := time.Now()
	refused := errors.New("connection refused")
	got := scrape(t, New("1.2.3"), testSources(
		quorum.MasterStatus{Name: "m0", Since: time.Unix(1700000000, 500e6), RoundTrip: 40 * time.Microsecond,
			ClockKnown: true, ClockOffset: -1500 * time.Millisecond, CatchUps: 2},
		quorum.MasterStatus{Name: "m1", State: quorum.Quarantined,
			Quarantine: &quorum.QuarantineError{Cause: "restarted", ReadyAt: now.Add(-time.Hour)}},
		quorum.MasterStatus{Name: "m2", State: quorum.Down, Err: refused, RemovalsPending: 3, ClockKnown: true},
	))
	wantLines(t, got,
		"redlock_config_last_reload_successful 1", "redlock_config_last_reload_success_timestamp_seconds 1.7e+09",
		"redlock_kept_locks 2",
		"redlock_masters 3", "redlock_masters_voting 1", "redlock_majority 2", "redlock_quorum 0",
		`redlock_master_up{master="m0"} 1`, `redlock_master_up{master="m1"} 1`, `redlock_master_up{master="m2"} 0`,
		`redlock_master_votes{master="m0"} 1`, `redlock_master_votes{master="m1"} 0`, `redlock_master_votes{master="m2"} 0`,
		`redlock_master_quarantined{master="m1",reason="restarted"} 1`,
		`redlock_master_quarantine_left_seconds{master="m1"} 0`,
		`redlock_master_changed_timestamp_seconds{master="m0"} 1.7000000005e+09`,
		`redlock_master_clock_offset_seconds{master="m0"} -1.5`, `redlock_master_catch_ups_total{master="m0"} 2`,
		`redlock_master_removals_pending{master="m2"} 3`, `redlock_master_probe_seconds{master="m0"} 4e-05`)
	if strings.Contains(got, `offset_seconds{master="m2"}`) || strings.Contains(got, "redlock_upstream_up ") {
		t.Error("a metric without a value is in the page")
	}
}

// TestHostileNames checks that /metrics works with any names and markers of masters.
func TestHostileNames(t *testing.T) {
	got := scrape(t, New("v\xff"), testSources(
		quorum.MasterStatus{Name: "/run/\xff.sock"}, quorum.MasterStatus{Name: "/run/\xfe.sock"},
		quorum.MasterStatus{Name: "m", State: quorum.Quarantined,
			Quarantine: &quorum.QuarantineError{Cause: "\xffx\"} 1\nredlock_quorum 1"}},
	))
	wantLines(t, got, `redlock_master_up{master="/run/?.sock"} 1`, `redlock_master_up{master="/run/?.sock#1"} 1`,
		`redlock_master_quarantined{master="m",reason="other"} 1`, "redlock_quorum 0")
}

func TestLabels(t *testing.T) {
	if got, want := masterLabels([]string{"a", "b", "a", "\xff"}), []string{"a", "b", "a#2", "?"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestResults(t *testing.T) {
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	other := errors.New("other")
	for _, c := range []struct {
		ctx  context.Context
		err  error
		want result
	}{
		{cancelled, nil, resultOK}, {t.Context(), quorum.ErrHeld, resultHeld}, {cancelled, quorum.ErrNotHeld, resultNotHeld},
		{t.Context(), &quorum.NoQuorumError{}, resultNoQuorum}, {t.Context(), fmt.Errorf("k: %w", quorum.ErrContended),
			resultContended},
		{t.Context(), quorum.ErrTooShort, resultTooShort}, {t.Context(), quorum.ErrForeign, resultForeign},
		{cancelled, other, resultAborted}, {t.Context(), other, resultFailed},
	} {
		if got := resultOf(c.ctx, c.err); got != c.want {
			t.Errorf("%v: got %v, want %v", c.err, got, c.want)
		}
	}
}

// fakeLocker is a Locker that returns the same error from every call.
type fakeLocker struct {
	Locker
	err error
}

func (f fakeLocker) Lock(context.Context, quorum.LockRequest) (quorum.GrantedLock, error) {
	return quorum.GrantedLock{}, f.err
}

func (f fakeLocker) Unlock(context.Context, quorum.Key, string) error { return f.err }

func TestCountingLocker(t *testing.T) {
	m := New("")
	lock := func(err error, ttl, wait time.Duration) {
		_, _ = m.CountLocks(fakeLocker{err: err}).Lock(t.Context(), quorum.LockRequest{Keys: []quorum.Key{{}}, TTL: ttl, Wait: wait})
	}
	lock(nil, 10*time.Second, 0)
	lock(nil, quorum.NoExpiry, 0)
	lock(nil, 20*time.Second, quorum.NoWaitLimit)
	lock(quorum.ErrHeld, 40*time.Second, 0)
	for _, err := range []error{
		&quorum.NoQuorumError{AgreementTime: 1}, &quorum.NoQuorumError{Unclear: true},
		&quorum.NoQuorumError{Masters: 3, VoteCount: 2}, &quorum.NoQuorumError{Masters: 3, VoteCount: 1},
	} {
		lock(err, time.Second, 0)
	}
	for _, slots := range []int{quorum.Unlimited, 4, 4} {
		_, _ = m.CountLocks(fakeLocker{}).Lock(t.Context(), quorum.LockRequest{TTL: quorum.NoExpiry, Slots: slots})
	}
	_, _ = m.CountLocks(fakeLocker{err: quorum.ErrHeld}).Lock(t.Context(), quorum.LockRequest{TTL: quorum.NoExpiry, Slots: 4})
	m.RoundTripRecorder([]string{"a", "b"})(1, 3*time.Millisecond)
	wantLines(t, scrape(t, m, testSources()),
		`redlock_lock_requests_total{operation="acquire",result="ok"} 6`,
		`redlock_lock_requests_total{operation="acquire",result="held"} 2`,
		`redlock_lock_requests_total{operation="acquire",result="no_quorum"} 4`,
		`redlock_lock_no_quorum_total{cause="late"} 1`, `redlock_lock_no_quorum_total{cause="unclear"} 1`,
		`redlock_lock_no_quorum_total{cause="open"} 1`, `redlock_lock_no_quorum_total{cause="down"} 1`,
		`redlock_lock_duration_seconds_count{operation="acquire"} 11`, `redlock_lock_holders_total{kind="shared"} 1`,
		`redlock_lock_holders_total{kind="slots"} 2`, "redlock_lock_wait_seconds_count 1",
		"redlock_lock_lease_seconds_count 2", "redlock_lock_lease_seconds_sum 30",
		`redlock_master_round_trip_seconds_count{master="a"} 0`,
		`redlock_master_round_trip_seconds_bucket{master="b",le="0.005"} 1`)
}

// TestMetricsDocumentation checks that docs/metrics.md has exactly the proxy's metrics, with their
// types.
func TestMetricsDocumentation(t *testing.T) {
	doc, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| (`redlock_.*`) \\| (\\w+) \\|").FindAllStringSubmatch(string(doc), -1) {
		for _, name := range regexp.MustCompile("`([a-z_]+)[^`]*`").FindAllStringSubmatch(row[1], -1) {
			documented[name[1]] = row[2]
		}
	}
	from := testSources(quorum.MasterStatus{Name: "m", RoundTrip: 1, ClockKnown: true,
		Quarantine: &quorum.QuarantineError{ReadyAt: time.Now()}})
	from.Upstream = func() error { return nil }
	from.Certificate = time.Now
	from.Cluster = func() Cluster { return Cluster{Nodes: []Node{{Address: "n:1", Up: true}, {Address: "n:1"}}} }
	from.Availability = func() availability.Inputs {
		return availability.Inputs{Masters: 1, Place: location.Masters, Known: true, Movable: true}
	}
	m := New("", "failed")
	m.RoundTripRecorder([]string{"m"})
	exported := map[string]string{}
	for _, line := range regexp.MustCompile(`(?m)^# TYPE (redlock_\w+) (\w+)$`).FindAllStringSubmatch(scrape(t, m, from), -1) {
		exported[line[1]] = line[2]
	}
	if !maps.Equal(documented, exported) {
		t.Errorf("docs/metrics.md has\n%v, the metrics are\n%v", documented, exported)
	}
}

// TestNoAllocation checks that counting allocates no memory.
func TestNoAllocation(t *testing.T) {
	m := New("")
	m.SetClasses(testClasses("billing=billing:", "stock=stock:"))
	locks, trip, ctx := m.CountLocks(fakeLocker{}), m.RoundTripRecorder([]string{"a"}), t.Context()
	keys := []quorum.Key{{Name: "stock:1"}}
	if n := testing.AllocsPerRun(100, func() {
		_, _ = locks.Lock(ctx, quorum.LockRequest{Keys: keys, TTL: time.Second, Wait: time.Second})
		m.RecordRelease(keys[0], time.Second)
		_ = locks.Unlock(ctx, quorum.Key{}, "")
		trip(0, time.Millisecond)
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkLock(b *testing.B) {
	locks, ctx := New("").CountLocks(fakeLocker{}), b.Context()
	b.ReportAllocs()
	for b.Loop() {
		_, _ = locks.Lock(ctx, quorum.LockRequest{TTL: time.Second})
	}
}
