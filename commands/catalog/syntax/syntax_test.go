package syntax

import (
	"strings"
	"testing"
)

func TestLower(t *testing.T) {
	for word, want := range map[string]string{"": "", "get": "get", "GeT": "get", "\u212aEY": "\u212aey",
		"A\x00B": "a\x00b", "\xc9": "\xc9"} {
		input := []byte(word)
		if got := Lower(input); got != want || Lower(word) != want || string(input) != word {
			t.Errorf("%q: %q, and then it is %q", word, got, input)
		}
	}
	if got := LowerCString([]byte("STORE\x00x")); got != "store" {
		t.Errorf("%q", got)
	}
}

func TestInt(t *testing.T) {
	for word, want := range map[string]bool{
		"0": true, "-1": true, "9223372036854775807": true, "9223372036854775808": false,
		"": false, "+1": false, "01": false, "-0": false, " 1": false, "1.0": false, "x": false,
	} {
		if _, ok := Int(word); ok != want {
			t.Errorf("%q: %v", word, ok)
		}
	}
}

func TestNames(t *testing.T) {
	names := NewNames(map[string]string{"lock": "lock", "set": "set", strings.Repeat("l", maxNameLength): "long"})
	for name, want := range map[string]string{
		"lock": "lock", "LoCK": "lock", "SET": "set", strings.Repeat("L", maxNameLength): "long",
		"": "", "loc": "", "lock\x00": "", "LOC\u212a": "", " set": "", "sat": "",
		strings.Repeat("l", maxNameLength+1): "",
	} {
		if got := names.Find([]byte(name)); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}
