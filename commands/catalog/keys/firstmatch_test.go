package keys

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestFirstMatch(t *testing.T) {
	globs := NewFirstMatch("billing:eu:*", "billing:*", "*:eu:*", "exact", "bill*", `a\*b`, "billing:eu:7")
	for key, want := range map[string]int{
		"billing:eu:1": 0, "billing:eu:7": 0, "billing:1": 1, "stock:eu:1": 2, "exact": 3, "exactly": -1, "bill": 4,
		"billing": 4, "bil": -1, "a*b": 5, "axb": -1, "": -1, "zzz": -1,
	} {
		if got := globs.Index(key); got != want {
			t.Errorf("%q: got %d, want %d", key, got, want)
		}
	}
	if got := NewFirstMatch().Index("a"); got != -1 {
		t.Errorf("no globs: got %d", got)
	}
}

// TestFirstMatchLikeGlobs checks that FirstMatch finds the same glob as a comparison with each.
func TestFirstMatchLikeGlobs(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	word := func(pieces string, maxLength int) string {
		var b strings.Builder
		for range random.IntN(maxLength + 1) {
			b.WriteByte(pieces[random.IntN(len(pieces))])
		}
		return b.String()
	}
	for range 20_000 {
		patterns := make([]string, random.IntN(8))
		for i := range patterns {
			patterns[i] = word("aaabbb*?[]", 5)
		}
		for range 5 {
			key := word("aaabbb[]", 6)
			want := slices.IndexFunc(patterns, func(p string) bool { return Match(p, key) })
			if got := NewFirstMatch(patterns...).Index(key); got != want {
				t.Fatalf("%q, key %q: got %d, want %d", patterns, key, got, want)
			}
		}
	}
}

func TestFirstMatchAllocations(t *testing.T) {
	globs := NewFirstMatch("lock:*", "job-[0-9]*:lock", "*:lock", "job-*")
	key := "job-1" + strings.Repeat("x", 1000) + ":loc"
	if n := testing.AllocsPerRun(100, func() { globs.Index(key) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
