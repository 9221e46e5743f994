// Package contained turns panics into errors, so that neither a master's reply nor a caller's
// function can end the process.
package contained

import (
	"fmt"
	"log/slog"
	"runtime/debug"
)

// PanicError holds the value and the stack of a recovered panic.
type PanicError struct {
	value any
	stack string
}

// Error returns the value of the panic, without the stack.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.value) }

// LogValue returns the value of the panic and the stack, for logs.
func (e *PanicError) LogValue() slog.Value {
	return slog.StringValue(e.Error() + "\n" + e.stack)
}

// Run runs f and returns its error, or a *PanicError if f panics.
func Run(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &PanicError{p, string(debug.Stack())}
		}
	}()
	return f()
}
