package proxy

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"redlock-proxy/commands"
	"redlock-proxy/internal/resp"
)

// frameOf returns a command in RESP. Some line ends that Redis does not check are random.
func frameOf(random *rand.Rand, words []string) string {
	lineEnd := func() string {
		if random.IntN(4) == 0 {
			return string([]byte{byte(random.IntN(256)), '\r'})
		}
		return "\r\n"
	}
	frame := fmt.Sprintf("*%d\r\n", len(words))
	for _, w := range words {
		frame += fmt.Sprintf("$%d\r\n%s%s", len(w), w, lineEnd())
	}
	return frame
}

func randomWords(random *rand.Rand) []string {
	pieces := []string{"", "a", "lock:1", "lock:2", "$5\r\nlock:", "\r\n", "*1\r\n", strings.Repeat("v", 300),
		"lock:\x00\xff"}
	words := []string{"name"}
	for range random.IntN(6) {
		words = append(words, pieces[random.IntN(len(pieces))])
	}
	return words
}

// TestFirstArg checks that firstArg returns the first argument as soon as all its bytes have
// arrived, and not before.
func TestFirstArg(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		words := randomWords(random)
		frame := frameOf(random, words)
		for cut := range len(frame) + 1 {
			in := &input{scanner: resp.NewFrameScanner(resp.DefaultRequestLimits()), buf: []byte(frame), readEnd: cut}
			ev, err := in.nextEvent()
			if err != nil {
				t.Fatal(err)
			}
			if ev != resp.FrameName {
				continue
			}
			want, wantWhole := "", true
			needed := in.scanEnd
			if len(words) > 1 {
				want = words[1]
				needed += len(fmt.Sprintf("\r\n$%d\r\n", len(want))) + len(want)
				wantWhole = cut >= needed
			}
			if got, _, whole := in.firstArg(); whole != wantWhole || whole && string(got) != want {
				t.Fatalf("%q, %d bytes: %q, %v, want %q, %v", frame, cut, got, whole, want, wantWhole)
			}
		}
	}
}

// TestFirstArgMissing checks that firstArg does not wait for a missing argument, or for one
// without a valid length.
func TestFirstArgMissing(t *testing.T) {
	for _, frame := range []string{"*1\r\n$3\r\nGET", "*2\r\n$3\r\nGET\r\n$x\r\n", "*2\r\n$3\r\nGET\r\n$-1\r\n",
		"*2\r\n$3\r\nGET\r\n:3\r\nabc"} {
		in := &input{scanner: resp.NewFrameScanner(resp.DefaultRequestLimits()), buf: []byte(frame), readEnd: len(frame)}
		if ev, err := in.nextEvent(); ev != resp.FrameName || err != nil {
			t.Fatalf("%q: %v, %v", frame, ev, err)
		}
		if key, _, whole := in.firstArg(); !whole || len(key) > 3 {
			t.Errorf("%q: %q, %v", frame, key, whole)
		}
	}
}

// TestKeyWalk checks that the walk over a frame in pieces finds the same lock key as a search of
// its words.
func TestKeyWalk(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 2))
	isLock := func(key []byte) bool { return strings.HasPrefix(string(key), "lock:") }
	table := commands.NewRelayTable(commands.Options{LockKeys: []string{"lock:*"}})
	for range 20_000 {
		words := randomWords(random)
		words[0] = []string{"del", "mset", "bitop", "blpop"}[random.IntN(4)]
		frame := frameOf(random, words)
		cut := random.IntN(len(frame) + 1)
		first, total, size := resp.Words(nil, []byte(frame[:cut]), math.MaxInt)
		if cut > len("*1\r\n") && total != len(words) {
			t.Fatalf("%q: %d words", frame, total)
		}
		if len(first) == 0 {
			continue
		}
		positions, locked, known := table.Preview(t.Context(), first, total)
		w := &keyWalk{index: len(first), positions: positions, isLock: isLock}
		var err error
		for rest := frame[size:]; len(rest) > 0 && err == nil && !locked; {
			n := 1 + random.IntN(len(rest))
			err, rest = w.scan([]byte(rest[:n])), rest[n:]
		}
		want := false
		for i, word := range words {
			want = want || positions.Has(i) && isLock([]byte(word))
		}
		if got := locked || err != nil; got != want || !known {
			t.Fatalf("%q cut at %d: %v (%v), want %v", words, cut, got, err, want)
		}
	}
}
