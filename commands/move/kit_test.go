package move

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"redlock-proxy/commands/catalog/keys"
	"redlock-proxy/internal/redistest"
	"redlock-proxy/internal/resp"
	"redlock-proxy/quorum"
	"redlock-proxy/quorum/location"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func mustSucceed(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// storedValue holds the value of a key on the masters of a test.
type storedValue struct {
	value   string
	expiry  time.Time // zero without an expiry
	foreign bool
}

// fakeMasters implements Masters for tests, with a map of keys, and eras that any mover may
// advance.
type fakeMasters struct {
	mu sync.Mutex
	at quorum.Location
	// undecided is set if the location follows from the setting.
	undecided bool
	places    []location.Place
	keys      map[quorum.Key]storedValue
	proxies   []string
	// room is the free memory in bytes; zero means unlimited.
	room         int64
	pauseReports []quorum.PauseReport
	// failStep is called before each step with its name, and returns the step's error.
	failStep func(step string) error
	// acceptDespiteError makes the next decision succeed although the caller gets an error.
	acceptDespiteError bool
	// writes counts the changes.
	writes int
}

func (m *fakeMasters) runStep(name string) error {
	m.mu.Lock()
	fail := m.failStep
	m.mu.Unlock()
	if fail == nil {
		return nil
	}
	return fail(name)
}

func (m *fakeMasters) CurrentLocation() (quorum.Location, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.at, true
}

func (m *fakeMasters) Confirm(context.Context) (quorum.Location, error) {
	at, _ := m.CurrentLocation()
	return at, m.runStep("confirm")
}

func (m *fakeMasters) IsDecided(at quorum.Location) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.undecided && at == m.at
}

func (m *fakeMasters) CheckMove() error { return m.runStep("may move") }

var errWrongLocation = errors.New("decided anew meanwhile")

func (m *fakeMasters) DecideLocation(_ context.Context, from quorum.Location, to location.Place) (quorum.Location, error) {
	failed := m.runStep("to " + to.String())
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case failed != nil && !m.acceptDespiteError:
		return quorum.Location{}, failed
	// Another mover made the same proposal.
	case m.at == quorum.Location{Place: to, Era: from.Era + 1}:
		return m.at, nil
	case from != m.at:
		return quorum.Location{}, errWrongLocation
	}
	m.decide(to)
	m.acceptDespiteError = false
	return m.at, failed
}

// decide begins an era. The caller holds mu.
func (m *fakeMasters) decide(to location.Place) {
	m.at = quorum.Location{Place: to, Era: m.at.Era + 1}
	m.places = append(m.places, to)
}

func (m *fakeMasters) CheckFreeMemory(_ context.Context, bytes int64) error {
	if m.room > 0 && m.room < bytes {
		return errors.New("master m has room for less (maxmemory)")
	}
	return nil
}

func (m *fakeMasters) PauseReports(_ context.Context, era int) (reports []quorum.PauseReport, missing []string) {
	if at, _ := m.CurrentLocation(); at.Era == era {
		reports = m.pauseReports
	}
	for _, id := range m.proxies {
		if !slices.ContainsFunc(reports, func(h quorum.PauseReport) bool { return h.Proxy == id }) {
			missing = append(missing, id)
		}
	}
	return reports, missing
}

func (m *fakeMasters) Databases(context.Context) ([]int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := map[int]bool{0: true}
	for key := range m.keys {
		all[key.DB] = true
	}
	return slices.Sorted(maps.Keys(all)), nil
}

func (m *fakeMasters) Names(_ context.Context, db int, page func([]string) (bool, error)) error {
	if err := m.runStep("names"); err != nil {
		return err
	}
	m.mu.Lock()
	names := []string{"p:lock:ghost"}
	for key := range m.keys {
		if key.DB == db {
			names = append(names, key.Name)
		}
	}
	m.mu.Unlock()
	for _, names := range [][]string{names, names[len(names)/2:]} { // some names occur twice
		if _, err := page(names); err != nil {
			return err
		}
	}
	return nil
}

// readKey reads a key. The caller holds mu.
func (m *fakeMasters) readKey(key quorum.Key) (quorum.Snapshot, error) {
	if key.Movable || key.Era != m.at.Era {
		return quorum.Snapshot{}, &quorum.WrongLocationError{Current: m.at}
	}
	key.Era = 0
	h, exists := m.keys[key]
	switch left := time.Until(h.expiry); {
	case !exists || !h.expiry.IsZero() && left <= 0:
		return quorum.Snapshot{}, nil
	case h.expiry.IsZero():
		return quorum.Snapshot{Present: true, Value: h.value, TimeLeft: quorum.NoExpiry, Foreign: h.foreign}, nil
	default:
		return quorum.Snapshot{Present: true, Value: h.value, TimeLeft: left, Foreign: h.foreign}, nil
	}
}

func (m *fakeMasters) Read(_ context.Context, keys []quorum.Key) ([]quorum.Snapshot, error) {
	if err := m.runStep("read"); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	snapshots := make([]quorum.Snapshot, len(keys))
	for i, key := range keys {
		var err error
		if snapshots[i], err = m.readKey(key); err != nil {
			return nil, err
		}
	}
	return snapshots, nil
}

func (m *fakeMasters) Update(_ context.Context, key quorum.Key, _ *string,
	run func(quorum.Snapshot) (quorum.Decision, error)) (quorum.Outcome, error) {
	if err := m.runStep("update"); err != nil {
		return quorum.Outcome{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	l, err := m.readKey(key)
	if err != nil {
		return quorum.Outcome{}, err
	}
	d, err := run(l)
	key.Era = 0
	switch {
	case err != nil:
		return quorum.Outcome{}, err
	case l.Foreign && d.Action != quorum.NoChange:
		return quorum.Outcome{}, quorum.ErrForeign
	case d.Action == quorum.Put:
		h := storedValue{value: d.Value}
		if d.TTL >= 0 {
			h.expiry = time.Now().Add(d.TTL)
		}
		m.keys[key] = h
		m.writes++
	case d.Action == quorum.Remove:
		delete(m.keys, key)
		m.writes++
	}
	return quorum.Outcome{Decision: d}, nil
}

// testBench holds a real upstream, masters, and a mover of the locks between them.
type testBench struct {
	*testing.T
	server   *redistest.Server
	client   *redistest.Client
	masters  *fakeMasters
	mover    *Mover
	steps    []string
	moveTime time.Duration          // the duration of all moves so far
	infoText atomic.Pointer[string] // replaces the reply to INFO, if set
}

func movableKey(db int, key string) quorum.Key {
	k := quorum.Key{DB: db, Name: "p:" + key, Movable: true} // like a proxy whose locks can move
	if tag, found := keys.Tag(key); found {
		k.Tag = "p:" + tag
	}
	return k
}

// mastersTestKey returns a key as the masters of a test name it.
func mastersTestKey(db int, key string) quorum.Key {
	k := movableKey(db, key)
	k.Movable = false
	return k
}

func newTestBench(t *testing.T) *testBench {
	t.Helper()
	r := &testBench{T: t, server: redistest.New(t, redistest.Options{InMemory: true})}
	r.client = r.dial()
	r.masters = &fakeMasters{at: quorum.Location{Place: location.Upstream, Era: 7}, keys: map[quorum.Key]storedValue{},
		proxies: []string{"me"}}
	r.masters.pauseReports = []quorum.PauseReport{{Proxy: "me", IdleConns: []string{r.client.LocalAddr()}}}
	r.mover = r.newMover()
	return r
}

// newMover returns a mover for one more proxy with the same masters and upstream.
func (r *testBench) newMover() *Mover {
	m := New(Options{Masters: r.masters, Connect: r.connect, LockKeys: []string{"lock:*", "lo?k-*"}, KeyOnMasters: movableKey,
		Prefix: "p:"})
	m.eraDelay, m.pauseTimeout, m.lease = 20*time.Millisecond, 500*time.Millisecond, 2*time.Second
	return m
}

func (r *testBench) dial() *redistest.Client {
	r.Helper()
	client, err := redistest.Dial(r.server.Addr(), time.Minute)
	mustSucceed(r, err)
	r.Cleanup(func() { _ = client.Close() })
	return client
}

// do makes the upstream run a command, and fails on an error.
func (r *testBench) do(words ...string) any {
	r.Helper()
	reply, err := r.client.Do(words...)
	if failed, ok := reply.(redistest.RespError); err != nil || ok {
		r.Fatalf("%q: %v %v", words, failed, err)
	}
	return reply
}

// doLine is like do, for words separated by blanks.
func (r *testBench) doLine(text string) any { r.Helper(); return r.do(strings.Fields(text)...) }

// logSteps returns a logger that calls do for each step of a run.
func logSteps(do func(step string)) *slog.Logger {
	return slog.New(slog.NewTextHandler(io.Discard, &slog.HandlerOptions{
		Level: slog.LevelDebug,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == "step" {
				do(a.Value.String())
			}
			return a
		},
	}))
}

// move returns the lines of the report in one string.
func (r *testBench) move(request Request) (string, error) {
	r.Helper()
	r.steps = nil
	defer func(startTime time.Time) { r.moveTime += time.Since(startTime) }(time.Now())
	defer func(logger *slog.Logger) { r.mover.opts.Logger = logger }(r.mover.opts.Logger)
	r.mover.opts.Logger = logSteps(func(step string) {
		r.steps = append(r.steps, step)
		if strings.HasPrefix(step, "another proxy is moving the locks") { // its lease expires now
			r.masters.mu.Lock()
			defer r.masters.mu.Unlock()
			r.masters.decide(r.masters.at.Source())
		}
	})
	lines, err := r.mover.Move(r.Context(), request)
	return strings.Join(lines, "\n"), err
}

func (r *testBench) mustMove(request Request) string {
	r.Helper()
	report, err := r.move(request)
	if err != nil {
		r.Fatalf("%+v: %v (%q)", request, err, r.steps)
	}
	return report
}

// wantMove is like mustMove, and checks that the report contains these texts, in this order.
func (r *testBench) wantMove(request Request, texts ...string) {
	r.Helper()
	report := r.mustMove(request)
	rest := report
	for _, text := range texts {
		_, after, found := strings.Cut(rest, text)
		if !found {
			r.Errorf("%+v: report %q, want %q", request, report, texts)
			return
		}
		rest = after
	}
}

// alteredConnection wraps a Connection, and replaces some replies.
type alteredConnection struct {
	Connection
	reply func(words []string) any // a nil result leaves the reply unchanged
}

func (a *alteredConnection) Ask(ctx context.Context, commands ...[]string) ([]any, error) {
	replies, err := a.Connection.Ask(ctx, commands...)
	for i := range replies {
		if other := a.reply(commands[i]); other != nil {
			replies[i] = other
		}
	}
	return replies, err
}

// alterReplies replaces replies of the upstream from now on.
func (r *testBench) alterReplies(reply func(words []string) any) {
	r.mover.opts.Connect = func(ctx context.Context) (Connection, error) {
		conn, err := r.connect(ctx)
		return &alteredConnection{conn, reply}, err
	}
}

// testConnection implements Connection for tests.
type testConnection struct {
	net.Conn
	bench *testBench
	in    *resp.Reader
}

func (r *testBench) connect(ctx context.Context) (Connection, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", r.server.Addr())
	if err != nil {
		return nil, err
	}
	return &testConnection{conn, r, resp.NewReader(conn, resp.ClientLimits())}, nil
}

func (w *testConnection) CheckCurrent(context.Context) error {
	return w.bench.masters.runStep("check current")
}

func (w *testConnection) Ask(ctx context.Context, commands ...[]string) (replies []any, err error) {
	if deadline, limited := ctx.Deadline(); !limited || time.Until(deadline) >= location.Lease {
		return nil, fmt.Errorf("%q may take longer than the lease of a move", commands[0])
	}
	for _, words := range commands {
		if _, err := w.Write(resp.AppendWords(nil, words...)); err != nil {
			return nil, err
		}
	}
	for range commands {
		w.in.Begin()
		reply, err := w.in.ReadValue()
		if err != nil {
			return nil, err
		}
		replies = append(replies, reply)
	}
	if text := w.bench.infoText.Load(); text != nil && slices.Equal(commands[0], []string{"INFO"}) {
		replies[0] = *text
	}
	return replies, nil
}

// upstreamKey describes a key at the upstream: its type, its contents and its expiry.
type upstreamKey struct {
	content string
	expiry  time.Time
}

// readUpstream returns all keys at the upstream.
func (r *testBench) readUpstream() map[string]upstreamKey {
	r.Helper()
	all := map[string]upstreamKey{}
	for db := range 16 {
		r.do("SELECT", strconv.Itoa(db))
		for _, key := range r.do("KEYS", "*").([]any) {
			if key == location.RecordKey {
				continue
			}
			s := upstreamKey{content: r.readContents(key.(string))}
			if end := r.do("PEXPIRETIME", key.(string)).(int64); end >= 0 {
				s.expiry = time.UnixMilli(end)
			}
			all[fmt.Sprint(db, " ", key)] = s
		}
	}
	r.do("SELECT", "0")
	return all
}

func (r *testBench) readContents(key string) string {
	kind := r.do("TYPE", key).(string)
	if kind == "stream" {
		return kind
	}
	value := r.do(valueCommand(kind, key)...)
	elems, ok := value.([]any)
	switch {
	case !ok:
	case kind == "set":
		slices.SortFunc(elems, func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
	case kind == "hash":
		var pairs []string
		for pair := range slices.Chunk(elems, 2) {
			pairs = append(pairs, fmt.Sprint(pair...))
		}
		slices.Sort(pairs)
		value = pairs
	}
	return fmt.Sprintf("%s %q", kind, value)
}

// isExpiryKept reports whether an expiry is unchanged within two limits. The expiry may be up to 5
// ms earlier because of rounding. It may be later by the duration of the moves, because a remaining
// time is written later than it was read.
func (r *testBench) isExpiryKept(expiry, before time.Time) bool {
	late := expiry.Sub(before)
	return expiry.IsZero() == before.IsZero() && late > -5*time.Millisecond && late < r.moveTime
}

// wantKeys compares the keys at the upstream.
func (r *testBench) wantKeys(got, want map[string]upstreamKey) {
	r.Helper()
	errorCount := 0
	for key, w := range want {
		g, exists := got[key]
		if errorCount++; errorCount > 5 {
			return
		}
		switch {
		case !exists:
			r.Errorf("%s is lost", key)
		case g.content != w.content:
			r.Errorf("%s: %.200s, want %.200s", key, g.content, w.content)
		case !r.isExpiryKept(g.expiry, w.expiry):
			r.Errorf("%s ends %v late", key, g.expiry.Sub(w.expiry))
		default:
			errorCount--
		}
	}
	for key := range got {
		if _, exists := want[key]; !exists {
			r.Errorf("%s is unexpected", key)
		}
	}
}

func filterKeys(all map[string]upstreamKey, keep func(key string) bool) map[string]upstreamKey {
	kept := map[string]upstreamKey{}
	for key, s := range all {
		if keep(key) {
			kept[key] = s
		}
	}
	return kept
}

func isLock(key string) bool {
	return strings.Contains(key, " lock:") || strings.Contains(key, " lock-")
}

func isOrdinaryKey(key string) bool { return !isLock(key) }
