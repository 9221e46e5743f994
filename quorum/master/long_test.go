package master

import (
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"redlock-proxy/internal/resp"
	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/register"
)

// batch is what a lane sends next, by the first of the keys.
func (l *lane) batch() (keys []string) {
	l.take()
	for _, o := range l.flight.ops {
		keys = append(keys, o.do.Keys()[0])
	}
	return keys
}

// holding answers the flight as a master that has so many bytes under each key.
func (l *lane) holding(bytes map[string]int) {
	for i, o := range l.flight.ops {
		var found []cell.Found
		for _, key := range o.do.Keys() {
			found = append(found, cell.Found{Cell: cell.Cell{Form: cell.Plain, Value: cell.Value{Present: true, Text: strings.Repeat("x", bytes[key])}}})
		}
		l.flight.replies[i] = reply{State: register.Counted, Answer: cell.Answer{Did: true, Found: found}}
	}
	l.learn()
	l.flight.unload()
}

func reading(keys ...string) *op {
	return &op{change: newChange(0, cell.Read{Names: keys}), round: newRound(1, nil)}
}

// TestShortOpsPassLongOnes: once it is known that much is under a key, what is about it leaves in
// batches of its own, in turn with the others; and no longer where it is gone.
func TestShortOpsPassLongOnes(t *testing.T) {
	l := newLane(nil, 0, nil)
	push := func(keys ...string) {
		t.Helper()
		if _, err := l.push(reading(keys...), false); err != nil {
			t.Fatal(err)
		}
	}
	want := func(keys ...string) {
		t.Helper()
		if got := l.batch(); !slices.Equal(got, keys) {
			t.Fatalf("sent %v, want %v", got, keys)
		}
	}
	held := map[string]int{"long 1": 600_000, "long 2": 600_000, "long 3": 100_000, "short": 1_000}
	push("long 1")
	push("long 2")
	push("long 3")
	want("long 1", "long 2", "long 3") // nothing is known of them
	l.holding(held)
	for range 2 {
		push("long 1")
		push("long 2")
		push("long 3")
		push("short")
	}
	want("short", "short")
	l.holding(held)
	push("short")
	want("long 1")
	l.holding(held)
	want("short")
	l.holding(held)
	want("long 2", "long 3")
	l.holding(held)
	want("long 1")
	l.holding(held)
	push("short")
	want("short") // it was behind others for one batch of long ones
	l.holding(held)
	delete(held, "long 2")
	want("long 2", "long 3")
	l.holding(held)
	push("long 1")
	push("long 2")
	want("long 2") // it is short now
	l.holding(held)
	want("long 1")
	l.holding(held)
	want()
	if claimed, _ := l.push(reading("short"), false); !claimed {
		t.Error("the lane is not idle")
	}
}

// TestWhatIsWrittenIsLong: a long command waits as what is about its key then does.
func TestWhatIsWrittenIsLong(t *testing.T) {
	l := newLane(nil, 0, nil)
	for _, o := range []*op{
		{change: newChange(0, cell.Accept{Name: "long", Value: cell.Value{Present: true, Text: strings.Repeat("x", 900_000)}}), round: newRound(1, nil)},
		reading("short"),
	} {
		if _, err := l.push(o, false); err != nil {
			t.Fatal(err)
		}
	}
	if got := l.batch(); !slices.Equal(got, []string{"short"}) {
		t.Errorf("sent %v", got)
	}
	l.flight.unload()
	if got := l.batch(); !slices.Equal(got, []string{"long"}) {
		t.Errorf("sent %v", got)
	}
	l.flight.replies[0] = reply{State: register.Counted, Answer: cell.Answer{Did: true}}
	l.learn()
	if n := l.sizes.around(reading("long")); n < 900_000 {
		t.Errorf("the key is taken to hold %d bytes", n)
	}
}

// TestTooLong: what had no room is not asked for again, also where each part of it had.
func TestTooLong(t *testing.T) {
	l := newLane(nil, 0, nil)
	keys := slices.Repeat([]string{""}, 1000)
	for i := range keys {
		keys[i] = strings.Repeat("k", i+1)
	}
	if _, err := l.push(reading(keys...), false); err != nil {
		t.Fatal(err)
	}
	l.take()
	answer := []any{int64(1)}
	for range keys {
		answer = append(answer, resp.Skipped(30_000), int64(1000))
	}
	l.flight.replies[0] = decode(cell.Read{Names: keys}, answer)
	if got := l.flight.replies[0]; got.State != register.Uncounted || !errors.Is(got.Err, ErrTooLong) {
		t.Errorf("decoded %v, %v", got.State, got.Err)
	}
	l.learn()
	if _, err := l.push(reading(keys...), false); !errors.Is(err, ErrTooLong) {
		t.Errorf("asked for it again: %v", err)
	}
	if _, err := l.push(reading(keys[:300]...), false); err != nil {
		t.Errorf("a part of it: %v", err)
	}
}

// TestTooLongReleases: so it is with what several releases in one script answer.
func TestTooLongReleases(t *testing.T) {
	rs := releases{of: []int{0, 1}, all: cell.Releases{{Name: "a"}, {Name: "b"}}}
	replies := make([]reply, 2)
	rs.decode([]any{int64(0), resp.Skipped(900_000), int64(1000), int64(1)}, replies)
	for i, got := range replies {
		if got.State != register.Uncounted || !errors.Is(got.Err, ErrTooLong) {
			t.Errorf("release %d: %v, %v", i, got.State, got.Err)
		}
	}
}

// TestNothingPassesWhatIsLong: an op on a key that holds little by now does not pass one on the
// same key that still waits.
func TestNothingPassesWhatIsLong(t *testing.T) {
	l := newLane(nil, 0, nil)
	push := func(key string) {
		if _, err := l.push(reading(key), false); err != nil {
			t.Fatal(err)
		}
	}
	held := map[string]int{"a": 900_000, "b": 900_000}
	push("a")
	push("b")
	l.batch()
	l.holding(held)
	push("a")
	push("b")
	push("a") // as a take behind its release
	if got := l.batch(); !slices.Equal(got, []string{"a"}) {
		t.Fatalf("sent %v", got)
	}
	l.holding(map[string]int{})
	push("a")
	for _, want := range [][]string{{"b"}, {"a"}, {"a"}} {
		if got := l.batch(); !slices.Equal(got, want) {
			t.Fatalf("sent %v, want %v", got, want)
		}
		l.holding(held)
	}
}

// TestGoesOn: a master in the midst of a long answer is waited for as long as enough of it comes.
func TestGoesOn(t *testing.T) {
	const limit = time.Second
	conn, other := net.Pipe()
	defer other.Close()
	defer conn.Close()
	now := time.Now()
	k := &redisLink{transport: &redisTransport{timeout: limit}, conn: conn, flight: &Flight{until: now, excused: true}}
	for i, came := range []int{2 * steady, steady, steady - 1} {
		now = k.flight.until
		k.came += came
		goes := k.waitsOn(now.Add(time.Millisecond))
		if want := came >= steady; goes != want {
			t.Errorf("after %d bytes, time %d: goes on %v, want %v", came, i, goes, want)
		}
	}
}
