package upstream

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
)

// Error describes, for clients, a failure of the upstream.
type Error struct {
	name string
	err  error
}

// Error names the upstream and the cause.
func (e *Error) Error() string { return "upstream " + e.name + ": " + e.err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.err }

// Reply returns the error as a reply. For an upstream that is busy with a script, it returns the
// upstream's own reply.
func (e *Error) Reply() string {
	if b, ok := e.err.(busyError); ok {
		return string(b)
	}
	return "ERR " + e.Error()
}

// IsBusy reports whether the upstream answers that it is busy with a script.
func (e *Error) IsBusy() bool {
	_, ok := e.err.(busyError)
	return ok
}

// busyError holds the upstream's reply to most commands while a script runs too long.
type busyError string

func (b busyError) Error() string { return string(b) }

// plainError describes a cause in plain words.
type plainError struct {
	text  string
	cause error
}

func (p *plainError) Error() string { return p.text }

func (p *plainError) Unwrap() error { return p.cause }

// ErrDisconnected reports that the upstream closed the connection.
var ErrDisconnected error = &plainError{"the upstream closed the connection", io.EOF}

var errNoAnswer error = &plainError{"no answer in time", os.ErrDeadlineExceeded}

// refusalOf returns the error for a reply that refuses a command which the proxy needs.
func refusalOf(words []string, answer []byte) error {
	text := strings.TrimPrefix(strings.TrimSpace(string(answer)), "-")
	if strings.HasPrefix(text, "BUSY ") {
		return busyError(text)
	}
	return fmt.Errorf("%s: %s", words[0], text)
}

// publicCause returns the cause for clients of a cluster's node: as plainCause does, but without
// the name or address of the node.
func publicCause(err error) error {
	var unresolved *net.DNSError
	var otherName x509.HostnameError
	switch {
	case errors.As(err, &unresolved):
		return errors.New("its name cannot be resolved")
	case errors.As(err, &otherName):
		return errors.New("its certificate is for a different name")
	}
	return plainCause(err)
}

// plainCause returns the cause without the addresses that package net adds.
func plainCause(err error) error {
	var op *net.OpError
	var call *os.SyscallError
	var upErr *Error
	switch {
	case errors.As(err, &upErr):
		return upErr.err
	case errors.Is(err, syscall.ECONNREFUSED):
		return errors.New("connection refused")
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return errNoAnswer
	case errors.Is(err, io.EOF):
		return ErrDisconnected
	case errors.As(err, &call):
		return call.Err
	case errors.As(err, &op):
		return op.Err
	}
	return err
}
