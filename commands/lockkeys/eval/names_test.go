package eval

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"redlock-proxy/commands/catalog/keys"
	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/lockkeys/script"
)

func compile(t *testing.T, body string) *script.Script {
	t.Helper()
	s, err := script.Compile(t.Context(), body, script.Share{Time: -1})
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

// TestSearchWork checks that the search for lock keys takes limited work, however many calls a script
// has, and however many or long arguments. Beyond the limit, a script may use any lock key.
func TestSearchWork(t *testing.T) {
	long := strings.Repeat("x", 1<<19)
	for name, test := range map[string]struct {
		call      func(i int) string
		calls     int
		argv      []string
		isTooMuch bool
	}{
		"many calls and arguments":    {func(int) string { return "c('get', ARGV[i])" }, 10000, make([]string, 100000), true},
		"many calls, a long argument": {func(i int) string { return fmt.Sprintf("c('get', ARGV[1]..%d)", i) }, 10000, []string{long}, true},
		"a long name, many arguments": {func(int) string { return "c('get', '" + long + "'..ARGV[i])" }, 1, make([]string, 10000), true},
		"a usual batch": {func(i int) string {
			return fmt.Sprintf("c('set', 'a:'..ARGV[i], 1) c('set', ARGV[%d], ARGV[%d]) c('get', KEYS[1]..':%d')", i+1, i+2, i)
		}, 30, make([]string, 100000), false},
	} {
		var body strings.Builder
		for i := range test.calls {
			body.WriteString(test.call(i) + "\n")
		}
		n := namesOf(compile(t, "local c = redis.call for i = 1, 1 do\n"+body.String()+"end"))
		comparedBytes := 0
		s := search{
			IsLockKey: func(name []byte) bool { comparedBytes += comparisonWork + len(name); return false },
			Keys:      [][]byte{[]byte("x")}, Argv: syntax.Bytes(test.argv),
		}
		if found := s.findsLockKey(n); found != test.isTooMuch {
			t.Errorf("%s: found a lock key: %v", name, found)
		}
		if comparedBytes > 2*maxWork { // a name may be compared with each of two fillers
			t.Errorf("%s: %d bytes", name, comparedBytes)
		}
	}
}

// TestManyNames checks that a script with very many names is searched whole.
func TestManyNames(t *testing.T) {
	var body strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&body, "c('get', 'x%d')\n", i)
	}
	n := namesOf(compile(t, "local c = redis.call\n"+body.String()+"c('set', 'lo'..'ck:a', 'v')"))
	s := search{IsLockKey: keys.NewPatterns("lock:*").Match, Keys: [][]byte{[]byte("x")}}
	if !s.findsLockKey(n) {
		t.Error("the last name was not found")
	}
}
