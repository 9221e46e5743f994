package tracking

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"redlock-proxy/commands/lockkeys/keyspace"
	"redlock-proxy/internal/redistest"
	"redlock-proxy/quorum"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// masters simulates the masters: their keys, and their reports.
type masters struct {
	mu     sync.Mutex
	values map[quorum.Key]quorum.Snapshot
	marks  map[*fakeMark]bool
	// reportDuringIsWatched, if it is not nil, is the report of a mark while IsWatched is called.
	// It simulates a change that a master reports at that moment.
	reportDuringIsWatched *quorum.Report
	deadlocked            bool // a report waited for the caller of IsWatched
	unwatched             bool
	readErr               error
	reads                 int
}

type fakeMark struct {
	masters *masters
	key     quorum.Key
	notify  func(quorum.Report)
}

func (m *fakeMark) Settled() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

func (m *fakeMark) IsWatched() bool {
	m.masters.mu.Lock()
	report, unwatched := m.masters.reportDuringIsWatched, m.masters.unwatched
	m.masters.reportDuringIsWatched = nil
	m.masters.mu.Unlock()
	if report != nil {
		notified := make(chan struct{})
		go func() {
			m.notify(*report)
			close(notified)
		}()
		select {
		case <-notified:
		case <-time.After(5 * time.Second): // the report waits for the caller
			m.masters.mu.Lock()
			m.masters.deadlocked = true
			m.masters.mu.Unlock()
		}
	}
	return !unwatched
}

func (m *fakeMark) Stop() {
	m.masters.mu.Lock()
	defer m.masters.mu.Unlock()
	delete(m.masters.marks, m)
}

func (s *masters) mark(key quorum.Key, notify func(quorum.Report)) Mark {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := &fakeMark{s, key, notify}
	s.marks[m] = true
	return m
}

func (s *masters) read(_ context.Context, keys []quorum.Key) ([]quorum.Snapshot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	var snapshots []quorum.Snapshot
	for _, key := range keys {
		snapshots = append(snapshots, s.values[key])
	}
	return snapshots, s.readErr
}

// put sets a value on the masters, and makes the marks of the key send the reports.
func (s *masters) put(key, value string, reports ...quorum.Report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.values[keyOnMasters(key)] = quorum.Snapshot{Present: value != "", Value: value, TimeLeft: time.Hour}
	for m := range s.marks {
		for _, report := range reports {
			if m.key == keyOnMasters(key) {
				m.notify(report)
			}
		}
	}
}

func keyOnMasters(key string) quorum.Key { return quorum.Key{Name: key} }

// fixture holds a client of a hub on simulated masters.
type fixture struct {
	t *testing.T
	*masters
	hub          *Hub
	client       *Client
	reportedKeys chan []string
}

func newFixture(t *testing.T, mode Mode) *fixture {
	s := &masters{values: map[quorum.Key]quorum.Snapshot{}, marks: map[*fakeMark]bool{}}
	hub := NewHub(Options{Mark: s.mark, Read: s.read, Logger: slog.New(slog.DiscardHandler)})
	b := &fixture{t: t, masters: s, hub: hub}
	t.Cleanup(func() {
		if len(s.marks) > 0 || b.client.Size() > 0 {
			t.Errorf("%d marks and %d bytes are left", len(s.marks), b.client.Size())
		}
	})
	b.client, b.reportedKeys = b.newClient(mode)
	return b
}

func (b *fixture) newClient(mode Mode) (*Client, chan []string) {
	reported := make(chan []string, 1000)
	c := b.hub.NewClient(func(_ context.Context, keys []string) {
		slices.Sort(keys)
		reported <- keys
	})
	c.SetMode(mode)
	b.t.Cleanup(c.Close)
	return c, reported
}

func entryOf(value string) keyspace.Entry {
	return keyspace.Entry{Present: value != "", Value: value, RemainingTTL: time.Hour}
}

// readKey lets the client read a key with this value.
func (b *fixture) readKey(key, value string) { readKey(b.client, key, value) }

func readKey(c *Client, key, value string) {
	run := c.Begin(0, []string{key}, keyOnMasters)
	run.End(map[string]keyspace.Entry{key: entryOf(value)}, nil, time.Now())
}

// editKey lets the client change a key, and also read it if alsoRead is true.
func (b *fixture) editKey(key, before, after string, alsoRead bool) {
	run := b.client.Begin(0, []string{key}, keyOnMasters)
	b.put(key, after, quorum.ReportSomeChanged, quorum.ReportQuorumChanged)
	read := map[string]keyspace.Entry{}
	if alsoRead {
		read[key] = entryOf(after)
	}
	run.End(read, []keyspace.Edit{{Key: key, Before: entryOf(before), After: entryOf(after)}}, time.Now())
}

// awaitIdle waits until the Client has no work.
func (b *fixture) awaitIdle() {
	b.t.Helper()
	redistest.Await(b.t, "the client is idle", func() bool {
		b.client.mu.Lock()
		defer b.client.mu.Unlock()
		return !b.client.running
	})
}

// checkReported fails the test unless the Client has by now reported exactly these keys, in any
// number of messages.
func (b *fixture) checkReported(want ...string) {
	b.t.Helper()
	b.awaitIdle()
	var got []string
	for len(b.reportedKeys) > 0 {
		got = append(got, <-b.reportedKeys...)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		b.t.Errorf("reported %v, want %v", got, want)
	}
}

var modeOn = Mode{On: true}

// TestNotifications checks that the Client reports a change once, and reports no other event.
func TestNotifications(t *testing.T) {
	b := newFixture(t, modeOn)
	b.put("k", "1")
	b.readKey("k", "1")
	b.checkReported()
	b.put("k", "1", quorum.ReportSomeChanged) // a take that was undone
	b.checkReported()
	b.put("k", "1", quorum.ReportUnwatched)
	b.checkReported()
	b.put("k", "2", quorum.ReportSomeChanged)
	b.checkReported("k")
	b.put("k", "3", quorum.ReportQuorumChanged)
	b.checkReported()

	b.readKey("k", "2") // the key changes before the Client sets its mark
	b.checkReported("k")
	b.readKey("k", "3")
	b.put("k", "4")
	b.readKey("k", "4") // no mark has reported the change of the key
	b.awaitIdle()
	b.checkReported("k")
	b.put("k", "", quorum.ReportQuorumChanged)
	b.checkReported("k")
}

// TestReportDuringCheck checks a report that arrives while a check calls IsWatched. The check has
// read the key before, so another check must follow.
func TestReportDuringCheck(t *testing.T) {
	for name, report := range map[string]quorum.Report{"some changed": quorum.ReportSomeChanged, "changes": quorum.ReportQuorumChanged,
		"unwatched": quorum.ReportUnwatched} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t, modeOn)
			b.put("k", "a")
			b.mu.Lock()
			b.reportDuringIsWatched = &report
			b.mu.Unlock()
			b.readKey("k", "a")
			b.checkReported()
			b.mu.Lock()
			deadlocked, reads := b.deadlocked, b.masters.reads
			b.mu.Unlock()
			if deadlocked || reads != 2 {
				t.Errorf("stuck %v, %d reads, want 2", deadlocked, reads)
			}
			b.put("k", "b", quorum.ReportQuorumChanged)
			b.checkReported("k")
		})
	}
}

// TestUnknownState checks that the Client notifies its client of the keys of a failed command as
// soon as the masters answer again. Until then, it notifies the client from time to time.
func TestUnknownState(t *testing.T) {
	b := newFixture(t, modeOn)
	fail := func() { b.client.Begin(0, []string{"k"}, keyOnMasters).Fail(time.Now()) }
	fail() // the masters work again
	b.checkReported("k")
	b.put("k", "a")
	b.readKey("k", "a")
	b.checkReported()
	b.readErr = errors.New("no quorum")
	for range 3 {
		fail()
		b.checkReported("k")
	}
	b.client.SetMode(Mode{On: true, OptIn: true})
	fail()
	b.checkReported()
}

// TestOwnChanges checks that the Client reports its client's own changes, unless NOLOOP is set or
// the reply shows the change.
func TestOwnChanges(t *testing.T) {
	for _, noLoop := range []bool{false, true} {
		b := newFixture(t, Mode{On: true, NoLoop: noLoop})
		b.put("k", "1")
		b.readKey("k", "1")
		b.checkReported()
		b.editKey("k", "1", "2", false)
		if noLoop {
			b.checkReported()
		} else {
			b.checkReported("k")
		}
		b.readKey("k", "2")
		b.editKey("k", "2", "2", true) // an extension, by a script that reads
		b.checkReported()
		b.editKey("k", "of another", "3", true) // another client has changed the key since
		b.checkReported("k")
		b.put("k", "", quorum.ReportQuorumChanged)
		b.checkReported("k")
	}
}

// TestForgetDuringWait checks a goroutine that waits for the end of a client's own command. It
// must end with the command, even if nothing is left to report.
func TestForgetDuringWait(t *testing.T) {
	b := newFixture(t, Mode{On: true, NoLoop: true})
	b.put("k", "1")
	b.readKey("k", "1")
	b.awaitIdle()
	run := b.client.Begin(0, []string{"k"}, keyOnMasters)
	b.put("k", "2", quorum.ReportQuorumChanged)
	redistest.Await(t, "the goroutine was woken", func() bool { return len(b.client.wakeSignal) == 0 })
	// The goroutine has seen that the client's command uses the key.
	time.Sleep(10 * time.Millisecond)
	run.End(nil, []keyspace.Edit{{Key: "k", Before: entryOf("1"), After: entryOf("2")}}, time.Now())
	b.checkReported()
}

// TestUnwatchedKeys checks that the Client immediately reports keys that it cannot watch or read.
func TestUnwatchedKeys(t *testing.T) {
	b := newFixture(t, modeOn)
	b.put("k", "1")
	b.unwatched = true
	b.readKey("k", "1")
	b.checkReported("k")
	b.readKey("k", "1") // a moment later
	b.checkReported("k")
	b.mu.Lock()
	b.unwatched, b.readErr = false, errors.New("no quorum")
	b.mu.Unlock()
	b.readKey("k", "1")
	b.checkReported("k")
}

// TestModes checks the reads that each mode remembers.
func TestModes(t *testing.T) {
	for text, want := range map[string][2]bool{ // remembers without CLIENT CACHING, and with it
		"ON": {true, true}, "OFF": {}, "ON OPTIN": {false, true}, "ON OPTOUT NOLOOP": {true, false},
		"ON BCAST PREFIX a": {}, "ON REDIRECT 5": {},
	} {
		words := append([]string{"CLIENT", "TRACKING"}, fields(text)...)
		mode, errText := Parse(words)
		if got := [2]bool{mode.remembers(false), mode.remembers(true)}; errText != "" || got != want {
			t.Errorf("%s: %v %q", text, got, errText)
		}
	}
	for text, want := range map[string]string{
		"": "ERR wrong number of arguments for 'client|tracking' command", "maybe": "ERR syntax error",
		"ON what": "ERR syntax error", "ON PREFIX": "ERR syntax error",
		"ON PREFIX a": errPrefix, "ON OPTIN OPTOUT": errBothOpts, "ON BCAST OPTIN": errOptsAndBC,
	} {
		if _, errText := Parse(append([]string{"CLIENT", "TRACKING"}, fields(text)...)); errText != want {
			t.Errorf("%q: %q", text, errText)
		}
	}
	var nilClient *Client
	if nilClient.ClearCaching(); nilClient.CachingRequested() || nilClient.Mode().On || nilClient.Begin(0, nil, keyOnMasters).Remembers() {
		t.Error("a client without CLIENT TRACKING tracks keys")
	}
	nilClient.Close()
}

func fields(text string) (words []string) {
	for _, c := range []byte(text) {
		if len(words) == 0 || c == ' ' {
			words = append(words, "")
		}
		if c != ' ' {
			words[len(words)-1] += string(c)
		}
	}
	return words
}

// TestModeOff checks that CLIENT TRACKING off forgets the keys.
func TestModeOff(t *testing.T) {
	b := newFixture(t, modeOn)
	b.put("k", "1")
	b.readKey("k", "1")
	b.awaitIdle()
	b.client.SetMode(Mode{})
	b.put("k", "2", quorum.ReportQuorumChanged)
	b.checkReported()
}

// TestPanic checks that after a panic the Client notifies its client that everything may have
// changed.
func TestPanic(t *testing.T) {
	b := newFixture(t, modeOn)
	b.hub.opts.Read = func(context.Context, []quorum.Key) ([]quorum.Snapshot, error) { panic("a mistake") }
	b.readKey("k", "1")
	if got := <-b.reportedKeys; got != nil {
		t.Errorf("reported %v", got)
	}
}

// TestInvalidation compares the message with that of Redis.
func TestInvalidation(t *testing.T) {
	if got := string(Invalidation([]string{"k"})); got != ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n" {
		t.Errorf("%q", got)
	}
	if got := string(Invalidation(nil)); got != ">2\r\n$10\r\ninvalidate\r\n_\r\n" {
		t.Errorf("%q", got)
	}
}

// TestInvalidateAll checks that InvalidateAll notifies each tracking client once that everything
// may have changed, and forgets its keys.
func TestInvalidateAll(t *testing.T) {
	b := newFixture(t, modeOn)
	_, broadcastReports := b.newClient(Mode{On: true, Broadcast: true})
	off, offReports := b.newClient(modeOn)
	off.SetMode(Mode{})
	closed, closedReports := b.newClient(modeOn)
	closed.Close()
	_, redirectedReports := b.newClient(Mode{On: true, Redirected: true})
	b.put("k", "1")
	b.readKey("k", "1")
	b.awaitIdle()
	b.hub.InvalidateAll()
	for _, reported := range []chan []string{b.reportedKeys, broadcastReports} {
		select {
		case got := <-reported:
			if got != nil {
				t.Errorf("reported %v", got)
			}
		case <-time.After(30 * time.Second):
			t.Fatal("a client is not notified")
		}
	}
	b.put("k", "2", quorum.ReportQuorumChanged)
	b.checkReported()
	if len(offReports)+len(closedReports)+len(redirectedReports)+len(broadcastReports) > 0 || b.client.Size() > 0 {
		t.Errorf("reported twice, or to a client that does not track; %d bytes are kept", b.client.Size())
	}
	b.readKey("k", "2") // the client can track keys again
	b.put("k", "3", quorum.ReportQuorumChanged)
	b.checkReported("k")
}
