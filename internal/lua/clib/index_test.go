package clib

import (
	"strings"
	"testing"
)

// FuzzIndex compares Index with strings.Index, also on texts of two letters, which have many
// borders.
func FuzzIndex(f *testing.F) {
	f.Add("abababababababababababababababababababababc", "ababababababababababababababababc")
	f.Add(strings.Repeat("a", 100), strings.Repeat("a", 40)+"b")
	f.Fuzz(func(t *testing.T, text, part string) {
		twoLetters := func(s string) string {
			return strings.Map(func(r rune) rune { return 'a' + r%2 }, s)
		}
		for _, pair := range [][2]string{{text, part}, {twoLetters(text), twoLetters(part)},
			{strings.Repeat(twoLetters(text), 5), twoLetters(part) + twoLetters(text)}} {
			if got, want := Index(pair[0], pair[1]), strings.Index(pair[0], pair[1]); got != want {
				t.Errorf("%q in %q: at %d, not at %d", pair[1], pair[0], want, got)
			}
		}
	})
}
