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

// masters simulate the masters: their keys, and their reports.
type masters struct {
	mu    sync.Mutex
	holds map[quorum.Key]quorum.Look
	marks map[*fakeMark]bool
	// between, if it is not nil, is the report of a mark while Watched is called. It simulates a
	// change that a master reports at that moment.
	between   *quorum.Report
	stuck     bool // marks never settle
	unwatched bool
	failing   error
	reads     int
}

type fakeMark struct {
	of   *masters
	key  quorum.Key
	tell func(quorum.Report)
}

func (m *fakeMark) Settled() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

func (m *fakeMark) Watched() bool {
	m.of.mu.Lock()
	news, unwatched := m.of.between, m.of.unwatched
	m.of.between = nil
	m.of.mu.Unlock()
	if news != nil {
		told := make(chan struct{})
		go func() {
			m.tell(*news)
			close(told)
		}()
		select {
		case <-told:
		case <-time.After(5 * time.Second): // the report waits for the caller
			m.of.mu.Lock()
			m.of.stuck = true
			m.of.mu.Unlock()
		}
	}
	return !unwatched
}

func (m *fakeMark) Stop() {
	m.of.mu.Lock()
	defer m.of.mu.Unlock()
	delete(m.of.marks, m)
}

func (s *masters) mark(key quorum.Key, tell func(quorum.Report)) Watch {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := &fakeMark{s, key, tell}
	s.marks[m] = true
	return m
}

func (s *masters) read(_ context.Context, keys []quorum.Key) ([]quorum.Look, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	var all []quorum.Look
	for _, key := range keys {
		all = append(all, s.holds[key])
	}
	return all, s.failing
}

// put sets the value on the masters, and makes the marks report it.
func (s *masters) put(key, value string, news ...quorum.Report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holds[at(key)] = quorum.Look{Present: value != "", Value: value, Left: time.Hour}
	for m := range s.marks {
		for _, n := range news {
			if m.key == at(key) {
				m.tell(n)
			}
		}
	}
}

func at(key string) quorum.Key { return quorum.Key{Name: key} }

// bench is a client of a hub on simulated masters.
type bench struct {
	t *testing.T
	*masters
	hub    *Hub
	client *Client
	told   chan []string
}

func newBench(t *testing.T, mode Mode) *bench {
	s := &masters{holds: map[quorum.Key]quorum.Look{}, marks: map[*fakeMark]bool{}}
	b := &bench{t: t, masters: s, hub: NewHub(Options{Mark: s.mark, Read: s.read, Logger: slog.New(slog.DiscardHandler)})}
	t.Cleanup(func() {
		if len(s.marks) > 0 || b.client.Size() > 0 {
			t.Errorf("%d marks, %d bytes are left", len(s.marks), b.client.Size())
		}
	})
	b.client, b.told = b.join(mode)
	return b
}

func (b *bench) join(mode Mode) (*Client, chan []string) {
	told := make(chan []string, 1000)
	c := b.hub.Client(func(_ context.Context, keys []string) {
		slices.Sort(keys)
		told <- keys
	})
	c.Set(mode)
	b.t.Cleanup(c.Close)
	return c, told
}

func entryOf(value string) keyspace.Entry {
	return keyspace.Entry{Present: value != "", Value: value, Left: time.Hour}
}

// reads lets the client read a key with this value.
func (b *bench) reads(key, value string) { reads(b.client, key, value) }

func reads(c *Client, key, value string) {
	turn := c.Begin(0, []string{key}, at)
	turn.End(map[string]keyspace.Entry{key: entryOf(value)}, nil, time.Now())
}

// edits lets the client change a key, and read it if reads is set.
func (b *bench) edits(key, was, now string, reads bool) {
	turn := b.client.Begin(0, []string{key}, at)
	b.put(key, now, quorum.SomeChanged, quorum.Changes)
	read := map[string]keyspace.Entry{}
	if reads {
		read[key] = entryOf(now)
	}
	turn.End(read, []keyspace.Edit{{Key: key, Before: entryOf(was), After: entryOf(now)}}, time.Now())
}

// rests waits until the Client has no work.
func (b *bench) rests() {
	b.t.Helper()
	redistest.Await(b.t, "it rests", func() bool {
		b.client.mu.Lock()
		defer b.client.mu.Unlock()
		return !b.client.running
	})
}

// hears fails the test unless exactly these keys were reported by now, in any number of messages.
func (b *bench) hears(want ...string) {
	b.t.Helper()
	b.rests()
	var got []string
	for len(b.told) > 0 {
		got = append(got, <-b.told...)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		b.t.Errorf("reported %v, want %v", got, want)
	}
}

var on = Mode{On: true}

// TestNotifications checks that a change is reported once, and that other events are not reported.
func TestNotifications(t *testing.T) {
	b := newBench(t, on)
	b.put("k", "1")
	b.reads("k", "1")
	b.hears()
	b.put("k", "1", quorum.SomeChanged) // a take that was undone
	b.hears()
	b.put("k", "1", quorum.Unwatched)
	b.hears()
	b.put("k", "2", quorum.SomeChanged)
	b.hears("k")
	b.put("k", "3", quorum.Changes)
	b.hears()

	b.reads("k", "2") // the key has changed before the mark is set
	b.hears("k")
	b.reads("k", "3")
	b.put("k", "4")
	b.reads("k", "4") // the first value was not reported to have changed
	b.rests()
	b.hears("k")
	b.put("k", "", quorum.Changes)
	b.hears("k")
}

// TestNewsDuringCheck checks a report that arrives while a check calls Watched. The check has read
// the key before, so another check must follow.
func TestNewsDuringCheck(t *testing.T) {
	for name, news := range map[string]quorum.Report{"stirred": quorum.SomeChanged, "changes": quorum.Changes,
		"unwatched": quorum.Unwatched} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, on)
			b.put("k", "a")
			b.mu.Lock()
			b.between = &news
			b.mu.Unlock()
			b.reads("k", "a")
			b.hears()
			b.mu.Lock()
			stuck, looks := b.stuck, b.masters.reads
			b.mu.Unlock()
			if stuck || looks != 2 {
				t.Errorf("stuck %v, %d looks, want 2", stuck, looks)
			}
			b.put("k", "b", quorum.Changes)
			b.hears("k")
		})
	}
}

// TestUnknown checks that a client is notified of the keys of a failed command when they can be
// read again, and until then from time to time.
func TestUnknown(t *testing.T) {
	b := newBench(t, on)
	fail := func() { b.client.Begin(0, []string{"k"}, at).Fail(time.Now()) }
	fail() // the masters work again
	b.hears("k")
	b.put("k", "a")
	b.reads("k", "a")
	b.hears()
	b.failing = errors.New("no quorum")
	for range 3 {
		fail()
		b.hears("k")
	}
	b.client.Set(Mode{On: true, OptIn: true})
	fail()
	b.hears()
}

// TestOwnChanges checks that a client's own changes are reported, except with NOLOOP, or if the
// reply shows them.
func TestOwnChanges(t *testing.T) {
	for _, noLoop := range []bool{false, true} {
		b := newBench(t, Mode{On: true, NoLoop: noLoop})
		b.put("k", "1")
		b.reads("k", "1")
		b.hears()
		b.edits("k", "1", "2", false)
		if noLoop {
			b.hears()
		} else {
			b.hears("k")
		}
		b.reads("k", "2")
		b.edits("k", "2", "2", true) // an extension, by a script that reads
		b.hears()
		b.edits("k", "of another", "3", true) // another client has changed the key since
		b.hears("k")
		b.put("k", "", quorum.Changes)
		b.hears("k")
	}
}

// TestForgottenWhileItWaits checks that a goroutine that waits for the end of a client's own
// command ends with the command, even if nothing is left to report.
func TestForgottenWhileItWaits(t *testing.T) {
	b := newBench(t, Mode{On: true, NoLoop: true})
	b.put("k", "1")
	b.reads("k", "1")
	b.rests()
	turn := b.client.Begin(0, []string{"k"}, at)
	b.put("k", "2", quorum.Changes)
	redistest.Await(t, "it has been woken", func() bool { return len(b.client.wake) == 0 })
	time.Sleep(10 * time.Millisecond) // the goroutine has seen that the client's command uses the key
	turn.End(nil, []keyspace.Edit{{Key: "k", Before: entryOf("1"), After: entryOf("2")}}, time.Now())
	b.hears()
}

// TestUnwatchedKeys checks that keys which cannot be watched or read are reported at once.
func TestUnwatchedKeys(t *testing.T) {
	b := newBench(t, on)
	b.put("k", "1")
	b.unwatched = true
	b.reads("k", "1")
	b.hears("k")
	b.reads("k", "1") // a moment later
	b.hears("k")
	b.mu.Lock()
	b.unwatched, b.failing = false, errors.New("no quorum")
	b.mu.Unlock()
	b.reads("k", "1")
	b.hears("k")
}

// TestModes checks which reads are remembered in which mode.
func TestModes(t *testing.T) {
	for text, want := range map[string][2]bool{ // without CLIENT CACHING before, and with it
		"ON": {true, true}, "OFF": {}, "ON OPTIN": {false, true}, "ON OPTOUT NOLOOP": {true, false},
		"ON BCAST PREFIX a": {}, "ON REDIRECT 5": {},
	} {
		words := append([]string{"CLIENT", "TRACKING"}, fields(text)...)
		mode, refused := Parse(words)
		if got := [2]bool{mode.remembers(false), mode.remembers(true)}; refused != "" || got != want {
			t.Errorf("%s: %v %q", text, got, refused)
		}
	}
	for text, want := range map[string]string{
		"": "ERR wrong number of arguments for 'client|tracking' command", "maybe": "ERR syntax error",
		"ON what": "ERR syntax error", "ON PREFIX": "ERR syntax error",
		"ON PREFIX a": errPrefix, "ON OPTIN OPTOUT": errBothOpts, "ON BCAST OPTIN": errOptsAndBC,
	} {
		if _, refused := Parse(append([]string{"CLIENT", "TRACKING"}, fields(text)...)); refused != want {
			t.Errorf("%q: %q", text, refused)
		}
	}
	var none *Client
	if none.ClearCaching(); none.CachingRequested() || none.Mode().On || none.Begin(0, nil, at).Remembers() {
		t.Error("a client without CLIENT TRACKING tracks keys")
	}
	none.Close()
}

func fields(text string) (all []string) {
	for _, one := range []byte(text) {
		if len(all) == 0 || one == ' ' {
			all = append(all, "")
		}
		if one != ' ' {
			all[len(all)-1] += string(one)
		}
	}
	return all
}

// TestOff checks that CLIENT TRACKING off forgets the keys.
func TestOff(t *testing.T) {
	b := newBench(t, on)
	b.put("k", "1")
	b.reads("k", "1")
	b.rests()
	b.client.Set(Mode{})
	b.put("k", "2", quorum.Changes)
	b.hears()
}

// TestPanic checks that after a panic the client is notified that everything may have changed.
func TestPanic(t *testing.T) {
	b := newBench(t, on)
	b.hub.opts.Read = func(context.Context, []quorum.Key) ([]quorum.Look, error) { panic("a mistake") }
	b.reads("k", "1")
	if got := <-b.told; got != nil {
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

// TestInvalidateAll checks InvalidateAll: each tracking client is notified once that everything may
// have changed, and its keys are forgotten.
func TestInvalidateAll(t *testing.T) {
	b := newBench(t, on)
	_, broadcast := b.join(Mode{On: true, Broadcast: true})
	off, none := b.join(on)
	off.Set(Mode{})
	closed, late := b.join(on)
	closed.Close()
	_, redirected := b.join(Mode{On: true, Redirected: true})
	b.put("k", "1")
	b.reads("k", "1")
	b.rests()
	b.hub.InvalidateAll()
	for _, told := range []chan []string{b.told, broadcast} {
		select {
		case got := <-told:
			if got != nil {
				t.Errorf("reported %v", got)
			}
		case <-time.After(30 * time.Second):
			t.Fatal("a client is not notified")
		}
	}
	b.put("k", "2", quorum.Changes)
	b.hears()
	if len(none)+len(late)+len(redirected)+len(broadcast) > 0 || b.client.Size() > 0 {
		t.Errorf("reported twice, or to a client that does not track; %d bytes are kept", b.client.Size())
	}
	b.reads("k", "2") // the client continues
	b.put("k", "3", quorum.Changes)
	b.hears("k")
}
