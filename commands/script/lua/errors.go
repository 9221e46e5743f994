package lua

import (
	"fmt"
	"strings"
)

// Error is an error of Lua that nothing in the script caught.
type Error struct {
	// Value is what was raised: a string as a rule.
	Value Value
	// Source and Line are where: the name given to Compile, and the line in it; "=[C]" and -1 if a Go function called the one that
	// failed.
	Source string
	Line   int
}

// Error is the error's text.
func (e *Error) Error() string { return describe(e.Value) }

// CompileError is a mistake in a chunk, in C Lua's words.
type CompileError struct{ text string }

// Error is the mistake with its line: "name:1: '=' expected near 'x'".
func (e *CompileError) Error() string { return e.text }

// raise ends the call with a value as the error, which pcall can catch.
func (t *thread) raise(v Value) {
	source, line := t.blamed()
	panic(&Error{Value: v, Source: source, Line: line})
}

// blamed is where an error of this moment happened: in the innermost call, or in its caller if it is of a Go function.
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
func (c *Call) fail(line int, format string, args ...any) Value {
	c.line = line
	c.thread.raise(c.where() + fmt.Sprintf(format, args...))
	return nil
}

// where is the position of Lua code, as errors begin; empty for a Go function.
func (c *Call) where() string {
	if c == nil || c.closure == nil {
		return ""
	}
	return fmt.Sprintf("%s:%d: ", chunkName(c.closure.proto.source), c.line)
}

// level finds the call so many levels above; nil if there is none or if it has made way for a tail call.
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

// maxChunkName is how much of a source a message shows.
const maxChunkName = 80

// chunkName is a source's name in messages. "@name" and "=name" are names; all else is code, of which the first line is shown.
func chunkName(source string) string {
	switch {
	case strings.HasPrefix(source, "="):
		return source[1:min(len(source), maxChunkName)]
	case strings.HasPrefix(source, "@"):
		if name := source[1:]; len(name) > maxChunkName-8 {
			return "..." + name[len(name)-(maxChunkName-8):]
		}
		return source[1:]
	}
	const room = maxChunkName - len(`[string "..."] `) - 2
	line, _, cut := strings.Cut(source, "\n")
	if head, _, ok := strings.Cut(line, "\r"); ok {
		line, cut = head, true
	}
	if cut || len(line) > room {
		line = line[:min(len(line), room)] + "..."
	}
	return fmt.Sprintf(`[string "%s"]`, line)
}
