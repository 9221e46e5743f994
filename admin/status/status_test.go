package status

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"redlock-proxy/admin/metrics"
	"redlock-proxy/quorum"
	"redlock-proxy/quorum/availability"
	"redlock-proxy/quorum/location"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestPrintable(t *testing.T) {
	long := strings.Repeat("ä", 200)
	for text, want := range map[string]string{
		"": "", "lock:job": "lock:job", `a\n`: `a\\n`, "a\x00\n": `a\x00\x0a`, "\xff\xc3": `\xff\xc3`,
		long: strings.Repeat("ä", 128) + "… (400 bytes)", "a" + long: "a" +
			strings.Repeat("ä", 127) + "… (401 bytes)",
		strings.Repeat("\x80", 257): strings.Repeat(`\x80`, 256) + "… (257 bytes)",
	} {
		if got := makePrintable(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// snapshotAt returns the snapshot of second n if the masters grant one lock each second, in about 3
// ms.
func snapshotAt(n int) snapshot {
	f := float64(n)
	return snapshot{at: time.Unix(int64(n), 0), relayedCommands: int64(10 * n), Totals: metrics.Totals{
		Granted: f, Refused: 2 * f, NoQuorum: 0,
		LockDuration: metrics.Histogram{Sum: metrics.Sum{Count: f, Seconds: f * .003}, Limits: []float64{.002, .004},
			CumulativeCounts: []float64{0, f}},
		RoundTrips: []metrics.Sum{{Count: f, Seconds: f * .5}, {}},
	}}
}

func TestHistory(t *testing.T) {
	var h history
	if got, count := h.samplesAfter(0); len(got) != 0 || count != 0 {
		t.Errorf("of nothing: %v, %d", got, count)
	}
	for n := range maxSamples + 11 {
		h.add(snapshotAt(n))
	}
	for _, c := range []struct{ after, want int }{{0, maxSamples}, {maxSamples + 7, 3}, {maxSamples + 10, 0},
		{maxSamples + 11, maxSamples}, {1 << 30, maxSamples}} {
		if got, count := h.samplesAfter(c.after); len(got) != c.want || count != maxSamples+10 {
			t.Errorf("after %d: %d samples until %d, want %d", c.after, len(got), count, c.want)
		}
	}
	last, _ := h.samplesAfter(maxSamples + 9)
	if s := last[0]; s.granted != 1 || s.refused != 2 || s.noQuorum != 0 || s.relayedCommands != 10 || math.Abs(s.p50-.003) > 1e-9 {
		t.Errorf("got %+v", s)
	}
	if got := h.roundTrip(0); got != .5 {
		t.Errorf("a round trip takes %v", got)
	}
	if got := h.roundTrip(1); !math.IsNaN(got) {
		t.Errorf("of a master that was not asked: %v", got)
	}
	if !math.IsNaN(newSample(snapshotAt(1), snapshotAt(1)).p99) {
		t.Error("there is a p99 of nothing")
	}
}

// TestEventMessages checks that the source of the proxy has each message that makes an
// event.
func TestEventMessages(t *testing.T) {
	var source bytes.Buffer
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "integration" || d.Name() == "status" || strings.HasPrefix(d.Name(), ".") &&
			path != "../.."):
			return filepath.SkipDir
		case strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go"):
			text, err := os.ReadFile(path)
			source.Write(text)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for message := range eventKinds() {
		if !strings.Contains(source.String(), `"`+message+`"`) {
			t.Errorf("no code logs %q: if the message was reworded, change admin/status/events.go, too", message)
		}
	}
}

func TestEvents(t *testing.T) {
	var logOutput bytes.Buffer
	e := NewEvents()
	log := e.WrapLogger(slog.New(slog.NewTextHandler(&logOutput, &slog.HandlerOptions{Level: slog.LevelWarn})))
	log.Info("master up", "master", "m:1", "was_down", 3*time.Second, "password", "hunter2")
	log.Warn("master down", "master", "m:1", "cause", "refused\n\x1b")
	log.With("key", "k", "db", 3, slog.Group("client", "addr", "10.0.0.1:7", "name", "<b>")).Info("FORCEUNLOCK",
		"removed", true)
	log.Info("something else", "cause", "x")
	log.Debug("master votes")
	log.Info("locks are available again", "without", 3*time.Second)
	all, count := e.eventsAfter(0, time.Now())
	got := fmt.Sprint(newEventsView(all, count, true).List)
	got = regexp.MustCompile(`\b\d{13} `).ReplaceAllString(got, "")
	want := `[{master up good m:1 was down 3s} {master down bad m:1 refused\x0a\x1b} {FORCEUNLOCK note k removed true, client addr 10.0.0.1:7, client name <b>} {locks are back good  after 3s}]`
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	hidden := newEventsView(all, count, false).List[2]
	if hidden.Subject != "" || hidden.Detail != "" || hidden.Badge != "FORCEUNLOCK" {
		t.Errorf("without keys it is %+v", hidden)
	}
	if lines := strings.Count(logOutput.String(), "\n"); lines != 1 || strings.Contains(logOutput.String(), "something") {
		t.Errorf("the log is\n%s", logOutput.String())
	}
	if all, _ := e.eventsAfter(0, time.Now().Add(eventAge)); len(all) > 0 {
		t.Errorf("after an hour: %v", all)
	}
	for range 2 * maxEvents {
		log.Info("upstream up", "upstream", "u")
	}
	if all, count := e.eventsAfter(count, time.Now()); len(all) != maxEvents || count != 2*maxEvents+4 {
		t.Errorf("%d of %d are kept", len(all), count)
	}
}

// TestLister checks that listings do not overlap, and that the lister starts at most one listing
// every few seconds.
func TestLister(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var listCount, runningLists atomic.Int64
		takes := time.Duration(0)
		l := &lister{list: func(ctx context.Context, _ int, match string, count int) ([]Lock, error) {
			if runningLists.Add(1) > 1 || count != maxLocks+1 {
				t.Errorf("%d at once, for %d", runningLists.Load(), count)
			}
			defer runningLists.Add(-1)
			listCount.Add(1)
			select {
			case <-ctx.Done():
				return []Lock{{Key: match}}, context.Cause(ctx)
			case <-time.After(takes):
			}
			return make([]Lock, min(count, maxLocks+1)), nil
		}}
		all := query{match: "*"}
		for range 10 { // in the same three seconds
			if found := l.get(t.Context(), all); found.err != nil || len(found.locks) != maxLocks || !found.hasMore {
				t.Errorf("got %d, more: %v, %v", len(found.locks), found.hasMore, found.err)
			}
			time.Sleep(listPause / 11)
		}
		if listCount.Load() != 1 {
			t.Errorf("the masters were asked %d times", listCount.Load())
		}
		began := time.Now()
		if found := l.get(t.Context(), query{match: "a*"}); found.err != nil || found.match != "a*" {
			t.Errorf("another question: %+v", found.err)
		}
		if waited := time.Since(began); waited > listPause || listCount.Load() != 2 {
			t.Errorf("it waited %v, the masters were asked %d times", waited, listCount.Load())
		}
		takes = time.Hour
		time.Sleep(listPause)
		began = time.Now()
		if found := l.get(t.Context(), all); !errors.Is(found.err, context.DeadlineExceeded) || len(found.locks) != 1 ||
			time.Since(began) != listTimeout {
			t.Errorf("a read without an end: %v after %v", found.err, time.Since(began))
		}
		takes = 0
		if found := l.get(t.Context(), query{db: 1, match: "*"}); found.err != errTooSoon || listCount.Load() != 3 {
			t.Errorf("after it: %v", found.err)
		}
		time.Sleep(pauseFactor * listTimeout)
		if found := l.get(t.Context(), query{db: 1, match: "*"}); found.err != nil || listCount.Load() != 4 {
			t.Errorf("later: %v", found.err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if found := l.get(ctx, all); !errors.Is(found.err, context.Canceled) {
			t.Errorf("a client that has disconnected: %v", found.err)
		}
		takes = time.Minute
		time.Sleep(listPause)
		// The client disconnects while the lister asks the masters.
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		l.get(ctx, query{match: "b*"})
		takes = 0
		if found := l.get(t.Context(), query{match: "b*"}); found.err != nil {
			t.Errorf("the same query of another client: %v", found.err)
		}
	})
}

// masters returns a master in each state.
func masters(now time.Time) []quorum.MasterStatus {
	return []quorum.MasterStatus{
		{Name: "m:1", Since: now.Add(-time.Hour), RoundTrip: 40 * time.Microsecond, ClockKnown: true,
			ClockOffset: -1500 * time.Microsecond, CatchUps: 2},
		{Name: "m:2", State: quorum.Quarantined, Since: now, Quarantine: &quorum.QuarantineError{Cause: "restarted",
			ReadyAt: now.Add(33 * time.Second)}},
		{Name: "m:3<b>", State: quorum.Down, Since: now, Err: errors.New("refused"), RemovalsPending: 3,
			ClockKnown: true},
		{Name: "m:4", State: quorum.Quarantined, Since: now, Quarantine: &quorum.QuarantineError{Cause: "\x1b"}},
	}
}

// newPage returns a page on which each field has a value.
func newPage(locks bool) *Page {
	now := time.UnixMilli(1_800_000_000_000)
	events := NewEvents()
	opts := Options{
		Proxy: func() Proxy {
			return Proxy{Version: "1.2.3", Listen: "127.0.0.1:6380", State: "serving", Clients: 7, ClientsLimit: 10,
				Waiters: 1, DetectedLocks: 2, DirectLocks: 3}
		},
		Clients: func() metrics.Clients { return metrics.Clients{} },
		Totals:  func() metrics.Totals { return metrics.Totals{} },
		Masters: func() []quorum.MasterStatus { return masters(now) },
		Availability: func() availability.Inputs {
			return availability.Inputs{Masters: 4, VotingMasters: 1, Place: location.Masters, Known: true, Movable: true}
		},
		Upstream: func() (string, error) {
			return "u:6379", errors.New("refused")
		},
		Nodes: func() []Node {
			return []Node{
				{Listen: 6401, Address: "n:7000", Role: "master", Slots: 16384, Clients: 5},
				{Listen: 6402, Address: "n:7001", Role: "replica", Err: errors.New("\x1brefused")},
			}
		},
		Events: events, Now: func() time.Time { return now },
	}
	if locks {
		opts.Locks = func(_ context.Context, db int, match string, _ int) ([]Lock, error) {
			return []Lock{
				{Key: "<script>", State: "held", TimeLeft: 1500 * time.Millisecond,
					Votes: []quorum.MasterAnswer{{Server: "m:1", State: "held"}}, Waiters: 1, GrantedAt: now,
					Addr: "10.0.0.1:5",
					Name: "ann"},
				{Key: fmt.Sprintf("%d %s", db, match), State: "held", TimeLeft: quorum.NoExpiry},
				{Key: "\xff", State: "unclear"},
			}, nil
		}
	}
	p := New(opts)
	for n := range 3 {
		p.history.add(snapshotAt(n))
	}
	events.add(event{at: now.Add(-time.Minute), kind: eventKind{badge: "master down", tone: toneBad}, subject: "m:3",
		detail: "refused"})
	return p
}

func get(p *Page, method, path, host string) *httptest.ResponseRecorder {
	answer := httptest.NewRecorder()
	request := httptest.NewRequest(method, path, nil)
	if host != "" {
		request.Host = host
	}
	p.ServeHTTP(answer, request)
	return answer
}

// TestGolden compares the responses with testdata. REDLOCK_GOLDEN=1 rewrites the files.
func TestGolden(t *testing.T) {
	p := newPage(true)
	for name, path := range map[string]string{"status.json": "/status/v1?samples=1",
		"locks.json": "/status/v1/locks?match=a*&db=3"} {
		answer := get(p, "GET", path, "127.0.0.1:9380")
		var indentedJSON bytes.Buffer
		if err := json.Indent(&indentedJSON, answer.Body.Bytes(), "", "  "); err != nil || answer.Code != 200 {
			t.Fatalf("%s: got %d, %v, %s", path, answer.Code, err, answer.Body)
		}
		got := regexp.MustCompile(`"at": \d{13}`).ReplaceAllString(indentedJSON.String(), `"at": 1800000000000`)
		got = regexp.MustCompile(`ready in \w+`).ReplaceAllString(got, "ready in 33s")
		file := filepath.Join("testdata", name)
		if os.Getenv("REDLOCK_GOLDEN") == "1" {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if want, err := os.ReadFile(file); err != nil || got != string(want) {
			t.Errorf("%s: %v, got\n%s\nwant\n%s", path, err, got, want)
		}
	}
}

// TestFieldDocumentation checks that docs/status.md has each field.
func TestFieldDocumentation(t *testing.T) {
	page, err := os.ReadFile("../../docs/status.md")
	if err != nil {
		t.Fatal(err)
	}
	var walk func(reflect.Type)
	walk = func(of reflect.Type) {
		for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
			of = of.Elem()
		}
		if of.Kind() != reflect.Struct {
			return
		}
		for field := range of.Fields() {
			name := field.Tag.Get("json")
			if !regexp.MustCompile("`" + name + "(\\[\\])?`").Match(page) {
				t.Errorf("there is no `%s`", name)
			}
			walk(field.Type)
		}
	}
	walk(reflect.TypeFor[statusView]())
	walk(reflect.TypeFor[locksView]())
}

// TestPages checks the response to each kind of request.
func TestPages(t *testing.T) {
	open, closed := newPage(true), newPage(false)
	for _, c := range []struct {
		page               *Page
		method, path, host string
		code               int
		wantBody           string
	}{
		{open, "GET", "/", "", 200, "<!doctype html>"},
		{open, "GET", "/", "127.0.0.1:9380", 200, ""},
		{open, "GET", "/status/page.js", "", 200, "import"},
		{open, "GET", "/status/plot.js", "", 200, ""},
		{open, "GET", "/status/page.css", "", 200, ":root"},
		{open, "GET", "/status/icon.svg", "", 200, "<svg"},
		{open, "GET", "/status/", "", 404, ""},
		{open, "GET", "/status/index.html", "", 404, ""},
		{open, "GET", "/status/../page.js", "", 307, ""},
		{open, "GET", "/status/v2", "", 404, ""},
		{open, "POST", "/status/v1", "", 405, ""},
		{open, "OPTIONS", "/status/v1", "", 405, ""},
		{open, "DELETE", "/status/v1/locks", "", 405, ""},
		{open, "GET", "/status/v1?samples=-1", "", 400, ""},
		{open, "GET", "/status/v1?events=x", "", 400, ""},
		{open, "GET", "/status/v1?samples=99999999999999999999", "", 400, ""},
		{open, "GET", "/status/v1?samples=2147483647&events=2147483647", "", 200, `"locks":true`},
		{open, "GET", "/status/v1/locks?db=16", "", 400, ""},
		{open, "GET", "/status/v1/locks?db=x", "", 400, ""},
		{open, "GET", "/status/v1/locks?match=" + strings.Repeat("*", maxGlob+1), "", 400, ""},
		{open, "GET", "/status/v1/locks", "", 200, `"key":"\u003cscript\u003e"`},
		{closed, "GET", "/status/v1", "", 200, `"locks":false`},
		{closed, "GET", "/status/v1/locks", "", 403, "admin-locks"},
	} {
		host := c.host
		if host == "" {
			host = "localhost"
		}
		answer := get(c.page, c.method, c.path, host)
		if answer.Code != c.code || !strings.Contains(answer.Body.String(), c.wantBody) {
			t.Errorf("%s %s of %q: got %d, %s", c.method, c.path, c.host, answer.Code, answer.Body)
		}
		h := answer.Result().Header
		for name, want := range map[string]string{
			"Content-Security-Policy": contentSecurityPolicy, "X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff",
			"Cross-Origin-Resource-Policy": "same-origin", "Cache-Control": "no-store", "Access-Control-Allow-Origin": "",
		} {
			if got := h.Get(name); got != want {
				t.Errorf("%s: %s is %q", c.path, name, got)
			}
		}
	}
	if strings.Contains(contentSecurityPolicy, "unsafe") {
		t.Error("the policy lets inline scripts run")
	}
}

// TestAssets checks that no file turns text into markup, has inline code, or names another host.
func TestAssets(t *testing.T) {
	names, err := fs.Glob(assets, "assets/*")
	if err != nil || len(names) < 5 {
		t.Fatal(names, err)
	}
	never := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacent|document\.write|\beval\(|new Function|\sstyle=|\son[a-z]+=|<style|<script>|https?://`)
	for _, name := range names {
		text, err := assets.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		found := never.FindAllString(strings.ReplaceAll(string(text), "http://www.w3.org/2000/svg", ""), -1)
		if len(found) > 0 {
			t.Errorf("%s has %q", name, found)
		}
	}
}

// TestRun checks that Run takes samples until its context ends.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPage(false)
		p.opts.Now = time.Now
		before := p.history.sampleCount()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); p.Run(ctx) }()
		time.Sleep(10*sampleInterval + sampleInterval/2)
		cancel()
		<-ended
		if got := p.history.sampleCount() - before; got != 11 {
			t.Errorf("%d samples", got)
		}
	})
}

var _ http.Handler = (*Page)(nil)
