package lua

import (
	"errors"
	"reflect"
	"testing"

	"redlock-proxy/internal/lua/meter"
	"redlock-proxy/internal/lua/syntax"
)

// TestArgumentsOfGoFunctions checks that Go functions check their arguments with the same errors as
// C functions.
func TestArgumentsOfGoFunctions(t *testing.T) {
	functionEntry := func(read func(c *Call) Value) Entry {
		return Entry{"f", func(c *Call) []Value { return c.Return(read(c)) }}
	}
	for _, test := range []struct {
		source string
		read   func(c *Call) Value
		want   Value // or the text of the error
	}{
		{`return f()`, func(c *Call) Value { return c.Arg(1) }, nil},
		{`return f(1, 2)`, func(c *Call) Value { return float64(c.NArgs()) }, 2.0},
		{`return f()`, func(c *Call) Value { return c.WantAny(1) }, "test:1: bad argument #1 to 'f' (value expected)"},
		{`local x = f(nil) return x`, func(c *Call) Value { return c.WantString(1) },
			"test:1: bad argument #1 to 'f' (string expected, got nil)"},
		{`return f(12)`, func(c *Call) Value { return c.WantString(1) }, "12"},
		{`return f(nil)`, func(c *Call) Value { return c.OptString(1, "otherwise") }, "otherwise"},
		{`return f("given")`, func(c *Call) Value { return c.OptString(1, "otherwise") }, "given"},
		{`return f("0x10")`, func(c *Call) Value { return c.WantNumber(1) }, 16.0},
		{`local x = f({}) return x`, func(c *Call) Value { return c.WantNumber(1) },
			"test:1: bad argument #1 to 'f' (number expected, got table)"},
		{`return f(-2.9)`, func(c *Call) Value { return float64(c.WantInt(1)) }, -2.0},
		{`return f()`, func(c *Call) Value { return float64(c.OptInt(1, 7)) }, 7.0},
		{`return f(8)`, func(c *Call) Value { return float64(c.OptInt(1, 7)) }, 8.0},
		{`return f(2^32 + 5)`, func(c *Call) Value { return float64(c.WantInt32(1)) }, 5.0},
		{`local x = f("t") return x`, func(c *Call) Value { return c.WantTable(1) },
			"test:1: bad argument #1 to 'f' (table expected, got string)"},
		{`local x = f() return x`, func(c *Call) Value { return c.Fail("no %d", 1) }, "test:1: no 1"},
		{`local x = f() return x`, func(c *Call) Value { return c.Raise("bare") }, "bare"},
	} {
		value, err := run(t, test.source, meter.Limits{}, functionEntry(test.read))
		if raised, ok := errors.AsType[*Error](err); ok {
			value = raised.Error()
		}
		if value != test.want {
			t.Errorf("%s: %v (%v), want %v", test.source, value, err, test.want)
		}
	}
}

// TestValuesFromGo checks that Go values become Lua values.
func TestValuesFromGo(t *testing.T) {
	state := NewState(meter.Limits{Bytes: 1000})
	list := state.NewArray([]Value{"a", 2.0, true})
	if list.Len() != 3 || list.Get(2.0) != 2.0 || list.Get(nil) != nil || list.Get(4.0) != nil {
		t.Errorf("%v", list)
	}
	if empty := state.NewArray(nil); empty.Len() != 0 {
		t.Errorf("%v", empty)
	}
	state.Set(list, "name", state.Text("x"))
	if list.Get("name") != "x" || list.Get(1.5) != nil {
		t.Errorf("%v", list)
	}
	if err := state.Protect(func() { state.Charge(1001) }); !errors.Is(err, meter.ErrMemory) {
		t.Error(err)
	}
	if err := state.Protect(func() { state.Charge(-1) }); !errors.Is(err, meter.ErrMemory) {
		t.Error(err)
	}
}

// TestGoPanicsPropagate checks that the panic of a bug, unlike that of a Lua error, is not
// recovered.
func TestGoPanicsPropagate(t *testing.T) {
	defer func() {
		if recover() != "mistake" {
			t.Error("the panic was recovered")
		}
	}()
	_, _ = run(t, "f()", meter.Limits{}, Entry{"f", func(*Call) []Value { panic("mistake") }})
}

// TestObjects checks that objects have types, names and distinct addresses.
func TestObjects(t *testing.T) {
	value, err := run(t, `local g = function() end local t = {[f] = 1, [g] = 2, [null] = 3, [true] = 4}
		return type(null) .. " " .. tostring(null) .. " " .. t[f] + t[g] + t[null] + t[true] .. " " .. tostring(f):match("^function: 0x") .. tostring({}):match("^table: 0x")`,
		meter.Limits{}, Entry{"f", NewBuilder().Function(nil)}, Entry{"null", Null})
	if want := "userdata userdata: (nil) 10 function: 0xtable: 0x"; err != nil || value != want {
		t.Errorf("%v %v, want %s", value, err, want)
	}
}

// TestExtendedLibrary checks that a library can be extended, and that its entries can be replaced.
func TestExtendedLibrary(t *testing.T) {
	b := NewBuilder()
	library := b.CopyWith(b.Table(Entry{"a", 1.0}, Entry{"b", 2.0}), Entry{"b", 3.0}, Entry{"c", 4.0})
	if library.Get("a") != 1.0 || library.Get("b") != 3.0 || library.Get("c") != 4.0 {
		t.Errorf("%v", library)
	}
}

func TestLiterals(t *testing.T) {
	m := meter.New(meter.Limits{}, 0)
	got, err := syntax.Literals(&m, `f("a", 'b', [[c]], x.y, "a") -- "d"`, "@name")
	if want := []string{"a", "b", "c", "a"}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%q %v, want %q", got, err, want)
	}
	if _, err := syntax.Literals(&m, `"open`, "@name"); err == nil ||
		err.Error() != `name:1: unfinished string near '<eof>'` {
		t.Error(err)
	}
}
