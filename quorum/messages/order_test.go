package messages

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
)

// route is what a master brings, in its order; next is what comes next.
type route struct {
	brings []Message
	next   int
}

// TestOrder: messages of clients of several proxies, each taken by any majority of five masters and by some others late or never, come by these in any
// interleaving, with flushes in between, also while masters break for good. Each that a majority took comes once, none twice, and those of a client
// in their order.
func TestOrder(t *testing.T) {
	for seed := range uint64(3000) {
		random := rand.New(rand.NewPCG(seed, 1))
		routes, agreed := published(random)
		got := delivered(t, random, routes)
		seen, last := map[uint64]int{}, map[byte]uint64{}
		for _, m := range got {
			if seen[m.Number]++; seen[m.Number] > 1 {
				t.Fatalf("seed %d: %d came twice", seed, m.Number)
			}
			if client := m.Payload[0]; m.Number < last[client] {
				t.Fatalf("seed %d: of client %c, %d came after %d", seed, client, m.Number, last[client])
			} else {
				last[client] = m.Number
			}
		}
		for number := range agreed {
			if seen[number] != 1 {
				t.Fatalf("seed %d: %d did not come", seed, number)
			}
		}
	}
}

// published are 60 messages of four clients of one proxy on five masters, and the numbers of those that a majority took.
func published(random *rand.Rand) (routes []*route, agreed map[uint64]bool) {
	type flight struct {
		Message
		left []int // masters that get it, in any order
		took int
	}
	source, last := NewSource(), map[byte]*uint64{'a': new(uint64), 'b': new(uint64), 'c': new(uint64), 'd': new(uint64)}
	flying := map[byte]*flight{}
	agreed = map[uint64]bool{}
	for range 5 {
		routes = append(routes, &route{})
	}
	var late []*flight // of which some masters get it when it is decided
	give := func(f *flight) {
		i := f.left[0]
		f.left = f.left[1:]
		routes[i].brings = append(routes[i].brings, f.Message)
		f.took++
	}
	for sent := 0; sent < 60 || len(flying) > 0; {
		client := "abcd"[random.IntN(4)]
		f := flying[client]
		switch {
		case f == nil && sent < 60:
			m := source.Begin(Message{Channel: "c", Payload: string(client)}, last[client])
			n := 3 + random.IntN(3)
			if random.IntN(8) == 0 {
				n = random.IntN(3) // it has no majority
			}
			flying[client] = &flight{Message: m, left: random.Perm(5)[:n]}
			sent++
		case f == nil:
		case f.took < 3 && len(f.left) > 0:
			give(f)
		default: // decided
			source.End(f.Message)
			if f.took >= 3 {
				agreed[f.Number] = true
				late = append(late, f)
			}
			delete(flying, client)
		}
		if len(late) > 0 && random.IntN(3) == 0 {
			if f := late[0]; len(f.left) > 0 {
				give(f)
			} else {
				late = late[1:]
			}
		}
	}
	for _, r := range routes { // a lane keeps the order of what it was asked: what is late is so behind others of other clients only
		slices.SortStableFunc(r.brings, func(a, b Message) int {
			if a.Payload == b.Payload {
				return cmp.Compare(a.Number, b.Number)
			}
			return 0
		})
	}
	return routes, agreed
}

// delivered is what comes by the routes, of which two at the most break.
func delivered(t *testing.T, random *rand.Rand, routes []*route) (got []Message) {
	t.Helper()
	var o order
	flush := uint64(0)
	underway, upTo := false, make([]int, len(routes))
	broken := random.Perm(5)[:random.IntN(3)]
	for _, i := range broken {
		routes[i].brings = routes[i].brings[:random.IntN(len(routes[i].brings)+1)]
	}
	isLeft := func() bool {
		return slices.ContainsFunc(routes, func(r *route) bool { return r.next < len(r.brings) })
	}
	for isLeft() || underway || flush < 3 {
		r := routes[random.IntN(5)]
		if r.next < len(r.brings) {
			ready, _, err := o.take(r.brings[r.next], flush+1)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, ready...)
			r.next++
		}
		switch {
		case !underway && random.IntN(10) == 0:
			underway = true
			flush++
			o.begin()
			for i, r := range routes { // all is published already that comes
				upTo[i] = len(r.brings)
			}
		case underway && !slices.ContainsFunc([]int{0, 1, 2, 3, 4}, func(i int) bool { return routes[i].next < upTo[i] }):
			underway = false
			got = append(got, o.flushed(flush)...)
		}
	}
	if o.held != 0 {
		t.Errorf("%d bytes are held at the end", o.held)
	}
	return got
}

// TestOrderWaits: what comes before the message after which its client sent it waits for that, or for a flush.
func TestOrderWaits(t *testing.T) {
	one := Message{Source: "p", Number: 1, Payload: "1"}
	two := Message{Source: "p", Number: 2, After: 1, Payload: "2"}
	three := Message{Source: "p", Number: 3, After: 2, Payload: "3"}
	var o order
	wantReady(t, &o, three, 1, true)
	wantReady(t, &o, two, 1, true)
	wantReady(t, &o, two, 1, false)
	wantReady(t, &o, one, 1, false, 1, 2, 3)
	wantReady(t, &o, three, 1, false)

	o = order{}
	wantReady(t, &o, three, 1, true)
	wantReady(t, &o, two, 2, true)
	if ready := o.flushed(1); len(ready) != 0 { // 3 goes on to wait for 2
		t.Fatalf("%v", ready)
	}
	if ready := o.flushed(2); len(ready) != 2 || ready[0].Number != 2 || ready[1].Number != 3 {
		t.Fatalf("%v", ready)
	}
	wantReady(t, &o, one, 3, false) // out of order, and its client was told an error
}

// TestOrderForgets: what was decided before a flush and did not come is not waited for any more, so that no gaps pile up.
func TestOrderForgets(t *testing.T) {
	var o order
	for n := uint64(2); n <= 4000; n += 2 {
		wantReady(t, &o, Message{Source: "p", Number: n, Decided: n - 1}, 1, false, n)
	}
	s := o.sources["p"]
	if len(s.missing) != 2000 {
		t.Fatalf("%d gaps", len(s.missing))
	}
	o.begin()
	wantReady(t, &o, Message{Source: "p", Number: 4002, Decided: 4001}, 2, false, 4002)
	o.flushed(1)
	if len(s.missing) != 1 || s.missing[0] != (gap{4001, 4001}) {
		t.Fatalf("%v", s.missing)
	}
	wantReady(t, &o, Message{Source: "p", Number: 3999}, 2, false)
}

// TestOrderIsBounded: whatever comes, no more is remembered than the bounds say.
func TestOrderIsBounded(t *testing.T) {
	var o order
	var err error
	for n := uint64(2); err == nil; n += 2 {
		_, _, err = o.take(Message{Source: "p", Number: n}, 1)
	}
	if got := len(o.sources["p"].missing); got != maxGaps {
		t.Errorf("%d gaps, %v", got, err)
	}
	o, err = order{}, nil
	payload := string(make([]byte, 1<<20))
	for n := uint64(2); err == nil; n++ {
		_, _, err = o.take(Message{Source: "p", Number: n, After: n - 1, Payload: payload}, 1)
	}
	if o.held > maxHeld || len(o.sources["p"].waiting) != maxHeld>>20-1 {
		t.Errorf("%d bytes of %d messages wait, %v", o.held, len(o.sources["p"].waiting), err)
	}
	for n := range 3 * maxSources {
		if _, _, err := o.take(Message{Source: string(rune(n)), Number: 1}, 1); err != nil {
			t.Fatal(err)
		}
	}
	if len(o.sources) != maxSources || o.held != 0 {
		t.Errorf("%d sources, %d bytes", len(o.sources), o.held)
	}
}

func wantReady(t *testing.T, o *order, m Message, flush uint64, waits bool, numbers ...uint64) {
	t.Helper()
	ready, did, err := o.take(m, flush)
	var got []uint64
	for _, one := range ready {
		got = append(got, one.Number)
	}
	if err != nil || did != waits || !slices.Equal(got, numbers) {
		t.Fatalf("%d: %v, waits %v, %v; want %v, %v", m.Number, got, did, err, numbers, waits)
	}
}
