package keys

import (
	"math/rand/v2"
	"strings"
	"testing"
)

func TestLockKeyPatterns(t *testing.T) {
	keys := NewPatterns("lock:*", "exact", "job-[0-9]*:lock", `a\*b`, "")
	for key, want := range map[string]bool{
		"lock:": true, "lock:a": true, "lock": false, "Lock:a": false, "xlock:a": false, "lock:\x00\xff": true,
		"exact": true, "exactly": false, "exac": false, "job-1x:lock": true, "job-x:lock": false, "job-1": false,
		"a*b": true, "axb": false, "": true, "other": false,
	} {
		if got := keys.Match([]byte(key)); got != want {
			t.Errorf("%q: %v", key, got)
		}
	}
	if (Patterns{}).Match(nil) || (Patterns{}).HasPatterns() || !keys.HasPatterns() {
		t.Error("no patterns match nothing")
	}
}

// TestPatternsLikeGlobs checks that Patterns match the same keys as Match does for each glob.
func TestPatternsLikeGlobs(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	word := func(pieces string, maxLength int) string {
		var b strings.Builder
		for range random.IntN(maxLength + 1) {
			b.WriteByte(pieces[random.IntN(len(pieces))])
		}
		return b.String()
	}
	for range 100_000 {
		patterns := []string{word(`aab*?[]\^-`, 6), word("ab*", 4)}
		key := word(`aab*?[]\^-`, 6)
		want := Match(patterns[0], key) || Match(patterns[1], key)
		if got := NewPatterns(patterns...).Match([]byte(key)); got != want {
			t.Fatalf("%q matches %q: %v", patterns, key, got)
		}
	}
}

func TestMatchAllocations(t *testing.T) {
	keys := NewPatterns("lock:*", "job-[0-9]*:lock", "*:lock")
	long := []byte("job-1" + strings.Repeat("x", 1000) + ":loc")
	if n := testing.AllocsPerRun(100, func() { keys.Match(long) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkLockKeys(b *testing.B) {
	keys := NewPatterns("lock:*", "job-lock:*", "schedule:*:lock")
	key := []byte("user:1234567:profile")
	for b.Loop() {
		keys.Match(key)
	}
}
