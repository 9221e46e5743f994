package proxy

import (
	"errors"
	"net"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"
)

// told is what a poller tells of: which connection, and whether it has ended.
type told struct {
	tag   tag
	ended bool
}

// watched is a poller, and both ends of a connection: the nearer one is in the set.
type watched struct {
	*testing.T
	poller *poller
	near   *net.TCPConn
	far    *net.TCPConn
	raw    syscall.RawConn
}

func newWatched(t *testing.T, name tag, what interest) watched {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	far, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	near, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	p, err := newPoller()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { far.Close(); near.Close(); p.close() })
	w := watched{T: t, poller: p, near: near.(*net.TCPConn), far: far.(*net.TCPConn)}
	if w.raw, err = w.near.SyscallConn(); err != nil {
		t.Fatal(err)
	}
	if err := p.add(w.raw, name, what); err != nil {
		t.Fatal(err)
	}
	return w
}

// expect waits for exactly these, and for nothing where there are none.
func (w watched) expect(want ...told) {
	w.Helper()
	var got []told
	limit := time.Now().Add(patience)
	if len(want) == 0 {
		limit = time.Now() // what has happened is there at once
	}
	for len(got) < max(1, len(want)) {
		if err := w.poller.wait(limit, func(t tag, ended bool) { got = append(got, told{t, ended}) }); err != nil {
			if len(want) > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
				w.Errorf("wait: %v", err)
			}
			break
		}
	}
	if !slices.Equal(got, want) {
		w.Errorf("told %v, want %v", got, want)
	}
}

func (w watched) send() {
	w.Helper()
	if _, err := w.far.Write([]byte("x")); err != nil {
		w.Fatal(err)
	}
}

// The end is told apart from the bytes before it, and once.
func TestPollerTellsOfTheEnd(t *testing.T) {
	name := tagOf(1<<40+7, 65535)
	for way, leave := range leavings {
		t.Run(way, func(t *testing.T) {
			w := newWatched(t, name, theEnd)
			w.send()
			w.expect()
			if err := leave(w.far); err != nil {
				t.Fatal(err)
			}
			w.expect(told{name, true})
			w.expect()
			if err := w.poller.change(w.raw, name, theEnd); err != nil {
				t.Fatal(err)
			}
			w.expect(told{name, true}) // asked anew, it is told anew
		})
	}
	if name.client() != 1<<40+7 || name.dial() != 65535 {
		t.Errorf("the tag is of client %d, connection %d", name.client(), name.dial())
	}
}

// Anything is told once, also what was there before.
func TestPollerTellsOfAnything(t *testing.T) {
	w := newWatched(t, 5, theEnd)
	w.send()
	w.expect()
	for range 3 {
		if err := w.poller.change(w.raw, 5, anything); err != nil {
			t.Fatal(err)
		}
		w.expect(told{5, false})
		w.send()
		w.expect()
	}
	w.far.Close()
	if err := w.poller.change(w.raw, 5, anything); err != nil {
		t.Fatal(err)
	}
	w.expect(told{5, true})
}

func TestPollerThatIsClosedWakes(t *testing.T) {
	w := newWatched(t, 5, anything)
	ended := make(chan error)
	go func() { ended <- w.poller.wait(time.Time{}, func(tag, bool) {}) }()
	if err := w.poller.close(); err != nil {
		t.Fatal(err)
	}
	if err := await(t, "the end of the wait", ended); !errors.Is(err, os.ErrClosed) {
		t.Errorf("ended by %v", err)
	}
}

// A session is asked to rest when nothing happened between two looks, and once.
func TestStir(t *testing.T) {
	var s stir
	for i, want := range []bool{false, true, false, false} {
		if i == 0 {
			s.happened()
		}
		if got := s.looked(); got != want {
			t.Errorf("look %d: %v", i, got)
		}
	}
	s.happened()
	s.looked()
	s.happened()
	if s.looked() {
		t.Error("it was not quiet between these looks")
	}
}
