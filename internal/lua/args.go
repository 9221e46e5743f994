package lua

import (
	"fmt"
	"math"

	"redlock-proxy/internal/lua/clib"
	"redlock-proxy/internal/lua/meter"
)

// What a Go function gets from its Call, counted from 1 as in messages. An argument of a wrong type
// is an error of Lua in C Lua's words.

// NArgs is the number of arguments.
func (c *Call) NArgs() int { return len(c.slots) }

// Arg is an argument, nil if there are fewer.
func (c *Call) Arg(i int) Value {
	if i > len(c.slots) {
		return nil
	}
	return c.slots[i-1]
}

// Args are all arguments. They are not to be kept.
func (c *Call) Args() []Value { return c.slots }

// Return makes the result of a function.
func (c *Call) Return(values ...Value) []Value {
	t := c.thread
	t.results = append(t.results[:0], values...)
	return t.results
}

// State is the run.
func (c *Call) State() *State { return c.thread.state }

// Fail raises an error with the position of the caller.
func (c *Call) Fail(format string, args ...any) []Value {
	c.thread.raise(c.caller.where() + fmt.Sprintf(format, args...))
	return nil
}

// Raise raises a value as the error.
func (c *Call) Raise(v Value) []Value {
	c.thread.raise(v)
	return nil
}

// Abort ends the run with an error that no pcall catches; Run returns it as it is.
func (c *Call) Abort(err error) { panic(meter.Ended{Err: err}) }

// BadArg raises an error about an argument.
func (c *Call) BadArg(i int, problem string) {
	name := "?"
	if c.site != nil && c.site.kind != "" {
		name = c.site.name
		if c.site.kind == "method" {
			if i--; i == 0 {
				c.Fail("calling '%s' on bad self (%s)", name, problem)
			}
		}
	}
	c.Fail("bad argument #%d to '%s' (%s)", i, name, problem)
}

// wrongType raises that an argument is not of the type that is wanted.
func (c *Call) wrongType(i int, want string) {
	got := "no value"
	if i <= len(c.slots) {
		got = TypeName(c.slots[i-1])
	}
	c.BadArg(i, want+" expected, got "+got)
}

// WantAny is any argument, but there must be one.
func (c *Call) WantAny(i int) Value {
	if i > len(c.slots) {
		c.BadArg(i, "value expected")
	}
	return c.slots[i-1]
}

// WantString is a string, or a number as a string.
func (c *Call) WantString(i int) string {
	s, ok := ToString(c.Arg(i))
	if !ok {
		c.wrongType(i, "string")
	}
	return s
}

// OptString is WantString with a default for nil.
func (c *Call) OptString(i int, otherwise string) string {
	if c.Arg(i) == nil {
		return otherwise
	}
	return c.WantString(i)
}

// WantNumber is a number, or a string that reads as one.
func (c *Call) WantNumber(i int) float64 {
	n, ok := c.State().Number(c.Arg(i))
	if !ok {
		c.wrongType(i, "number")
	}
	return n
}

// WantInt is a number without its fraction, as a 64-bit integer.
func (c *Call) WantInt(i int) int { return int(clib.Truncate(c.WantNumber(i))) }

// OptInt is WantInt with a default for nil.
func (c *Call) OptInt(i, otherwise int) int {
	if c.Arg(i) == nil {
		return otherwise
	}
	return c.WantInt(i)
}

// WantInt32 is WantInt cut to 32 bits, as C's int.
func (c *Call) WantInt32(i int) int { return int(int32(c.WantInt(i))) }

// WantTable is a table.
func (c *Call) WantTable(i int) *Table {
	t, ok := c.Arg(i).(*Table)
	if !ok {
		c.wrongType(i, "table")
	}
	return t
}

// readonly raises that a table cannot be changed.
func (c *Call) readonly() { c.Raise("Attempt to modify a readonly table") }

func (c *Call) wantFunction(i int) Value {
	f := c.Arg(i)
	if !isFunction(f) {
		c.wrongType(i, "function")
	}
	return f
}

// rawSet is a table's change by a Go function.
func (c *Call) rawSet(t *Table, key, value Value) {
	if t.frozen {
		c.readonly()
	}
	switch k := key.(type) {
	case nil:
		c.Raise("table index is nil")
	case float64:
		if math.IsNaN(k) {
			c.Raise("table index is NaN")
		}
	}
	t.set(key, value)
}

// ReturnText is Return of one string, which it charges to the run.
func (c *Call) ReturnText(s string) []Value { return c.Return(c.State().Text(s)) }
