package lua

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"redlock-proxy/internal/lua/meter"
)

// officialDirEnv is the environment variable with the directory of the test suite of Lua 5.1
// (lua.org/tests, for 5.1). The suite is not part of this repository.
const officialDirEnv = "REDLOCK_LUA_TESTS"

// officialFiles lists the files of the suite, except those that test I/O, a shell, hooks, or the
// suite's own library in C.
var officialFiles = []string{"attrib", "big", "calls", "closure", "constructs", "errors", "events", "gc", "literals",
	"locals", "math",
	"nextvar", "pm", "sort", "strings", "vararg", "verybig"}

// omittedParts lists the parts of files that need features that scripts in Redis do not have. Each
// part begins and ends with the given texts. blankOut keeps the line ends of a part, because the
// files check line numbers.
var omittedParts = map[string][][2]string{
	// require, module and files
	"attrib": {{"do --[", "end  --]"}},
	// a string of 4 GB, which is too long only if addresses have 32 bits
	"big": {{"local longs", "print('+')"}},
	// string.dump, and the fields of debug about the variables of a closure
	"calls": {{"x = string.dump(loadstring(", "assert(a() == 1 and _G.x == 1)"},
		{"x = loadstring(string.dump(function (x)", "assert(x() == 24)"}},
	// loops that wait until the collector empties a weak table; the line where a function is
	// defined; coroutines
	"closure": {{"while x[1] do", "end"}, {"assert(debug.getinfo(1).currentline", "debug.getinfo(goo).linedefined)"},
		{"-- coroutine tests", "a.a)"}},
	// the stack while an error is handled
	"errors": {{"-- teste de linhas em erro", "assert(i > 15)"}},
	// coroutines
	"literals": {{"-- generate all strings of four", "..s..\"]====]\")())\nend"}},
	// newproxy and metatables of numbers
	"events": {{"-- testing proxies", "getmetatable(u))"}, {"-- testing metatables for basic types", "print 'OK'"}},
	// the time at which memory is freed; weak tables and finalizers
	"gc": {{"local bytes = gcinfo()", "newproxy(u)) end\nend"}},
}

// TestOfficial checks that the official tests of Lua 5.1 pass.
func TestOfficial(t *testing.T) {
	dir := os.Getenv(officialDirEnv)
	if dir == "" {
		t.Skipf("NOT RUN: %s does not name a directory with the official tests of Lua 5.1", officialDirEnv)
	}
	for _, name := range officialFiles {
		t.Run(name, func(t *testing.T) { runOfficial(t, dir, name) })
	}
}

func runOfficial(t *testing.T, dir, name string) {
	text, err := os.ReadFile(filepath.Join(dir, name+".lua"))
	if err != nil {
		t.Fatal(err)
	}
	source := string(text)
	for _, ends := range omittedParts[name] {
		if source, err = blankOut(source, ends[0], ends[1]); err != nil {
			t.Fatal(err)
		}
	}
	chunk, err := compile(source, "@"+name+".lua")
	if err != nil {
		t.Fatal(err)
	}
	state := NewState(meter.Limits{Watch: startWatch(t, 10*time.Minute)})
	if _, err := state.Run(chunk, officialGlobals(state, dir)); err != nil {
		t.Error(err)
	}
}

// blankOut removes the first part of text that begins with from and ends with to, except line ends.
func blankOut(text, from, to string) (string, error) {
	head, rest, ok := strings.Cut(text, from)
	if !ok {
		return "", errors.New("the suite has no " + from)
	}
	part, tail, ok := strings.Cut(rest, to)
	if !ok {
		return "", errors.New("the suite has no " + to + " after " + from)
	}
	return head + notNewlines.ReplaceAllString(from+part+to, "") + tail, nil
}

var notNewlines = regexp.MustCompile(`[^\n]+`)
