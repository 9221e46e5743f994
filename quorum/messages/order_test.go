package messages

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// route holds the sequence of messages that a master delivers, with the times of their publication
// on that master. nextIndex is the index of the next message.
type route struct {
	messages  []Message
	times     []int
	nextIndex int
}

// TestOrder publishes messages of four clients of one proxy. Random majorities of five masters
// accept most of the messages; the other masters accept them late or never. The masters deliver the
// messages in any interleaving, with flushes in between, and up to two masters break for good. The
// test checks that each message that a majority accepted arrives once, that no message arrives
// twice, and that the messages of a client arrive in order.
func TestOrder(t *testing.T) {
	for seed := range uint64(3000) {
		random := rand.New(rand.NewPCG(seed, 1))
		routes, accepted := publishAll(random)
		got := deliverAll(t, random, routes)
		seen, last := map[uint64]int{}, map[byte]uint64{}
		for _, m := range got {
			if seen[m.Number]++; seen[m.Number] > 1 {
				t.Fatalf("seed %d: message %d was delivered twice", seed, m.Number)
			}
			client := m.Payload[0]
			switch {
			// the client of the message got an error, so the message may arrive late
			case !accepted[m.Number]:
			case m.Number < last[client]:
				t.Fatalf("seed %d: client %c: message %d was delivered after %d", seed, client, m.Number, last[client])
			default:
				last[client] = m.Number
			}
		}
		for number := range accepted {
			if seen[number] != 1 {
				t.Fatalf("seed %d: message %d was not delivered", seed, number)
			}
		}
	}
}

// publication holds a message that is being published.
type publication struct {
	Message
	masters, acceptCount int
}

// publishAll publishes 60 messages of four clients of one proxy on five masters, on each master in
// the order in which they were sent. It returns the routes, and the numbers that a majority
// accepted.
func publishAll(random *rand.Rand) (routes []*route, acceptedNumbers map[uint64]bool) {
	source, last := NewSource(), map[byte]*uint64{'a': new(uint64), 'b': new(uint64), 'c': new(uint64), 'd': new(uint64)}
	inFlight, acceptedNumbers := map[byte]*publication{}, map[uint64]bool{}
	lanes := make([][]*publication, 5)
	for range lanes {
		routes = append(routes, &route{})
	}
	for sent, step := 0, 0; sent < 60 || len(inFlight) > 0; step++ {
		client := "abcd"[random.IntN(4)]
		switch f := inFlight[client]; {
		case f == nil && sent < 60:
			f = &publication{Message: source.Begin(Message{Channel: "c", Payload: string(client)}, last[client]),
				masters: 3 + random.IntN(3)}
			if random.IntN(8) == 0 {
				f.masters = random.IntN(3) // no majority
			}
			for _, i := range random.Perm(5)[:f.masters] {
				lanes[i] = append(lanes[i], f)
			}
			inFlight[client] = f
			sent++
		case f != nil && (f.acceptCount >= 3 || f.masters < 3 && random.IntN(5) == 0): // decided
			source.End(f.Message)
			if f.acceptCount >= 3 {
				acceptedNumbers[f.Number] = true
			}
			delete(inFlight, client)
		}
		// Some masters are slower.
		if i := random.IntN(5); len(lanes[i]) > 0 && random.IntN(i+1) < 2 {
			f := lanes[i][0]
			lanes[i] = lanes[i][1:]
			f.acceptCount++
			routes[i].messages, routes[i].times = append(routes[i].messages, f.Message), append(routes[i].times, step)
		}
	}
	return routes, acceptedNumbers
}

// deliverAll returns the messages that arrive by the routes, of which at most two break.
func deliverAll(t *testing.T, random *rand.Rand, routes []*route) (got []Message) {
	t.Helper()
	var o order
	// lastTime is the latest publication time of the arrived messages.
	flush, lastTime := uint64(0), 0
	flushing, upTo := false, make([]int, len(routes))
	broken := random.Perm(5)[:random.IntN(3)]
	for _, i := range broken {
		count := random.IntN(len(routes[i].messages) + 1)
		routes[i].messages, routes[i].times = routes[i].messages[:count], routes[i].times[:count]
	}
	hasMessages := func() bool {
		return slices.ContainsFunc(routes, func(r *route) bool { return r.nextIndex < len(r.messages) })
	}
	for hasMessages() || flushing || flush < 3 || o.waitingBytes > 0 && flush < 100 {
		r := routes[random.IntN(5)]
		if r.nextIndex < len(r.messages) {
			ready, _, err := o.add(r.messages[r.nextIndex], flush+1)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, ready...)
			lastTime = max(lastTime, r.times[r.nextIndex])
			r.nextIndex++
		}
		switch {
		case !flushing && random.IntN(10) == 0:
			flushing = true
			flush++
			o.beginFlush()
			// Messages that are published by now must arrive before the flush ends.
			for i, r := range routes {
				upTo[i], _ = slices.BinarySearch(r.times, lastTime+1+random.IntN(5))
			}
		case flushing && !slices.ContainsFunc([]int{0, 1, 2, 3, 4}, func(i int) bool { return routes[i].nextIndex < upTo[i] }):
			flushing = false
			got = append(got, o.endFlush(flush)...)
		}
	}
	if o.waitingBytes != 0 {
		t.Errorf("%d bytes are held at the end", o.waitingBytes)
	}
	return got
}

// TestWaitingMessages checks that a message that arrives before its predecessor waits for the
// predecessor or for a flush.
func TestWaitingMessages(t *testing.T) {
	first := Message{Source: "p", Number: 1, Payload: "1"}
	second := Message{Source: "p", Number: 2, PreviousNumber: 1, Payload: "2"}
	third := Message{Source: "p", Number: 3, PreviousNumber: 2, Payload: "3"}
	var o order
	wantReady(t, &o, third, 1, true)
	wantReady(t, &o, second, 1, true)
	wantReady(t, &o, second, 1, false)
	wantReady(t, &o, first, 1, false, 1, 2, 3)
	wantReady(t, &o, third, 1, false)

	o = order{}
	wantReady(t, &o, third, 1, true)
	wantReady(t, &o, second, 2, true)
	if ready := o.endFlush(1); len(ready) != 0 { // 3 still waits for 2
		t.Fatalf("%v", ready)
	}
	if ready := o.endFlush(2); len(ready) != 2 || ready[0].Number != 2 || ready[1].Number != 3 {
		t.Fatalf("%v", ready)
	}
	wantReady(t, &o, first, 3, false) // the message is out of order: its client got an error
}

// TestRemovalOfOldSources checks that a flush abandons the missing messages that were decided
// before it, so that gaps do not accumulate.
func TestRemovalOfOldSources(t *testing.T) {
	var o order
	for n := uint64(2); n <= 4000; n += 2 {
		wantReady(t, &o, Message{Source: "p", Number: n, LastDecided: n - 1}, 1, false, n)
	}
	s := o.sources["p"]
	if len(s.gaps) != 2000 {
		t.Fatalf("%d gaps", len(s.gaps))
	}
	o.beginFlush()
	wantReady(t, &o, Message{Source: "p", Number: 4002, LastDecided: 4001}, 2, false, 4002)
	o.endFlush(1)
	if len(s.gaps) != 1 || s.gaps[0] != (gap{4001, 4001}) {
		t.Fatalf("%v", s.gaps)
	}
	wantReady(t, &o, Message{Source: "p", Number: 3999}, 2, false)
}

// TestOrderLimits checks that the memory for messages stays within its limits.
func TestOrderLimits(t *testing.T) {
	var o order
	var err error
	for n := uint64(2); err == nil; n += 2 {
		_, _, err = o.add(Message{Source: "p", Number: n}, 1)
	}
	if got := len(o.sources["p"].gaps); got != maxGaps {
		t.Errorf("%d gaps, %v", got, err)
	}
	o, err = order{}, nil
	payload := string(make([]byte, 1<<20))
	for n := uint64(2); err == nil; n++ {
		_, _, err = o.add(Message{Source: "p", Number: n, PreviousNumber: n - 1, Payload: payload}, 1)
	}
	if o.waitingBytes > maxWaitingBytes || len(o.sources["p"].waitingMessages) != maxWaitingBytes>>20-1 {
		t.Errorf("%d bytes of %d messages wait, %v", o.waitingBytes, len(o.sources["p"].waitingMessages), err)
	}
	for n := range 3 * maxSources {
		if _, _, err := o.add(Message{Source: string(rune(n)), Number: 1}, 1); err != nil {
			t.Fatal(err)
		}
	}
	if len(o.sources) != maxSources || o.waitingBytes != 0 {
		t.Errorf("%d sources, %d bytes", len(o.sources), o.waitingBytes)
	}
}

func wantReady(t *testing.T, o *order, m Message, flush uint64, mustWait bool, numbers ...uint64) {
	t.Helper()
	ready, waited, err := o.add(m, flush)
	var got []uint64
	for _, message := range ready {
		got = append(got, message.Number)
	}
	if err != nil || waited != mustWait || !slices.Equal(got, numbers) {
		t.Fatalf("%d: %v, waits %v, %v; want %v, %v", m.Number, got, waited, err, numbers, mustWait)
	}
}
