package lua

import (
	"fmt"
	"strconv"

	"redlock-proxy/internal/lua/clib"
)

// Value is a Lua value: nil, bool, float64, string, *Table, *Closure, *Builtin or *Userdata.
type Value = any

// Userdata is a value that Lua can only store and compare.
type Userdata struct{ address uint32 }

// Null is the value cjson.null, a null pointer.
var Null = &Userdata{}

// TypeName returns the name of a value's type, as type() does.
func TypeName(v Value) string {
	switch v.(type) {
	case nil:
		return "nil"
	case bool:
		return "boolean"
	case float64:
		return "number"
	case string:
		return "string"
	case *Table:
		return "table"
	case *Closure, *Builtin:
		return "function"
	}
	return "userdata"
}

// IsTruthy reports whether a value counts as true: all values except nil and false.
func IsTruthy(v Value) bool {
	b, ok := v.(bool)
	return v != nil && (!ok || b)
}

// ToString returns a string, or a number as Lua prints it. ok is false for other types.
func ToString(v Value) (s string, ok bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case float64:
		return clib.FormatNumber(v), true
	}
	return "", false
}

// Number returns a number, or parses a string as a number; ok is false for other values.
func (s *State) Number(v Value) (n float64, ok bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case string:
		s.meter.ChargeWork(len(v) * digitWork)
		return clib.ParseNumber(v)
	}
	return 0, false
}

// digitWork is the cost of parsing a digit, in bytes processed.
const digitWork = 8

// addressOf returns the address of an object, which tostring prints. Addresses count up within a
// run, so that a script returns the same reply each time.
func addressOf(v Value) uint32 {
	switch v := v.(type) {
	case *Table:
		return v.address
	case *Closure:
		return v.address
	case *Builtin:
		return v.address
	case *Userdata:
		return v.address
	}
	return 0
}

// describe returns the text of a value, like tostring without the metamethod __tostring.
func describe(v Value) string {
	switch v := v.(type) {
	case nil:
		return "nil"
	case bool:
		return strconv.FormatBool(v)
	case float64, string:
		s, _ := ToString(v)
		return s
	case *Userdata:
		if v == Null {
			return "userdata: (nil)"
		}
	}
	return fmt.Sprintf("%s: 0x7f%010x", TypeName(v), addressOf(v)) // as long as a typical address
}
