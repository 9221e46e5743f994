package script

import (
	"fmt"
	"math"

	"redlock-proxy/internal/lua"
	"redlock-proxy/internal/lua/clib"
)

// encoder writes a value as JSON, with the rules and the errors of cjson.
type encoder struct {
	call *lua.Call
	text []byte
}

func jsonEncode(c *lua.Call) []lua.Value {
	if c.NArgs() != 1 {
		c.RaiseBadArg(1, "expected 1 argument")
	}
	e := encoder{call: c}
	e.writeValue(c.Arg(1), 0)
	return c.ReturnText(string(e.text))
}

func (e *encoder) fail(v lua.Value, reason string) {
	e.call.Fail("Cannot serialise %s: %s", lua.TypeName(v), reason)
}

func (e *encoder) append(text string) {
	e.call.State().Charge(len(text))
	e.text = append(e.text, text...)
}

func (e *encoder) writeValue(v lua.Value, depth int) {
	switch v := v.(type) {
	case nil:
		e.append("null")
	case string:
		e.writeString(v)
	case float64:
		e.writeNumber(v)
	case bool:
		e.append(fmt.Sprint(v))
	case *lua.Table:
		e.writeTable(v, depth+1)
	default:
		if v != lua.Null {
			e.fail(v, "type not supported")
		}
		e.append("null")
	}
}

func (e *encoder) writeTable(t *lua.Table, depth int) {
	if depth > jsonDepth {
		e.call.Fail("Cannot serialise, excessive nesting (%d)", depth)
	}
	n := e.arrayLength(t)
	if n <= 0 {
		e.writeObject(t, depth)
		return
	}
	e.append("[")
	for i := 1; i <= n; i++ {
		if i > 1 {
			e.append(",")
		}
		e.writeValue(t.Get(float64(i)), depth)
	}
	e.append("]")
}

// arrayLength returns the largest key of a table whose keys are all positive integers, or -1 for
// any other table.
func (e *encoder) arrayLength(t *lua.Table) int {
	items, largest := 0, int32(0)
	for key, _, _ := t.Next(nil); key != nil; key, _, _ = t.Next(key) {
		k, ok := key.(float64)
		if !ok || k < 1 || k != math.Floor(k) {
			return -1
		}
		items++
		if k > float64(largest) {
			largest = toInt32(k)
		}
	}
	if int(largest) > items*jsonSparseRatio && int(largest) > jsonSparseSafe {
		e.fail(t, "excessively sparse array")
	}
	return int(largest)
}

// toInt32 converts a number to 32 bits as C does: a number that does not fit becomes the smallest
// integer.
func toInt32(n float64) int32 {
	if n > math.MaxInt32 {
		return math.MinInt32
	}
	return int32(n)
}

func (e *encoder) writeObject(t *lua.Table, depth int) {
	e.append("{")
	first := true
	for key, value, _ := t.Next(nil); key != nil; key, value, _ = t.Next(key) {
		if !first {
			e.append(",")
		}
		first = false
		switch k := key.(type) {
		case float64:
			e.append(`"`)
			e.writeNumber(k)
			e.append(`":`)
		case string:
			e.writeString(k)
			e.append(":")
		default:
			e.fail(key, "table key must be a number or string")
		}
		e.writeValue(value, depth)
	}
	e.append("}")
}

func (e *encoder) writeNumber(n float64) {
	if math.IsNaN(n) || math.IsInf(n, 0) {
		e.fail(n, "must not be NaN or Inf")
	}
	e.append(clib.FormatG(n, jsonDigits))
}

// escapes maps characters to their short escapes.
var escapes = map[byte]string{
	'\b': `\b`, '\t': `\t`, '\n': `\n`, '\f': `\f`, '\r': `\r`, '"': `\"`, '/': `\/`, '\\': `\\`,
}

func (e *encoder) writeString(s string) {
	e.call.State().Charge(len(s) + 2)
	e.text = append(e.text, '"')
	for i := range len(s) {
		if escape, ok := escapes[s[i]]; ok {
			e.append(escape)
		} else if s[i] < ' ' || s[i] == 127 {
			e.append(fmt.Sprintf(`\u%04x`, s[i]))
		} else {
			e.text = append(e.text, s[i])
		}
	}
	e.text = append(e.text, '"')
}
