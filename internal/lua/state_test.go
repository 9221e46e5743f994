package lua

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"redlock-proxy/internal/lua/meter"
	"redlock-proxy/internal/lua/syntax"
)

func run(t *testing.T, source string, limits meter.Limits, globals ...Entry) (Value, error) {
	t.Helper()
	chunk, err := compile(source, "@test")
	if err != nil {
		t.Fatal(err)
	}
	state := NewState(limits)
	shared := NewBuilder().Table(append(StandardEntries(), globals...)...)
	return state.Run(chunk, state.NewGlobals(shared, 0))
}

// compile compiles without a limit.
func compile(source, name string) (*Chunk, error) {
	m := meter.New(meter.Limits{}, 0)
	tree, err := syntax.Parse(&m, source, name)
	if err != nil {
		return nil, err
	}
	return Compile(&m, tree), nil
}

func ExampleState_Run() {
	m := meter.New(meter.Limits{}, 0)
	tree, err := syntax.Parse(&m, "return 1 + x", "@name")
	if err != nil {
		panic(err)
	}
	state := NewState(meter.Limits{})
	globals := state.NewTable()
	state.Set(globals, "x", 2.0)
	fmt.Println(state.Run(Compile(&m, tree), globals))
	// Output: 3 <nil>
}

// TestBuiltin checks that a Go function gets its arguments, and Lua gets its results.
func TestBuiltin(t *testing.T) {
	var got []Value
	value, err := run(t, `local a, b = f(1, "x", nil) return b .. a`, meter.Limits{}, Entry{"f", func(c *Call) []Value {
		got = append(got, c.Args()...)
		return c.Return(1.0, "result")
	}})
	if err != nil || value != "result1" || !reflect.DeepEqual(got, []Value{1.0, "x", nil}) {
		t.Errorf("%v %v of %v", value, err, got)
	}
}

// TestAbort checks that neither pcall nor xpcall catches an abort.
func TestAbort(t *testing.T) {
	stop := errors.New("stop")
	for _, source := range []string{
		`abort()`, `xpcall(abort, abort)`, `xpcall(function() abort() end, function() end)`,
		`setmetatable({}, {__index = abort}).x = abort; return setmetatable({}, {__index = abort}).x`,
		`return string.gsub("abc", ".", abort)`, `table.sort({1, 2, 3}, abort)`, `for x in abort do end`,
	} {
		if _, err := run(t, source, meter.Limits{}, Entry{"abort",
			func(c *Call) []Value { c.Abort(stop); return nil }}); err != stop {
			t.Errorf("%s: %v", source, err)
		}
	}
}

// TestErrorPosition checks that an error has the position of the code that raised it.
func TestErrorPosition(t *testing.T) {
	for source, want := range map[string]Error{
		"local x\nreturn x.y":                        {"test:2: attempt to index local 'x' (a nil value)", "@test", 2},
		"\n\nerror('e')":                             {"test:3: e", "@test", 3},
		"local function f()\nerror('e', 2) end\nf()": {"test:3: e", "@test", 2},
		"string.gsub('a', 'a', error)":               {"a", "=[C]", -1},
		"local function f() return 1 + f() end\nf()": {"test:1: stack overflow", "@test", 1},
		"return loadstring('return 1 + {}', '@other')()": {"other:1: attempt to perform arithmetic on a table value",
			"@other", 1},
	} {
		_, err := run(t, source, meter.Limits{})
		var got *Error
		if !errors.As(err, &got) || *got != want {
			t.Errorf("%q: %+v, want %+v", source, err, want)
		}
	}
}

// TestFrozenTable checks that not even Go functions can change a frozen table.
func TestFrozenTable(t *testing.T) {
	for _, change := range []string{`t.x = 1`, `t[1] = 1`, `t.a = nil`, `rawset(t, "a", 1)`, `table.insert(t, 1)`,
		`setmetatable(t, {})`, `table.sort(t, function() return true end)`,
		`table.remove(t)`, `function t.f() end`, `t.a, t.b = 1, 2`} {
		table := NewBuilder().Table(Entry{"a", "kept"})
		table.frozen = false
		table.set(1.0, 2.0)
		table.set(2.0, 1.0)
		table.frozen = true
		if _, err := run(t, change, meter.Limits{}, Entry{"t", table}); err == nil {
			t.Errorf("%s: no error", change)
		}
		if table.Get("a") != "kept" || table.Len() != 2 || table.Get("x") != nil || table.Get(1.0) != 2.0 {
			t.Errorf("%s changed the table", change)
		}
	}
}

// TestRecursion checks that endless recursion of any kind is a Lua error, not a Go error.
func TestRecursion(t *testing.T) {
	nested := "f(n + 1)"
	for range 60 {
		nested = "(1 + " + nested + ")"
	}
	for _, source := range []string{
		"local function f(n) return 1 + f(n + 1) end return f(1)",
		"local function f(n) return {f(n + 1)} end return f(1)",
		"local function f() for i = 1, 2 do if true then do while true do f() end end end end end return f()",
		"local f f = function(n) return " + nested + " end return f(1)",
		"local t = setmetatable({}, {}) getmetatable(t).__index = function(t, k) return t[k + 1] end return t[1]",
		"local function f() string.gsub('a', 'a', f) end return f()",
	} {
		var overflow *Error
		if _, err := run(t, source, meter.Limits{Bytes: 16 << 20}); !errors.As(err, &overflow) ||
			!strings.HasSuffix(overflow.Error(), "stack overflow") {
			t.Errorf("%.60s: %v", source, err)
		}
	}
}
