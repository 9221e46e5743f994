package messages

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// route is the sequence of messages that a master delivers, with the time when each was published
// on it. next is the index of the next message.
type route struct {
	brings []Message
	at     []int
	next   int
}

// TestOrder: clients of several proxies publish messages. Any majority of five masters accepts each
// message; further masters accept it late or never. The masters deliver them in any interleaving,
// with flushes in between, and some masters break for good. Each message that a majority accepted
// arrives once, no message arrives twice, and the messages of a client arrive in order.
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
			client := m.Payload[0]
			switch {
			case !agreed[m.Number]: // its client got an error, so it may arrive late
			case m.Number < last[client]:
				t.Fatalf("seed %d: of client %c, %d came after %d", seed, client, m.Number, last[client])
			default:
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

// flight is a message that is being published.
type flight struct {
	Message
	masters, took int
}

// published publishes 60 messages of four clients of one proxy on five masters, on each master in
// the order in which they were sent. It returns the routes, and the numbers that a majority
// accepted.
func published(random *rand.Rand) (routes []*route, agreed map[uint64]bool) {
	source, last := NewSource(), map[byte]*uint64{'a': new(uint64), 'b': new(uint64), 'c': new(uint64), 'd': new(uint64)}
	flying, agreed := map[byte]*flight{}, map[uint64]bool{}
	lanes := make([][]*flight, 5)
	for range lanes {
		routes = append(routes, &route{})
	}
	for sent, now := 0, 0; sent < 60 || len(flying) > 0; now++ {
		client := "abcd"[random.IntN(4)]
		switch f := flying[client]; {
		case f == nil && sent < 60:
			f = &flight{Message: source.Begin(Message{Channel: "c", Payload: string(client)}, last[client]),
				masters: 3 + random.IntN(3)}
			if random.IntN(8) == 0 {
				f.masters = random.IntN(3) // no majority
			}
			for _, i := range random.Perm(5)[:f.masters] {
				lanes[i] = append(lanes[i], f)
			}
			flying[client] = f
			sent++
		case f != nil && (f.took >= 3 || f.masters < 3 && random.IntN(5) == 0): // decided
			source.End(f.Message)
			if f.took >= 3 {
				agreed[f.Number] = true
			}
			delete(flying, client)
		}
		if i := random.IntN(5); len(lanes[i]) > 0 && random.IntN(i+1) < 2 { // some are slower
			f := lanes[i][0]
			lanes[i] = lanes[i][1:]
			f.took++
			routes[i].brings, routes[i].at = append(routes[i].brings, f.Message), append(routes[i].at, now)
		}
	}
	return routes, agreed
}

// delivered returns the messages that arrive by the routes, of which at most two break.
func delivered(t *testing.T, random *rand.Rand, routes []*route) (got []Message) {
	t.Helper()
	var o order
	flush, seen := uint64(0), 0 // seen is when the last arrived message was published
	underway, upTo := false, make([]int, len(routes))
	broken := random.Perm(5)[:random.IntN(3)]
	for _, i := range broken {
		left := random.IntN(len(routes[i].brings) + 1)
		routes[i].brings, routes[i].at = routes[i].brings[:left], routes[i].at[:left]
	}
	isLeft := func() bool {
		return slices.ContainsFunc(routes, func(r *route) bool { return r.next < len(r.brings) })
	}
	for isLeft() || underway || flush < 3 || o.heldBytes > 0 && flush < 100 {
		r := routes[random.IntN(5)]
		if r.next < len(r.brings) {
			ready, _, err := o.add(r.brings[r.next], flush+1)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, ready...)
			seen = max(seen, r.at[r.next])
			r.next++
		}
		switch {
		case !underway && random.IntN(10) == 0:
			underway = true
			flush++
			o.beginFlush()
			for i, r := range routes { // messages that are published by now must arrive before the flush ends
				upTo[i], _ = slices.BinarySearch(r.at, seen+1+random.IntN(5))
			}
		case underway && !slices.ContainsFunc([]int{0, 1, 2, 3, 4}, func(i int) bool { return routes[i].next < upTo[i] }):
			underway = false
			got = append(got, o.endFlush(flush)...)
		}
	}
	if o.heldBytes != 0 {
		t.Errorf("%d bytes are held at the end", o.heldBytes)
	}
	return got
}

// TestOrderWaits: a message that arrives before its predecessor waits for it, or for a flush.
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
	if ready := o.endFlush(1); len(ready) != 0 { // 3 still waits for 2
		t.Fatalf("%v", ready)
	}
	if ready := o.endFlush(2); len(ready) != 2 || ready[0].Number != 2 || ready[1].Number != 3 {
		t.Fatalf("%v", ready)
	}
	wantReady(t, &o, one, 3, false) // out of order; its client got an error
}

// TestOrderForgets: missing messages that were decided before a flush are abandoned, so that gaps
// do not accumulate.
func TestOrderForgets(t *testing.T) {
	var o order
	for n := uint64(2); n <= 4000; n += 2 {
		wantReady(t, &o, Message{Source: "p", Number: n, Decided: n - 1}, 1, false, n)
	}
	s := o.sources["p"]
	if len(s.missing) != 2000 {
		t.Fatalf("%d gaps", len(s.missing))
	}
	o.beginFlush()
	wantReady(t, &o, Message{Source: "p", Number: 4002, Decided: 4001}, 2, false, 4002)
	o.endFlush(1)
	if len(s.missing) != 1 || s.missing[0] != (gap{4001, 4001}) {
		t.Fatalf("%v", s.missing)
	}
	wantReady(t, &o, Message{Source: "p", Number: 3999}, 2, false)
}

// TestOrderIsBounded: the memory for messages stays within its limits.
func TestOrderIsBounded(t *testing.T) {
	var o order
	var err error
	for n := uint64(2); err == nil; n += 2 {
		_, _, err = o.add(Message{Source: "p", Number: n}, 1)
	}
	if got := len(o.sources["p"].missing); got != maxGaps {
		t.Errorf("%d gaps, %v", got, err)
	}
	o, err = order{}, nil
	payload := string(make([]byte, 1<<20))
	for n := uint64(2); err == nil; n++ {
		_, _, err = o.add(Message{Source: "p", Number: n, After: n - 1, Payload: payload}, 1)
	}
	if o.heldBytes > maxHeldBytes || len(o.sources["p"].waiting) != maxHeldBytes>>20-1 {
		t.Errorf("%d bytes of %d messages wait, %v", o.heldBytes, len(o.sources["p"].waiting), err)
	}
	for n := range 3 * maxSources {
		if _, _, err := o.add(Message{Source: string(rune(n)), Number: 1}, 1); err != nil {
			t.Fatal(err)
		}
	}
	if len(o.sources) != maxSources || o.heldBytes != 0 {
		t.Errorf("%d sources, %d bytes", len(o.sources), o.heldBytes)
	}
}

func wantReady(t *testing.T, o *order, m Message, flush uint64, waits bool, numbers ...uint64) {
	t.Helper()
	ready, did, err := o.add(m, flush)
	var got []uint64
	for _, one := range ready {
		got = append(got, one.Number)
	}
	if err != nil || did != waits || !slices.Equal(got, numbers) {
		t.Fatalf("%d: %v, waits %v, %v; want %v, %v", m.Number, got, did, err, numbers, waits)
	}
}
