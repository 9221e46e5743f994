// Package contained keeps a panic to what it happened in: what a master says, or a caller's
// function does, never ends the process.
package contained

import (
	"fmt"
	"log/slog"
	"runtime/debug"
)

// PanicError is a panic that cost what it happened in, and no more.
type PanicError struct {
	problem any
	stack   string
}

// Error tells what it was, without the stack.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.problem) }

// LogValue has a log tell the stack, too.
func (e *PanicError) LogValue() slog.Value {
	return slog.StringValue(e.Error() + "\n" + e.stack)
}

// Run runs f, and makes a panic in it its error: a *PanicError.
func Run(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &PanicError{p, string(debug.Stack())}
		}
	}()
	return f()
}
