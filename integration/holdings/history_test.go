package holdings

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestOverlaps(t *testing.T) {
	const ms = time.Millisecond
	for _, test := range []struct {
		name     string
		holdings []Holding
		want     []string // tokens of the holdings that began too early
	}{
		{"nobody", nil, nil},
		{"one after the other", []Holding{NewHolding("a", 0, 20*ms, 5*ms), NewHolding("b", 5*ms, 25*ms, 9*ms)}, nil},
		{"b came while a held", []Holding{NewHolding("a", 0, 20*ms, 5*ms), NewHolding("b", 4*ms, 24*ms, 9*ms)}, []string{"b"}},
		{"the same, recorded in another order", []Holding{NewHolding("b", 4*ms, 24*ms, 9*ms), NewHolding("a", 0, 20*ms, 5*ms)},
			[]string{"b"}},
		{"a never gave it back, b came in its last moment", []Holding{NewHolding("a", 0, 20*ms, 0),
			NewHolding("b", 19*ms, 39*ms, 21*ms)}, []string{"b"}},
		{"a gave it back when it had lost it already", []Holding{NewHolding("a", 0, 20*ms, 30*ms),
			NewHolding("b", 20*ms, 40*ms, 40*ms)}, nil},
		{"c came while a held, but not b", []Holding{NewHolding("a", 0, 20*ms, 0), NewHolding("b", 1*ms, 21*ms, 2*ms),
			NewHolding("c", 19*ms, 39*ms, 20*ms)}, []string{"b", "c"}},
		{"both at once", []Holding{NewHolding("a", 3*ms, 23*ms, 5*ms), NewHolding("b", 3*ms, 23*ms, 4*ms)}, []string{"b"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			for _, o := range overlaps(test.holdings) {
				got = append(got, o.second.Token)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

// TestOverlapsOfAnyHistory compares Overlaps with its definition, on random histories. A holding
// overlaps if it begins before an earlier holding has ended.
func TestOverlapsOfAnyHistory(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	for range 2000 {
		var list []Holding
		// No two holdings begin together, because their order would be arbitrary.
		for from := range random.Perm(random.IntN(12)) {
			begin := time.Duration(from * 10)
			list = append(list, Holding{From: begin, To: begin + 1 + time.Duration(random.IntN(40))})
		}
		want := 0
		for _, h := range list {
			if slices.ContainsFunc(list, func(other Holding) bool { return other.From < h.From && h.From < other.To }) {
				want++
			}
		}
		random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		if got := len(overlaps(list)); got != want {
			t.Fatalf("seed %d: got %d overlaps, want %d: %v", seed, got, want, list)
		}
	}
}

// TestConflicts checks that Conflicts finds the sets of overlapping holdings, and ignores empty
// holdings.
func TestConflicts(t *testing.T) {
	h := NewHistory()
	for _, holding := range []Holding{{"a", 0, 10}, {"b", 5, 8}, {"c", 8, 12}, {"d", 9, 9}, {"e", 11, 13}, {"f", 11, 12}} {
		h.Add(holding)
	}
	var got []string
	for _, together := range h.Conflicts(func(together []Holding) bool { return len(together) > 1 }) {
		names := ""
		for _, one := range together {
			names += one.Token
		}
		got = append(got, names)
	}
	if want := []string{"ab", "ac", "ce", "cef"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
