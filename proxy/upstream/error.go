package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
)

// Error is a failure of the upstream as clients see it.
type Error struct {
	name string
	err  error
}

// Error names the upstream and the cause.
func (e *Error) Error() string { return "upstream " + e.name + ": " + e.err.Error() }

// Unwrap is the cause.
func (e *Error) Unwrap() error { return e.err }

// Reply is the error reply for it: that of an upstream that is busy with a script is its own.
func (e *Error) Reply() string {
	if b, is := e.err.(busy); is {
		return string(b)
	}
	return "ERR " + e.Error()
}

// IsBusy reports whether the upstream is there and says so.
func (e *Error) IsBusy() bool {
	_, is := e.err.(busy)
	return is
}

// busy is what an upstream says to every command, but a few, while a script runs too long.
type busy string

func (b busy) Error() string { return string(b) }

// plain is a cause in plain words.
type plain struct {
	text  string
	cause error
}

func (p *plain) Error() string { return p.text }

func (p *plain) Unwrap() error { return p.cause }

// ErrGone is the cause where the upstream closed the connection.
var ErrGone error = &plain{"the upstream closed the connection", io.EOF}

var errNoAnswer error = &plain{"no answer in time", os.ErrDeadlineExceeded}

// refusalOf is the error for what was answered to a command that is needed.
func refusalOf(words []string, answer []byte) error {
	text := strings.TrimPrefix(strings.TrimSpace(string(answer)), "-")
	if strings.HasPrefix(text, "BUSY ") {
		return busy(text)
	}
	return fmt.Errorf("%s: %s", words[0], text)
}

// plainCause says what happened, without the addresses that net puts around it.
func plainCause(err error) error {
	var op *net.OpError
	var call *os.SyscallError
	var named *Error
	switch {
	case errors.As(err, &named):
		return named.err
	case errors.Is(err, syscall.ECONNREFUSED):
		return errors.New("connection refused")
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return errNoAnswer
	case errors.Is(err, io.EOF):
		return ErrGone
	case errors.As(err, &call):
		return call.Err
	case errors.As(err, &op):
		return op.Err
	}
	return err
}
