package keys

import (
	"errors"
	"strings"
	"testing"
)

// matchesByRecursion reports whether a glob matches a name. It tries all possibilities.
func matchesByRecursion(pattern, name string) bool {
	if pattern == "" {
		return name == ""
	}
	if pattern[0] == '*' {
		return matchesByRecursion(pattern[1:], name) || name != "" && matchesByRecursion(pattern, name[1:])
	}
	if name == "" {
		return false
	}
	size, ok := matchOne(pattern, name[0])
	return ok && matchesByRecursion(pattern[size:], name[1:])
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
		reduce := func(s, alphabet string) string {
			b := []byte(s[:min(len(s), 14)])
			for i := range b {
				b[i] = alphabet[int(b[i])%len(alphabet)]
			}
			return string(b)
		}
		for _, pair := range [][2]string{{reduce(pattern, `*?[]^-\abc`), reduce(name, `abc]\`)},
			{reduce(pattern, "*?ab"), reduce(name, "ab")}, {reduce(pattern, "*a"), reduce(name, "ab")}} {
			want := matchesByRecursion(pair[0], pair[1])
			if Match(pair[0], pair[1]) != want {
				t.Errorf("Match: %q and %q: %v", pair[0], pair[1], !want)
			}
			if got, err := Compile(pair[0]).Match(pair[1]); got != want || err != nil {
				t.Errorf("Pattern: %q and %q: %v, %v", pair[0], pair[1], got, err)
			}
		}
	})
}

// TestPatternMatchTime checks that the number of comparisons is linear in the lengths of pattern
// and name. A matcher that backtracks to the last * takes minutes for these patterns.
func TestPatternMatchTime(t *testing.T) {
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
