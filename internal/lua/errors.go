package lua

import (
	"fmt"

	"redlock-proxy/internal/lua/syntax"
)

// Error is an error of Lua that nothing in the script caught.
type Error struct {
	// Value is what was raised: a string as a rule.
	Value Value
	// Source and Line are where: the name given to syntax.Parse, and the line in it; "=[C]" and -1
	// if a Go function called the one that failed.
	Source string
	Line   int
}

// Error is the error's text.
func (e *Error) Error() string { return describe(e.Value) }

// raise ends the call with a value as the error, which pcall can catch.
func (t *thread) raise(v Value) {
	if text, ok := v.(string); ok { // names in it may be as long as a source
		t.state.meter.Charge(len(text))
	}
	source, line := t.blamed()
	panic(&Error{Value: v, Source: source, Line: line})
}

// blamed is where an error of this moment happened: in the innermost call, or in its caller if it
// is of a Go function.
func (t *thread) blamed() (source string, line int) {
	c := t.call
	if c != nil && c.closure == nil {
		c = c.caller
	}
	if c == nil || c.closure == nil {
		return "=[C]", -1
	}
	return c.closure.proto.source, c.line
}

// fail raises an error of the language: with the position of the Lua code that runs.
func (c *Call) fail(line int, format string, args ...any) {
	c.line = line
	c.thread.raise(c.where() + fmt.Sprintf(format, args...))
}

// where is the position of Lua code, as errors begin; empty for a Go function.
func (c *Call) where() string {
	if c == nil || c.closure == nil {
		return ""
	}
	return fmt.Sprintf("%s:%d: ", syntax.ChunkName(c.closure.proto.source), c.line)
}

// level finds the call so many levels above; nil if there is none or if it has made way for a tail
// call.
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
