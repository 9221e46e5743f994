package eval

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"redlock-proxy/commands/catalog/keys"
	"redlock-proxy/commands/lockkeys/script"
)

func compile(t *testing.T, body string) *script.Script {
	t.Helper()
	s, err := script.Compile(t.Context(), body, script.Share{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestKeysOfChangesNoScript checks that the search for keys writes nothing to a script, which all
// clients share: also not behind its literals.
func TestKeysOfChangesNoScript(t *testing.T) {
	sc := compile(t, `return redis.call('set', ARGV[1], 'x', 'nx')`)
	literals := sc.Literals()
	if cap(literals) == len(literals) {
		t.Fatal("the literals have no spare capacity")
	}
	s := &Scripts{opts: Options{LockKeys: keys.NewPatterns("lock:*")}}
	if got := s.keysOf(invocation{script: sc, argv: []string{"lock:a"}}); !slices.Equal(got, []string{"lock:a"}) {
		t.Errorf("%q", got)
	}
	if behind := literals[:len(literals)+1][len(literals)]; behind != "" {
		t.Errorf("behind the literals: %q", behind)
	}
}

// TestSearchTime checks that the search for lock keys among many arguments takes a limited time:
// however many calls a script has, and however many arguments.
func TestSearchTime(t *testing.T) {
	for name, call := range map[string]func(i int) string{
		"equal calls":     func(int) string { return "c('get', ARGV[i])" },
		"different calls": func(i int) string { return fmt.Sprintf("c('get', ARGV[i]..%d)", i) },
	} {
		var body strings.Builder
		for i := range 10000 {
			body.WriteString(call(i) + "\n")
		}
		n := namesOf(compile(t, "local c = redis.call for i = 1, 1 do\n"+body.String()+"end"))
		comparisons := 0
		s := search{
			IsLockKey: func([]byte) bool { comparisons++; return false },
			Keys:      [][]byte{[]byte("x")}, Argv: make([][]byte, 100000),
		}
		if found, want := s.findsLockKey(n), name == "different calls"; found != want {
			t.Errorf("%s: found a lock key: %v", name, found)
		}
		if comparisons > 2*maxComparisons {
			t.Errorf("%s: %d comparisons", name, comparisons)
		}
	}
}
