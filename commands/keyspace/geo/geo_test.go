package geo

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"redlock-proxy/commands/keyspace/contents"
)

var (
	palermo = Position{13.361389, 38.115556}
	catania = Position{15.087269, 37.502669}
)

// Positions have the scores and hashes of Redis' own examples.
func TestPositions(t *testing.T) {
	for _, test := range []struct {
		p     Position
		score float64
		hash  string
	}{
		{palermo, 3479099956230698, "sqc8b49rny0"},
		{catania, 3479447370796909, "sqdtr74hyu0"},
		{Position{}, 3377699720527872, "s0000000000"},
		{Position{-180, -maxLatitude}, 0, "00bh0hbj200"},
	} {
		if score := test.p.Score(); score != test.score || Of(score).Hash() != test.hash {
			t.Errorf("%v: %.0f %s, want %.0f %s", test.p, score, Of(score).Hash(), test.score, test.hash)
		}
	}
	if got := FormatDistance(Distance(Of(palermo.Score()), Of(catania.Score()))); got != "166274.1516" {
		t.Error(got)
	}
	for d, want := range map[float64]string{0: "0.0000", 0.00004: "0.0000", 0.00005: "0.0000", 0.775: "0.7750", 12: "12.0000", math.NaN(): "-922337203685477.5808"} {
		if got := FormatDistance(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}

// A search finds what a look at every member finds.
func TestSearchFindsAll(t *testing.T) {
	z := contents.NewSortedSet()
	for x := -179.0; x < 180; x += 7.3 {
		for y := -84.0; y < 85; y += 3.1 {
			z.Set(fmt.Sprint(x, " ", y), Position{x, y}.Score())
		}
	}
	for _, radius := range []float64{0, 10, 100_000, 500_000} {
		for _, center := range []Position{palermo, {0, 0}, {-60, -55}, {100, 60}} {
			s := Search{area: area{center: center, radius: radius, unit: 1}}
			var got, want []string
			for _, f := range s.In(z) {
				got = append(got, f.Member)
			}
			for _, m := range z.Members() {
				if Distance(center, Of(m.Score)) <= radius {
					want = append(want, m.Member)
				}
			}
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("%v m around %v: %q, want %q", radius, center, got, want)
			}
		}
	}
}

// The part that is wanted is the same as if all were sorted.
func TestPartialSort(t *testing.T) {
	for n := range 200 {
		for wanted := 0; wanted < n; wanted += 1 + n/7 {
			all := make([]int, n)
			for i := range all {
				all[i] = i * 7919 % 31
			}
			sorted := slices.Sorted(slices.Values(all))
			partial[int]{all, func(a, b int) int { return a - b }}.sort(0, n, wanted)
			if !slices.Equal(all[:wanted], sorted[:wanted]) {
				t.Fatalf("%d of %d: %v", wanted, n, all)
			}
		}
	}
}

func BenchmarkSearchOfAll(b *testing.B) {
	z := contents.NewSortedSet()
	for i := range 1 << 16 {
		z.Set(fmt.Sprint(i), Position{float64(i%360) - 180, float64(i/360) - 85}.Score())
	}
	s := Search{area: area{radius: 1e8, unit: 1}, order: nearest}
	for b.Loop() {
		s.In(z)
	}
}
