package keys

import (
	"strings"
	"testing"
)

func TestMatchGlob(t *testing.T) {
	tests := []struct {
		pattern, name string
		want          bool
	}{
		{"", "", true}, {"", "a", false}, {"a", "", false}, {"save", "save", true}, {"save", "saved", false},
		{"saved", "save", false},
		{"*", "", true}, {"*", "save", true}, {"**", "", true}, {"s*", "save", true}, {"*e", "save", true},
		{"*a*", "save", true},
		{"s*e", "save", true}, {"s*x*", "save", false}, {"*ve*", "save", true}, {"*a*a*", "save", false},
		{"a*b*c", "axbxbxc", true},
		{"?", "", false}, {"?", "a", true}, {"????", "save", true}, {"???", "save", false}, {"?*", "save", true},
		{"*????", "save", true}, {"*?????", "save", false},
		{"[s]ave", "save", true}, {"[xyz]ave", "save", false}, {"[a-z]ave", "save", true}, {"[z-a]ave", "save", true},
		{"[^a]ave", "save", true},
		{"[^s]ave", "save", false}, {"[^a-z]ave", "save", false}, {"s[ab-]ve", "save", false},
		{"s[a-c-]ve", "s-ve", true}, {"[", "[", false}, {"[", "", false},
		{"[a", "a", true}, {"[^", "a", true}, {"[]", "a", false}, {"[]a", "a", false}, {`[\]]`, "]", true},
		{`[\-x]`, "-", true}, {`[a\`, `\`, true},
		{`\*`, "*", true}, {`\*`, "a", false}, {`\s\a`, "sa", true}, {`\`, `\`, true}, {`\\`, `\`, true},
		{`*\`, `a\`, true},
	}
	for _, test := range tests {
		if got := Match(test.pattern, test.name); got != test.want {
			t.Errorf("%q matches %q: %v", test.pattern, test.name, got)
		}
	}
}

// TestMatchTime checks that Match is fast for patterns on which full backtracking takes
// days. A command can contain many such patterns.
func TestMatchTime(t *testing.T) {
	name := strings.Repeat("a", 1000)
	for range 100 {
		if Match(strings.Repeat("*?a", 300)+"*b", name) {
			t.Fatal("matched")
		}
	}
}
