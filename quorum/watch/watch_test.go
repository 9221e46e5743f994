package watch

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"redlock-proxy/internal/redistest"
	"redlock-proxy/quorum/cell"
)

// server implements Server with a dial function, and counts the calls.
type server struct {
	dial func() (net.Conn, error)

	mu        sync.Mutex
	dialCount int
}

func (*server) Name() string { return "m" }
func (*server) IsDown() bool { return false }

func (s *server) Watch(_ context.Context, db int) (net.Conn, error) {
	s.mu.Lock()
	s.dialCount++
	s.mu.Unlock()
	conn, err := s.dial()
	if err != nil || db == 0 {
		return conn, err
	}
	_, err = conn.Write([]byte("SELECT 1\r\n"))
	if err == nil {
		_, err = conn.Read(make([]byte, len("+OK\r\n")))
	}
	return conn, err
}

// newTestWatcher returns a Watcher for these masters. It ends with the test.
func newTestWatcher(t *testing.T, servers ...Server) *Watcher {
	t.Helper()
	w := New(Options{Servers: servers, Quorum: len(servers)/2 + 1, ReplyTimeout: 2 * time.Second,
		Logger: slog.New(slog.DiscardHandler), Rand: func() float64 { return 0 }})
	t.Cleanup(w.Close)
	return w
}

// newRealWatcher returns a Watcher of one real master, the master as a server, and a client of the
// master.
func newRealWatcher(t *testing.T) (*Watcher, *server, *redistest.Client) {
	t.Helper()
	r := redistest.New(t, redistest.Options{})
	client, err := redistest.Dial(r.Addr(), 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	s := &server{dial: func() (net.Conn, error) { return net.Dial("tcp", r.Addr()) }}
	return newTestWatcher(t, s), s, client
}

// awaitVerdict waits for a verdict.
func awaitVerdict(t *testing.T, a *Alarm, want Verdict) View {
	t.Helper()
	deadline := time.After(30 * time.Second)
	for {
		v := a.View(time.Now())
		if v.Verdict == want && !v.Reading {
			return v
		}
		select {
		case <-a.Changes():
		case <-deadline:
			t.Fatalf("%+v, want verdict %d", v, want)
		}
	}
}

// pollForVerdict reads the key, and waits for a verdict.
func pollForVerdict(t *testing.T, a *Alarm, want Verdict) View {
	t.Helper()
	a.Read(time.Now())
	return awaitVerdict(t, a, want)
}

func do(t *testing.T, c *redistest.Client, words ...string) {
	t.Helper()
	reply, err := c.Do(words...)
	if failure, bad := reply.(redistest.RespError); bad {
		err = failure
	}
	if err != nil {
		t.Fatalf("%s: %v", strings.Join(words, " "), err)
	}
}

// TestChanges checks that an alarm reports each kind of change of a key on a real master, and that
// the next read finds the new state.
func TestChanges(t *testing.T) {
	w, _, client := newRealWatcher(t)
	source := cell.NewSource()
	change := cell.Value{Changes: []cell.Change{source.Change()}}
	emptyCell := cell.Cell{Form: cell.Register, Attempt: source.Attempt(), Promised: source.Ballot(2),
		Accepted: source.Ballot(1), Value: change}.String()
	for _, test := range []struct {
		name string
		do   []string
		want Verdict
	}{
		{"DEL", []string{"DEL", "k"}, Free},
		{"another value", []string{"SET", "k", "other", "PX", "60000"}, Held},
		{"a removal by ballot", []string{"SET", "k", emptyCell, "PX", "3000"}, Free},
		{"a longer lease", []string{"PEXPIRE", "k", "90000"}, Held},
		{"another type", []string{"EVAL", "redis.call('DEL','k') return redis.call('LPUSH','k','x')", "1", "k"}, Held},
		{"the end of the lease", []string{"PEXPIRE", "k", "1"}, Free},
		{"FLUSHALL", []string{"FLUSHALL"}, Free},
		{"FLUSHDB", []string{"FLUSHDB"}, Free},
	} {
		do(t, client, "SET", "k", "token", "PX", "60000")
		a := w.NewAlarm(0, "k")
		if v := pollForVerdict(t, a, Held); v.Expiry.Before(time.Now().Add(30*time.Second)) ||
			v.Expiry.After(time.Now().Add(61*time.Second)) {
			t.Errorf("%s: the end is in %v", test.name, time.Until(v.Expiry))
		}
		t.Log(test.name)
		do(t, client, test.do...)
		awaitVerdict(t, a, Changed)
		if test.name == "the end of the lease" {
			time.Sleep(2 * time.Millisecond) // until the lease has expired
		}
		pollForVerdict(t, a, test.want)
		a.Stop()
		do(t, client, "DEL", "k")
	}
}

// TestPut checks that the verdict is Held after a Put until the value changes. A Put after a change
// does not report that change again.
func TestPut(t *testing.T) {
	w, _, client := newRealWatcher(t)
	a := w.NewAlarm(0, "k")
	pollForVerdict(t, a, Free)
	for _, change := range [][]string{{"SET", "k", "y", "XX"}, {"DEL", "k"}, nil} {
		if unwatched := a.Put("x", time.Minute); len(unwatched) != 0 {
			t.Fatalf("not put on %v", unwatched)
		}
		for reading := true; reading; {
			v := a.View(time.Now())
			if reading = v.Reading; v.Verdict == Changed || v.Verdict == Free {
				t.Fatalf("%+v", v)
			}
		}
		awaitVerdict(t, a, Held)
		if got, err := client.Do("GET", "k"); err != nil || got != "x" {
			t.Errorf("the value is %v, %v", got, err)
		}
		if change != nil {
			do(t, client, change...)
			awaitVerdict(t, a, Changed)
		}
	}
	do(t, client, "ACL", "SETUSER", "default", "-set")
	a.Put("x", time.Minute)
	awaitVerdict(t, a, Unclear)
	if got := w.Statuses()[0]; got.Err != nil {
		t.Errorf("a watch without the right to write failed: %v", got.Err)
	}
	unwatchedAlarm := newTestWatcher(t, &server{dial: func() (net.Conn, error) { return nil, errors.New("away") }}).NewAlarm(0, "k")
	if unwatched := unwatchedAlarm.Put("x", time.Minute); len(unwatched) != 1 {
		t.Errorf("put on a master that is not watched; not on %v", unwatched)
	}
}

// TestDifferentDatabase checks that a key of the same name in another database is another key.
func TestDifferentDatabase(t *testing.T) {
	w, _, client := newRealWatcher(t)
	do(t, client, "SET", "k", "token")
	pollForVerdict(t, w.NewAlarm(1, "k"), Free)
	a := w.NewAlarm(0, "k")
	if v := pollForVerdict(t, a, Held); !v.Expiry.IsZero() {
		t.Errorf("a key without expiry: %+v", v)
	}
}

// TestKilledConnection checks that a watch reads all keys again after its connection was killed,
// so that it misses no change.
func TestKilledConnection(t *testing.T) {
	w, s, client := newRealWatcher(t)
	do(t, client, "MSET", "a", "x", "b", "x")
	a, b := w.NewAlarm(0, "a"), w.NewAlarm(0, "b")
	pollForVerdict(t, a, Held)
	pollForVerdict(t, b, Held)
	do(t, client, "MULTI")
	do(t, client, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
	do(t, client, "DEL", "a")
	do(t, client, "EXEC")
	awaitVerdict(t, a, Free)
	awaitVerdict(t, b, Held)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dialCount < 2 {
		t.Error("the connection was not killed")
	}
}

// TestIdleMaster checks that a watched key costs its reads, and then only PINGs.
func TestIdleMaster(t *testing.T) {
	w, _, client := newRealWatcher(t)
	for i := range 100 {
		key := "k" + strings.Repeat("x", i)
		do(t, client, "SET", key, "token")
		pollForVerdict(t, w.NewAlarm(0, key), Held)
	}
	do(t, client, "CONFIG", "RESETSTAT")
	time.Sleep(1500 * time.Millisecond) // watches send no reads meanwhile
	reply, err := client.Do("INFO", "commandstats")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.SplitSeq(reply.(string), "\r\n") {
		name, _, found := strings.Cut(line, ":")
		if expected := name == "cmdstat_ping" || name == "cmdstat_info" || strings.HasPrefix(name,
			"cmdstat_config"); found && !expected {
			t.Error(line)
		}
	}
	if got := w.Statuses()[0]; got.Keys != 100 || got.Err != nil {
		t.Errorf("%+v", got)
	}
}

// TestRefusedConnection checks a master that refuses a command of the watch. The verdict is
// Unclear, and Statuses returns the cause.
func TestRefusedConnection(t *testing.T) {
	w, _, client := newRealWatcher(t)
	for _, right := range []string{"-client|tracking", "-pttl", "-getrange"} {
		do(t, client, "ACL", "SETUSER", "default", "+@all", right)
		a := w.NewAlarm(0, "k "+right)
		a.Read(time.Now())
		awaitCondition(t, func() bool {
			err := w.Statuses()[0].Err
			return err != nil && strings.HasPrefix(err.Error(), "NOPERM")
		})
		if v := a.View(time.Now()); v.Verdict != Unclear {
			t.Errorf("%s: %+v", right, v)
		}
		a.Stop()
		w.Close()
		w = newTestWatcher(t, w.opts.Servers...)
	}
}

func awaitCondition(t *testing.T, condition func() bool) {
	t.Helper()
	redistest.Await(t, "the condition", condition)
}

const greeting = "%1\r\n+proto\r\n:3\r\n+OK\r\n"

// newFakeMaster returns a server that answers the first request with the greeting, and the first
// read with the text.
func newFakeMaster(text string) *server {
	return &server{dial: func() (net.Conn, error) {
		return redistest.DialFakeServer(greeting, text),
			nil
	}} // the greeting answers HELLO and CLIENT TRACKING
}

// TestUnexpectedMessages checks that an unexpected message of a master ends the connection, and
// that the master's state is unknown.
func TestUnexpectedMessages(t *testing.T) {
	for name, text := range map[string]string{
		"another push":            ">2\r\n$7\r\nmessage\r\n$1\r\nx\r\n",
		"keys that are none":      ">2\r\n$10\r\ninvalidate\r\n*1\r\n:1\r\n",
		"a key that is an array":  ">2\r\n$10\r\ninvalidate\r\n$1\r\nk\r\n",
		"a push without end":      ">2\r\n$10\r\ninvalidate\r\n*1000000000\r\n",
		"a push of many":          ">1000000000\r\n",
		"a long key":              ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1000000000\r\n",
		"a map without end":       "%9223372036854775807\r\n",
		"a PTTL that is none":     "$1\r\nx\r\n",
		"a value that is none":    ":5\r\n:5\r\n",
		"more answers than asked": ":5\r\n$1\r\nx\r\n:5\r\n",
		"an error":                "-LOADING Redis is loading\r\n",
		"no RESP":                 "HTTP/1.1 400 Bad Request\r\n",
	} {
		s := newFakeMaster(text)
		w := newTestWatcher(t, s)
		a := w.NewAlarm(0, "k")
		a.Read(time.Now())
		awaitCondition(t, func() bool { return w.Statuses()[0].Err != nil })
		if v := a.View(time.Now()); v.Verdict == Changed || v.Verdict == Free {
			t.Errorf("%s: %+v", name, v)
		}
		w.Close()
	}
}

// TestStaleRead checks that a watch does not lose a change that the master reports between the two
// replies to a read.
func TestStaleRead(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want Verdict
	}{
		"of that key":     {":5000\r\n>2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n$1\r\nx\r\n", Changed},
		"of all":          {":5000\r\n>2\r\n$10\r\ninvalidate\r\n_\r\n$1\r\nx\r\n", Changed},
		"of another":      {":5000\r\n>2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\no\r\n$1\r\nx\r\n", Held},
		"before the read": {">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n:5000\r\n$1\r\nx\r\n", Held},
	} {
		w := newTestWatcher(t, newFakeMaster(test.text))
		a := w.NewAlarm(0, "k")
		// The watch reads when it is connected.
		awaitCondition(t, func() bool { return w.Statuses()[0].Keys > 0 })
		t.Log(name)
		awaitVerdict(t, a, test.want)
		w.Close()
	}
}

// TestIdleWatcherMemory checks that a watch keeps no state for keys without waiters.
func TestIdleWatcherMemory(t *testing.T) {
	w, _, client := newRealWatcher(t)
	first := w.NewAlarm(0, "another")
	// While the watch connects, it may read a key again after the key has changed.
	pollForVerdict(t, first, Free)
	first.Stop()
	for range 3 {
		a, b := w.NewAlarm(0, "k"), w.NewAlarm(0, "k")
		pollForVerdict(t, a, Free)
		do(t, client, "SET", "k", "x")
		awaitVerdict(t, b, Changed) // both alarms get the report of one read
		a.Stop()
		b.Stop()
		do(t, client, "DEL", "k")
	}
	wt := w.byDB[0][0]
	wt.mu.Lock()
	defer wt.mu.Unlock()
	if len(wt.listeners) != 0 {
		t.Errorf("%d keys remain", len(wt.listeners))
	}
}

// TestLongKeys checks that a Watcher does not watch long keys.
func TestLongKeys(t *testing.T) {
	s := &server{dial: func() (net.Conn, error) { return nil, errors.New("dialled") }}
	a := newTestWatcher(t, s).NewAlarm(0, strings.Repeat("k", maxKeyLength+1))
	a.Read(time.Now())
	a.Stop()
	if a.View(time.Now()) != (View{}) || s.dialCount != 0 {
		t.Error("it is watched")
	}
}
