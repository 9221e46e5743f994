package lua

import (
	"fmt"

	"redlock-proxy/internal/lua/syntax"
)

// Error is a Lua error that the script did not catch.
type Error struct {
	// Value is the raised value, usually a string.
	Value Value
	// Source is the name that syntax.Parse got, and Line is the line in that source. They are
	// "=[C]" and -1 if a Go function called the failed function.
	Source string
	Line   int
}

// Error returns the value as text.
func (e *Error) Error() string { return describe(e.Value) }

// raise raises a value as an error, which pcall can catch.
func (t *thread) raise(v Value) {
	if text, ok := v.(string); ok { // the text may contain names as long as a source
		t.state.meter.Charge(len(text))
	}
	source, line := t.errorPosition()
	panic(&Error{Value: v, Source: source, Line: line})
}

// errorPosition returns the position of an error: in the innermost call, or in its caller if the
// innermost call is a Go function.
func (t *thread) errorPosition() (source string, line int) {
	c := t.call
	if c != nil && c.closure == nil {
		c = c.caller
	}
	if c == nil || c.closure == nil {
		return "=[C]", -1
	}
	return c.closure.proto.source, c.line
}

// fail raises an error of the language, with the position of the Lua code.
func (c *Call) fail(line int, format string, args ...any) {
	c.line = line
	c.thread.raise(c.position() + fmt.Sprintf(format, args...))
}

// position returns the position of Lua code as the prefix of an error; "" for a Go function.
func (c *Call) position() string {
	if c == nil || c.closure == nil {
		return ""
	}
	return fmt.Sprintf("%s:%d: ", syntax.ChunkName(c.closure.proto.source), c.line)
}

// level returns the call n levels above, or nil if there is none or a tail call has replaced it.
func (c *Call) level(n int) *Call {
	for c != nil && n > 0 {
		n--
		n -= c.tailCalls
		c = c.caller
	}
	if n < 0 {
		return nil
	}
	return c
}
