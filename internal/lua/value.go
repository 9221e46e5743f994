package lua

import (
	"fmt"
	"strconv"

	"redlock-proxy/internal/lua/clib"
)

// Value is a value of Lua: nil, bool, float64, string, *Table, *Closure, *Builtin or *Userdata.
type Value = any

// Userdata is a value that Lua can only pass on and compare.
type Userdata struct{ address uint32 }

// Null is the null pointer as a value, what cjson calls null.
var Null = &Userdata{}

// TypeName is the name of a value's type, as type() gives it.
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

// Truth is whether a condition holds: all but nil and false.
func Truth(v Value) bool {
	b, ok := v.(bool)
	return v != nil && (!ok || b)
}

// ToString is a string, or a number as Lua prints it; ok is false for other types.
func ToString(v Value) (s string, ok bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case float64:
		return clib.FormatNumber(v), true
	}
	return "", false
}

// Number is a number, or what a string reads as; ok is false if it is none.
func (s *State) Number(v Value) (n float64, ok bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case string:
		s.meter.Work(len(v) * digitWork)
		return clib.ParseNumber(v)
	}
	return 0, false
}

// digitWork is what reading a digit costs, in bytes gone through.
const digitWork = 8

// addressOf is the number of an object, which it prints as its address. Addresses count up within a
// run, so that a script gives the same reply each time.
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

// describe is tostring of a value without a __tostring.
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
	return fmt.Sprintf("%s: 0x7f%010x", TypeName(v), addressOf(v)) // as long as most addresses are
}
