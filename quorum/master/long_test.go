package master

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"redlock-proxy/internal/resp"
	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/register"
)

// takeKeys takes the next batch of a lane, and returns the first key of each op.
func (l *lane) takeKeys() (keys []string) {
	l.take()
	for _, o := range l.inFlight.ops {
		keys = append(keys, o.cellOp.Keys()[0])
	}
	return keys
}

// answerWithSizes answers the batch in flight like a master with values of these sizes.
func (l *lane) answerWithSizes(sizes map[string]int) {
	for i, o := range l.inFlight.ops {
		var states []cell.KeyState
		for _, key := range o.cellOp.Keys() {
			states = append(states, cell.KeyState{Cell: cell.Cell{Form: cell.Plain,
				Value: cell.Value{Present: true, Text: strings.Repeat("x", sizes[key])}}})
		}
		l.inFlight.replies[i] = reply{State: register.Counted, Answer: cell.Answer{Applied: true, KeyStates: states}}
	}
	l.learnSizes()
	l.inFlight.unload()
}

func readOp(keys ...string) *op {
	return &op{command: newCommand(0, cell.Read{Names: keys}), round: newRound(1, nil)}
}

// TestOrderOfWideReads checks ops on many keys. The lane sends such reads in separate batches,
// with a limited number of keys, in turn with the other batches. Ops that write keep their order.
func TestOrderOfWideReads(t *testing.T) {
	l := newLane(nil, 0, nil)
	names := make([]string, 1000)
	for i := range names {
		names[i] = fmt.Sprint("key ", i)
	}
	push := func(o *op) {
		t.Helper()
		if _, err := l.push(o, false); err != nil {
			t.Fatal(err)
		}
	}
	for range 10 {
		push(readOp(names...))
	}
	push(&op{command: newCommand(0, cell.Take{Names: names, Tokens: names}), round: newRound(1, nil)})
	push(readOp("short"))
	var keys []int
	for range 5 {
		n := 0
		l.take()
		for _, o := range l.inFlight.ops {
			n += len(o.cellOp.Keys())
		}
		keys = append(keys, n)
		l.inFlight.unload()
	}
	if want := []int{1001, 3000, 3000, 3000, 1000}; !slices.Equal(keys, want) {
		t.Errorf("batches of %v keys, want %v", keys, want)
	}
}

// TestWriteOrder checks that no later op on a key overtakes a queued op that writes the
// key, even if the queued op, or a value of its keys, is long.
func TestWriteOrder(t *testing.T) {
	names := []string{"a", "b", "c", "d", "e", "f", "g", "h", "i"}
	write := func(cellOp cell.Op) *op { return &op{command: newCommand(0, cellOp), round: newRound(1, nil)} }
	take := func(token string) *op {
		tokens := make([]string, len(names))
		for i := range tokens {
			tokens[i] = token
		}
		return write(cell.Take{Names: names, Tokens: tokens, Attempt: "1"})
	}
	for name, c := range map[string]struct {
		knownSize int
		take      *op
	}{"values of 5 KB": {5_000, take("t")}, "a value of 40 KB": {40_000, take("t")}, "a long token": {0, take(strings.Repeat("t", 40_000))}} {
		l := newLane(nil, 0, nil)
		for _, key := range names {
			if c.knownSize > 0 {
				l.sizes.record(key, c.knownSize, true)
			}
		}
		var sentOps []*op
		for _, o := range []*op{c.take, write(cell.Remove{Name: "a", Attempt: "1"}), write(cell.Prepare{Name: "b"})} {
			if _, err := l.push(o, false); err != nil {
				t.Fatal(err)
			}
		}
		for range 3 {
			l.take()
			sentOps = append(sentOps, l.inFlight.ops...)
			l.inFlight.unload()
		}
		if len(sentOps) != 3 || sentOps[0] != c.take {
			t.Errorf("%s: the take is not the first of %d ops", name, len(sentOps))
		}
	}
}

// TestWriteOrderWithoutRoom checks the order of the ops on a key if a lane already knows the sizes
// of as many values as it may remember. Another op on a long value is queued ahead of them.
func TestWriteOrderWithoutRoom(t *testing.T) {
	l := newLane(nil, 0, nil)
	for i := range maxSizes {
		l.sizes.record(fmt.Sprint("long ", i), 900_000, true)
	}
	write := &op{command: newCommand(0, cell.Accept{Name: "k", Value: cell.Value{Present: true,
		Text: strings.Repeat("x", 900_000)}}), round: newRound(1, nil)}
	release := &op{command: newCommand(0, cell.Remove{Name: "k", Attempt: "1"}), round: newRound(1, nil)}
	ops := []*op{readOp("long 0"), write, release}
	for _, o := range ops {
		if _, err := l.push(o, false); err != nil {
			t.Fatal(err)
		}
	}
	var sentOps []*op
	for range ops {
		l.take()
		sentOps = append(sentOps, l.inFlight.ops...)
		l.inFlight.unload()
	}
	if !slices.Equal(sentOps, ops) {
		t.Error("the lane changed the order")
	}
}

// TestShortOpsBeforeLongOps checks ops on a key after the lane has learned that its value is long.
// The lane sends such ops in separate batches, in turn with the other batches, until the value is
// gone.
func TestShortOpsBeforeLongOps(t *testing.T) {
	l := newLane(nil, 0, nil)
	push := func(keys ...string) {
		t.Helper()
		if _, err := l.push(readOp(keys...), false); err != nil {
			t.Fatal(err)
		}
	}
	want := func(keys ...string) {
		t.Helper()
		if got := l.takeKeys(); !slices.Equal(got, keys) {
			t.Fatalf("sent %v, want %v", got, keys)
		}
	}
	sizes := map[string]int{"long 1": 600_000, "long 2": 600_000, "long 3": 100_000, "short": 1_000}
	push("long 1")
	push("long 2")
	push("long 3")
	want("long 1", "long 2", "long 3") // The lane knows no size yet.
	l.answerWithSizes(sizes)
	for range 2 {
		push("long 1")
		push("long 2")
		push("long 3")
		push("short")
	}
	want("short", "short")
	l.answerWithSizes(sizes)
	push("short")
	want("long 1")
	l.answerWithSizes(sizes)
	want("short")
	l.answerWithSizes(sizes)
	want("long 2", "long 3")
	l.answerWithSizes(sizes)
	want("long 1")
	l.answerWithSizes(sizes)
	push("short")
	want("short") // the short op waited for one batch of long ops
	l.answerWithSizes(sizes)
	delete(sizes, "long 2")
	want("long 2", "long 3")
	l.answerWithSizes(sizes)
	push("long 1")
	push("long 2")
	want("long 2") // the value is short now
	l.answerWithSizes(sizes)
	want("long 1")
	l.answerWithSizes(sizes)
	want()
	if claimed, _ := l.push(readOp("short"), false); !claimed {
		t.Error("the lane is not idle")
	}
}

// TestLongWrite checks that a long write, and each later op on its key, is treated like an op on a
// long value.
func TestLongWrite(t *testing.T) {
	l := newLane(nil, 0, nil)
	for _, o := range []*op{
		{command: newCommand(0, cell.Accept{Name: "long", Value: cell.Value{Present: true,
			Text: strings.Repeat("x", 900_000)}}), round: newRound(1, nil)},
		readOp("short"),
	} {
		if _, err := l.push(o, false); err != nil {
			t.Fatal(err)
		}
	}
	if got := l.takeKeys(); !slices.Equal(got, []string{"short"}) {
		t.Errorf("sent %v", got)
	}
	l.inFlight.unload()
	if got := l.takeKeys(); !slices.Equal(got, []string{"long"}) {
		t.Errorf("sent %v", got)
	}
	l.inFlight.replies[0] = reply{State: register.Counted, Answer: cell.Answer{Applied: true}}
	l.learnSizes()
	if n := l.sizes.totalSize(readOp("long")); n < 900_000 {
		t.Errorf("the known size is %d bytes", n)
	}
}

// TestTooLongReads checks that a lane refuses to repeat a read whose reply exceeded the limits,
// even if each value alone would be short enough.
func TestTooLongReads(t *testing.T) {
	l := newLane(nil, 0, nil)
	keys := slices.Repeat([]string{""}, 1000)
	for i := range keys {
		keys[i] = strings.Repeat("k", i+1)
	}
	if _, err := l.push(readOp(keys...), false); err != nil {
		t.Fatal(err)
	}
	l.take()
	rawReply := []any{int64(1)}
	for range keys {
		rawReply = append(rawReply, resp.SkippedSize(30_000), int64(1000))
	}
	l.inFlight.replies[0] = decode(cell.Read{Names: keys}, rawReply)
	if got := l.inFlight.replies[0]; got.State != register.Uncounted || !errors.Is(got.Err, ErrTooLong) {
		t.Errorf("decoded %v, %v", got.State, got.Err)
	}
	l.learnSizes()
	if _, err := l.push(readOp(keys...), false); !errors.Is(err, ErrTooLong) {
		t.Errorf("the reply to a repeated read: %v", err)
	}
	if _, err := l.push(readOp(keys[:300]...), false); err != nil {
		t.Errorf("a read of fewer keys: %v", err)
	}
}

// TestTooLongReleases checks several releases in one script whose reply exceeds the limits. No
// release counts, and each fails with ErrTooLong.
func TestTooLongReleases(t *testing.T) {
	rs := releases{indexes: []int{0, 1}, removals: cell.Releases{{Name: "a"}, {Name: "b"}}}
	replies := make([]reply, 2)
	rs.decode([]any{int64(0), resp.SkippedSize(900_000), int64(1000), int64(1)}, replies)
	for i, got := range replies {
		if got.State != register.Uncounted || !errors.Is(got.Err, ErrTooLong) {
			t.Errorf("release %d: %v, %v", i, got.State, got.Err)
		}
	}
}

// TestLongOpOrder checks that an op on a key whose value is short by now does not overtake a
// long op on the same key.
func TestLongOpOrder(t *testing.T) {
	l := newLane(nil, 0, nil)
	push := func(key string) {
		if _, err := l.push(readOp(key), false); err != nil {
			t.Fatal(err)
		}
	}
	sizes := map[string]int{"a": 900_000, "b": 900_000}
	push("a")
	push("b")
	l.takeKeys()
	l.answerWithSizes(sizes)
	push("a")
	push("b")
	push("a") // like a take behind its release
	if got := l.takeKeys(); !slices.Equal(got, []string{"a"}) {
		t.Fatalf("sent %v", got)
	}
	l.answerWithSizes(map[string]int{})
	push("a")
	for _, want := range [][]string{{"b"}, {"a"}, {"a"}} {
		if got := l.takeKeys(); !slices.Equal(got, want) {
			t.Fatalf("sent %v, want %v", got, want)
		}
		l.answerWithSizes(sizes)
	}
}

// TestExtendWhileReading checks that the link waits for a master that is sending a long reply as
// long as the master makes progress.
func TestExtendWhileReading(t *testing.T) {
	const limit = time.Second
	conn, peer := net.Pipe()
	defer peer.Close()
	defer conn.Close()
	now := time.Now()
	k := &redisLink{transport: &redisTransport{timeout: limit}, conn: conn, inFlight: &Batch{deadline: now, extended: true}}
	for i, received := range []int{2 * minProgress, minProgress, minProgress - 1} {
		now = k.inFlight.deadline
		k.bytesRead += received
		continues := k.rearm(now.Add(time.Millisecond))
		if want := received >= minProgress; continues != want {
			t.Errorf("after %d bytes, time %d: continues %v, want %v", received, i, continues, want)
		}
	}
}
