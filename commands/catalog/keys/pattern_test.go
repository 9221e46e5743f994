package keys

import (
	"errors"
	"strings"
	"testing"
)

// matches implements globs by trying every way.
func matches(pattern, name string) bool {
	if pattern == "" {
		return name == ""
	}
	if pattern[0] == '*' {
		return matches(pattern[1:], name) || name != "" && matches(pattern, name[1:])
	}
	if name == "" {
		return false
	}
	size, ok := matchOne(pattern, name[0])
	return ok && matches(pattern[size:], name[1:])
}

// FuzzPattern compares three matchers on patterns and names of few characters.
func FuzzPattern(f *testing.F) {
	for _, seed := range [][2]string{
		{"*a*b", "axb"}, {"[^a-c]*?", "xyz"}, {`\\*[\]]`, "*]"}, {"a**[", "a["}, {"[a-]*", "]a"}, {"*[]a", "a"},
		{"*aab*aab", "aaabaab"}, {`*\`, `\`}, {`[\`, `\`},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, pattern, name string) {
		few := func(s, of string) string {
			b := []byte(s[:min(len(s), 14)])
			for i := range b {
				b[i] = of[int(b[i])%len(of)]
			}
			return string(b)
		}
		for _, pair := range [][2]string{{few(pattern, `*?[]^-\abc`), few(name, `abc]\`)},
			{few(pattern, "*?ab"), few(name, "ab")}, {few(pattern, "*a"), few(name, "ab")}} {
			want := matches(pair[0], pair[1])
			if Match(pair[0], pair[1]) != want {
				t.Errorf("Match: %q and %q: %v", pair[0], pair[1], !want)
			}
			if got, err := Compile(pair[0]).Match(pair[1]); got != want || err != nil {
				t.Errorf("Pattern: %q and %q: %v, %v", pair[0], pair[1], got, err)
			}
		}
	})
}

// TestPatternsAreLinear checks that the number of comparisons is linear in the lengths of pattern
// and name. A matcher that backtracks to the last * takes minutes for these patterns.
func TestPatternsAreLinear(t *testing.T) {
	const size = 4 << 20
	name := strings.Repeat("a", size)
	for _, pattern := range []string{"*" + name[:size/2] + "b", "*" + name[:size/2] + "b*",
		strings.Repeat("*a", 1000) + "*" + name[:size/2] + "b*c*"} {
		if matched, err := Compile(pattern).Match(name); matched || err != nil {
			t.Errorf("%.20q: %v, %v", pattern, matched, err)
		}
	}
	for _, pattern := range []string{"*" + strings.Repeat("?", size/2) + "b*", "*[a]" + name[:size/2] + "b*"} {
		if _, err := Compile(pattern).Match(name); !errors.Is(err, ErrTooComplex) {
			t.Errorf("%.20q: %v", pattern, err)
		}
	}
	if matched, err := Compile("*" + strings.Repeat("?", 62) + "b*").Match(name); matched || err != nil {
		t.Errorf("a pattern of 63 places: %v, %v", matched, err)
	}
}
