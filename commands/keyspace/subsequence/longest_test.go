package subsequence

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestLongest(t *testing.T) {
	for _, c := range []struct{ a, b, text, parts string }{
		{"ohmytext", "mynewtext", "mytext", "[{{4 7} {5 8}} {{2 3} {0 1}}]"},
		{"", "x", "", "[]"},
		{"x", "", "", "[]"},
		{"x", "x", "x", "[{{0 0} {0 0}}]"},
		{"abc", "xyz", "", "[]"},
		{"ab", "ba", "b", "[{{1 1} {0 0}}]"},
	} {
		text, parts, ok := Longest(c.a, c.b)
		if got := fmt.Sprint(parts); text != c.text || got != c.parts || !ok {
			t.Errorf("%q and %q: %q %s, want %q %s", c.a, c.b, text, got, c.text, c.parts)
		}
	}
	if _, _, ok := Longest(strings.Repeat("x", 2048), strings.Repeat("x", 2048)); ok {
		t.Error("there is no bound")
	}
}

// TestLongestIsLongest: no longer text is in both, by trying all texts of one of them, and the parts are where they are said to be.
func TestLongestIsLongest(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	some := func() string {
		text := make([]byte, random.IntN(9))
		for i := range text {
			text[i] = "abc"[random.IntN(3)]
		}
		return string(text)
	}
	for range 3000 {
		a, b := some(), some()
		text, parts, _ := Longest(a, b)
		if !isIn(text, a) || !isIn(text, b) || len(text) != longestByTrial(a, b) {
			t.Fatalf("%q and %q: %q", a, b, text)
		}
		for _, p := range parts {
			if a[p.A.First:p.A.Last+1] != b[p.B.First:p.B.Last+1] || !strings.Contains(text, a[p.A.First:p.A.Last+1]) {
				t.Fatalf("%q and %q: %q, but %v", a, b, text, parts)
			}
		}
	}
}

func isIn(text, whole string) bool {
	for i := range len(whole) {
		if text != "" && whole[i] == text[0] {
			text = text[1:]
		}
	}
	return text == ""
}

func longestByTrial(a, b string) (longest int) {
	for chosen := range 1 << len(a) {
		var text []byte
		for i := range len(a) {
			if chosen>>i&1 == 1 {
				text = append(text, a[i])
			}
		}
		if len(text) > longest && isIn(string(text), b) {
			longest = len(text)
		}
	}
	return longest
}
