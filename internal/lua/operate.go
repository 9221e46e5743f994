package lua

import (
	"math"
	"strings"

	"redlock-proxy/internal/lua/clib"
	"redlock-proxy/internal/lua/meter"
	"redlock-proxy/internal/lua/syntax"
)

// The operators, with metamethods.

// maxMetaLoop is the maximum length of a chain of tables through __index or __newindex.
const maxMetaLoop = 100

// metatable returns the metatable of any value, or nil.
func (t *thread) metatable(v Value) *Table {
	switch v := v.(type) {
	case *Table:
		return v.meta
	case string:
		return t.state.stringMeta
	}
	return nil
}

func (t *thread) metamethod(v Value, event string) Value {
	if meta := t.metatable(v); meta != nil {
		return meta.Get(event)
	}
	return nil
}

// indexName is the name of the most frequent metamethod; indexHash is its hash.
var indexName, indexHash = Value("__index"), hashString("__index")

// index returns object[key]. at has the line and the name of the object.
func (t *thread) index(object, key Value, at *site) Value {
	for range maxMetaLoop {
		var handler Value
		if table, ok := object.(*Table); ok {
			v := table.Get(key)
			if v != nil || table.meta == nil {
				return v
			}
			if handler = table.meta.getName(indexName, indexHash); handler == nil {
				return nil
			}
		} else if handler = t.metamethod(object, "__index"); handler == nil {
			t.call.raiseTypeError(at, object, "index")
		}
		if isFunction(handler) {
			t.call.setLine(at)
			return firstValue(t.callFromGo(handler, object, key))
		}
		t.state.meter.ChargeWork(2 * slotWork) // for the lookups in the object and its metatable
		object, at = handler, withoutName(at)
	}
	t.call.setLine(at)
	t.raise(t.call.position() + "loop in gettable")
	return nil
}

// setIndex executes object[key] = value.
func (t *thread) setIndex(object, key, value Value, at *site) {
	for range maxMetaLoop {
		var handler Value
		if table, ok := object.(*Table); ok {
			t.checkWritable(table, key, at)
			if table.meta == nil {
				table.set(key, value)
				return
			}
			old := table.Get(key)
			if handler = table.meta.Get("__newindex"); handler == nil || old != nil {
				table.set(key, value)
				return
			}
		} else if handler = t.metamethod(object, "__newindex"); handler == nil {
			t.call.raiseTypeError(at, object, "index")
		}
		if isFunction(handler) {
			t.call.setLine(at)
			t.callFromGo(handler, object, key, value)
			return
		}
		t.state.meter.ChargeWork(2 * slotWork) // for the lookups in the object and its metatable
		object, at = handler, withoutName(at)
	}
	t.call.setLine(at)
	t.raise(t.call.position() + "loop in settable")
}

func (t *thread) checkWritable(table *Table, key Value, at *site) {
	problem := ""
	switch k := key.(type) {
	case nil:
		problem = "table index is nil"
	case float64:
		if math.IsNaN(k) {
			problem = "table index is NaN"
		}
	}
	if table.frozen {
		problem = "Attempt to modify a readonly table"
	}
	if problem != "" {
		t.call.setLine(at)
		t.raise(t.call.position() + problem)
	}
}

// withoutName returns a site without a name.
func withoutName(at *site) *site {
	if at == nil {
		return nil
	}
	return &site{line: at.line}
}

func (c *Call) setLine(at *site) {
	if at != nil {
		c.line = at.line
	}
}

// raiseTypeError raises the error that a value does not support an operation.
func (c *Call) raiseTypeError(at *site, v Value, verb string) {
	c.setLine(at)
	name := "a " + TypeName(v) + " value"
	if at != nil && at.kind != "" {
		name = at.kind + " '" + at.name + "' (" + name + ")"
	}
	c.thread.raise(c.position() + "attempt to " + verb + " " + name)
}

// arithmetic returns the result of an operator for operands that are not both a float64.
func (t *thread) arithmetic(operator syntax.Kind, a, b Value, left, right *site) Value {
	x, xOK := t.state.Number(a)
	y, yOK := t.state.Number(b)
	if xOK && yOK {
		return clib.Arithmetic(byte(operator), x, y)
	}
	event := arithmeticEvents[operator]
	handler := t.metamethod(a, event)
	if handler == nil {
		handler = t.metamethod(b, event)
	}
	if handler != nil {
		t.call.setLine(left)
		return firstValue(t.callFromGo(handler, a, b))
	}
	if xOK {
		t.call.raiseTypeError(right, b, "perform arithmetic on")
	}
	t.call.raiseTypeError(left, a, "perform arithmetic on")
	return nil
}

var arithmeticEvents = map[syntax.Kind]string{'+': "__add", '-': "__sub", '*': "__mul", '/': "__div", '%': "__mod", '^': "__pow"}

// negate returns -v for a v that is not a float64.
func (t *thread) negate(v Value, at *site) Value {
	if n, ok := t.state.Number(v); ok {
		return -n
	}
	if handler := t.metamethod(v, "__unm"); handler != nil {
		t.call.setLine(at)
		return firstValue(t.callFromGo(handler, v, v))
	}
	t.call.raiseTypeError(at, v, "perform arithmetic on")
	return nil
}

// length returns #v.
func (t *thread) length(v Value, at *site) Value {
	switch v := v.(type) {
	case string:
		return float64(len(v))
	case *Table:
		return float64(v.Len())
	}
	t.call.raiseTypeError(at, v, "get length of")
	return nil
}

// equal returns a == b.
func (t *thread) equal(a, b Value, line int) bool {
	if text, ok := a.(string); ok {
		t.chargeComparison(text, b)
	}
	if a == b {
		return true
	}
	x, ok := a.(*Table)
	if !ok || x.meta == nil {
		return false
	}
	y, ok := b.(*Table)
	if !ok || y.meta == nil {
		return false
	}
	handler := x.meta.Get("__eq")
	if handler == nil || handler != y.meta.Get("__eq") {
		return false
	}
	t.call.line = line
	return IsTruthy(firstValue(t.callFromGo(handler, a, b)))
}

// chargeComparison charges for the comparison of a string with a value, which processes 16 bytes at
// a time.
func (t *thread) chargeComparison(a string, b Value) {
	if b, ok := b.(string); ok {
		t.state.meter.ChargeWork(min(len(a), len(b)) >> 4)
	}
}

// less returns a < b.
func (t *thread) less(a, b Value, line int) bool {
	switch x := a.(type) {
	case float64:
		if y, ok := b.(float64); ok {
			return x < y
		}
	case string:
		if y, ok := b.(string); ok {
			t.chargeComparison(x, b)
			return x < y
		}
	}
	t.call.line = line
	if answer, ok := t.compare("__lt", a, b); ok {
		return answer
	}
	return t.raiseOrderError(a, b)
}

// lessOrEqual returns a <= b.
func (t *thread) lessOrEqual(a, b Value, line int) bool {
	switch x := a.(type) {
	case float64:
		if y, ok := b.(float64); ok {
			return x <= y
		}
	case string:
		if y, ok := b.(string); ok {
			t.chargeComparison(x, b)
			return x <= y
		}
	}
	t.call.line = line
	if answer, ok := t.compare("__le", a, b); ok {
		return answer
	}
	if answer, ok := t.compare("__lt", b, a); ok {
		return !answer
	}
	return t.raiseOrderError(a, b)
}

// compare calls the metamethod that two values of the same type share. ok is false if they share
// none.
func (t *thread) compare(event string, a, b Value) (answer, ok bool) {
	if TypeName(a) != TypeName(b) {
		return false, false
	}
	handler := t.metamethod(a, event)
	if handler == nil || handler != t.metamethod(b, event) {
		return false, false
	}
	return IsTruthy(firstValue(t.callFromGo(handler, a, b))), true
}

func (t *thread) raiseOrderError(a, b Value) bool {
	x, y := TypeName(a), TypeName(b)
	if x == y {
		t.raise(t.call.position() + "attempt to compare two " + x + " values")
	}
	t.raise(t.call.position() + "attempt to compare " + x + " with " + y)
	return false
}

// concat concatenates values from the last to the first. It joins adjacent strings and numbers in
// one step. It overwrites values.
func (t *thread) concat(values []Value, at []*site) Value {
	for n := len(values); n > 1; n = len(values) {
		right, ok := ToString(values[n-1])
		left, leftOK := ToString(values[n-2])
		if !ok || !leftOK {
			values[n-2] = t.concatMeta(values[n-2], values[n-1], at[n-2], at[n-1])
			values = values[:n-1]
			continue
		}
		parts := []string{right, left}
		size := len(right) + len(left)
		from := n - 2
		for from > 0 {
			s, ok := ToString(values[from-1])
			if !ok {
				break
			}
			parts = append(parts, s)
			size += len(s)
			from--
		}
		t.state.meter.Charge(size + meter.StringSize)
		values[from] = joinReversed(parts, size)
		values = values[:from+1]
	}
	return values[0]
}

func joinReversed(parts []string, size int) string {
	if len(parts) == 2 {
		return parts[1] + parts[0]
	}
	var b strings.Builder
	b.Grow(size)
	for i := len(parts) - 1; i >= 0; i-- {
		b.WriteString(parts[i])
	}
	return b.String()
}

func (t *thread) concatMeta(a, b Value, left, right *site) Value {
	handler := t.metamethod(a, "__concat")
	if handler == nil {
		handler = t.metamethod(b, "__concat")
	}
	if handler != nil {
		t.call.setLine(right)
		return firstValue(t.callFromGo(handler, a, b))
	}
	if _, ok := ToString(a); ok {
		t.call.raiseTypeError(right, b, "concatenate")
	}
	t.call.raiseTypeError(left, a, "concatenate")
	return nil
}
