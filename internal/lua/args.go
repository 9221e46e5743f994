package lua

import (
	"fmt"
	"math"

	"redlock-proxy/internal/lua/clib"
	"redlock-proxy/internal/lua/meter"
)

// The methods below read the arguments of a Go function, return its results, and raise its errors.
// They count arguments from 1, as error messages do. For an argument of a wrong type they raise C
// Lua's error.

// NArgs returns the number of arguments.
func (c *Call) NArgs() int { return len(c.slots) }

// Arg returns the i-th argument, or nil if there are fewer arguments.
func (c *Call) Arg(i int) Value {
	if i > len(c.slots) {
		return nil
	}
	return c.slots[i-1]
}

// Args returns all arguments. The caller must not keep the slice.
func (c *Call) Args() []Value { return c.slots }

// Return returns values as the result of a function.
func (c *Call) Return(values ...Value) []Value {
	t := c.thread
	t.results = append(t.results[:0], values...)
	return t.results
}

// State returns the state of the run.
func (c *Call) State() *State { return c.thread.state }

// Fail raises an error with the position of the caller. It does not return.
func (c *Call) Fail(format string, args ...any) []Value {
	c.thread.raise(c.caller.position() + fmt.Sprintf(format, args...))
	return nil
}

// Raise raises a value as an error. It does not return.
func (c *Call) Raise(v Value) []Value {
	c.thread.raise(v)
	return nil
}

// Abort ends the run. pcall does not catch the error, and Run returns it unchanged.
func (c *Call) Abort(err error) { panic(meter.RunEnd{Err: err}) }

// RaiseBadArg raises an error about the i-th argument. It does not return.
func (c *Call) RaiseBadArg(i int, problem string) {
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

// raiseWrongType raises the error for an argument that does not have the required type.
func (c *Call) raiseWrongType(i int, want string) {
	got := "no value"
	if i <= len(c.slots) {
		got = TypeName(c.slots[i-1])
	}
	c.RaiseBadArg(i, want+" expected, got "+got)
}

// WantAny returns the i-th argument, which must be present.
func (c *Call) WantAny(i int) Value {
	if i > len(c.slots) {
		c.RaiseBadArg(i, "value expected")
	}
	return c.slots[i-1]
}

// WantString returns the i-th argument, a string or a number, as a string.
func (c *Call) WantString(i int) string {
	s, ok := ToString(c.Arg(i))
	if !ok {
		c.raiseWrongType(i, "string")
	}
	return s
}

// OptString returns the i-th argument like WantString, or a default for nil.
func (c *Call) OptString(i int, fallback string) string {
	if c.Arg(i) == nil {
		return fallback
	}
	return c.WantString(i)
}

// WantNumber returns the i-th argument, a number or a numeric string, as a number.
func (c *Call) WantNumber(i int) float64 {
	n, ok := c.State().Number(c.Arg(i))
	if !ok {
		c.raiseWrongType(i, "number")
	}
	return n
}

// WantInt returns the i-th argument, a number, as a 64-bit integer without the fraction.
func (c *Call) WantInt(i int) int { return int(clib.Truncate(c.WantNumber(i))) }

// OptInt returns the i-th argument like WantInt, or a default for nil.
func (c *Call) OptInt(i, fallback int) int {
	if c.Arg(i) == nil {
		return fallback
	}
	return c.WantInt(i)
}

// WantInt32 returns the lowest 32 bits of WantInt, as a conversion to C's int does.
func (c *Call) WantInt32(i int) int { return int(int32(c.WantInt(i))) }

// WantTable returns the i-th argument, which must be a table.
func (c *Call) WantTable(i int) *Table {
	t, ok := c.Arg(i).(*Table)
	if !ok {
		c.raiseWrongType(i, "table")
	}
	return t
}

// raiseReadonly raises the error for a change of a readonly table.
func (c *Call) raiseReadonly() { c.Raise("Attempt to modify a readonly table") }

func (c *Call) wantFunction(i int) Value {
	f := c.Arg(i)
	if !isFunction(f) {
		c.raiseWrongType(i, "function")
	}
	return f
}

// rawSet sets the value of a key without metamethods, for a Go function.
func (c *Call) rawSet(t *Table, key, value Value) {
	if t.frozen {
		c.raiseReadonly()
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

// ReturnText charges a string to the run, and returns it as the result of a function.
func (c *Call) ReturnText(s string) []Value { return c.Return(c.State().Text(s)) }
