package resp

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
)

// These are the limits of Redis itself. redisMaxBulk and redisMaxInline are in bytes.
const (
	redisMaxArgs   = math.MaxInt32
	redisMaxBulk   = 512 << 20
	redisMaxInline = 64 << 10
)

// minInline is the smallest MaxInline, in bytes.
const minInline = 64

// RequestLimits limits the size of one request. A field that is zero or negative means Redis' own
// limit.
type RequestLimits struct {
	// MaxArgs is the maximum number of arguments of one command, including its name. Redis' own
	// limit is the largest value.
	MaxArgs int
	// MaxBulk is the maximum size of one argument, in bytes.
	MaxBulk int64
	// MaxInline is the maximum length, in bytes without the line end, of an inline command and of
	// the header line of an array or a bulk. A value below 64 counts as 64, so that every number
	// fits.
	MaxInline int

	// unauthenticated selects the errors that tell the client to log in.
	unauthenticated bool
}

// DefaultRequestLimits returns Redis' limits for a client: 2147483647 arguments of 512 MB, and
// lines of 64 KB.
func DefaultRequestLimits() RequestLimits {
	return RequestLimits{MaxArgs: redisMaxArgs, MaxBulk: redisMaxBulk, MaxInline: redisMaxInline}
}

// UnauthenticatedLimits returns Redis' limits for a client that has not logged in: 10 arguments of
// 16384 bytes, and lines of 64 KB.
func UnauthenticatedLimits() RequestLimits {
	return RequestLimits{MaxArgs: 10, MaxBulk: 16 << 10, MaxInline: redisMaxInline, unauthenticated: true}
}

// withDefaults returns l with Redis' limits in place of zero and negative fields.
func (l RequestLimits) withDefaults() RequestLimits {
	if l.MaxArgs <= 0 || l.MaxArgs > redisMaxArgs {
		l.MaxArgs = redisMaxArgs
	}
	if l.MaxBulk <= 0 {
		l.MaxBulk = redisMaxBulk
	}
	if l.MaxInline <= 0 {
		l.MaxInline = redisMaxInline
	}
	l.MaxInline = max(l.MaxInline, minInline)
	return l
}

// argsError returns the error for an array of n arguments, which is more than MaxArgs.
func (l *RequestLimits) argsError(n int64) error {
	if l.unauthenticated && n <= redisMaxArgs {
		return errUnauthenticatedArgs
	}
	return errArgs
}

// bulkError returns the error for a bulk of n bytes, which is more than MaxBulk.
func (l *RequestLimits) bulkError(n int64) error {
	if l.unauthenticated && n <= redisMaxBulk {
		return errUnauthenticatedBulk
	}
	return errBulk
}

// RequestError means that the client's bytes are not a valid request. Redis sends the text after
// "-ERR " and closes the connection, since it cannot find the next frame.
type RequestError struct {
	// Text is Redis' text, "Protocol error: …".
	Text string
}

// Error returns the text.
func (e *RequestError) Error() string { return e.Text }

// The protocol errors of Redis, except the error that errExpectedBulk returns.
var (
	errArgs                = &RequestError{"Protocol error: invalid multibulk length"}
	errBulk                = &RequestError{"Protocol error: invalid bulk length"}
	errUnauthenticatedArgs = &RequestError{"Protocol error: unauthenticated multibulk length"}
	errUnauthenticatedBulk = &RequestError{"Protocol error: unauthenticated bulk length"}
	errLongArgsHeader      = &RequestError{"Protocol error: too big mbulk count string"}
	errLongBulkHeader      = &RequestError{"Protocol error: too big bulk count string"}
	errLongInline          = &RequestError{"Protocol error: too big inline request"}
	errUnbalancedQuotes    = &RequestError{"Protocol error: unbalanced quotes in request"}
)

// errCrossProtocol means that the command's name is POST or Host:, so an attacker may have made a
// browser send an HTTP request to this port. The connection must be closed without a reply, before
// the rest of the request is executed as commands.
var errCrossProtocol = errors.New("possible cross-protocol attack: the client speaks HTTP")

// tlsHandshake is the first byte of a TLS connection. No command begins with it.
const tlsHandshake = 0x16

// ErrTLS means that the client uses TLS on a port without TLS. The client would not understand any
// reply. As an inline command, a TLS handshake would have no end.
var ErrTLS = errors.New("the client uses TLS on a port without TLS")

// errExpectedBulk returns the error for a bulk that begins with got. An error reply is one line, so
// Redis shows a line break as a blank.
func errExpectedBulk(got byte) error {
	if got == '\r' || got == '\n' {
		got = ' '
	}
	return &RequestError{fmt.Sprintf("Protocol error: expected '$', got '%s'", []byte{got})}
}

// speaksHTTP reports whether a command's name belongs to an HTTP request. It compares as Redis
// does: case-insensitively, and up to a zero byte.
func speaksHTTP(name []byte) bool {
	if len(name) < 4 || name[0]|0x20 != 'p' && name[0]|0x20 != 'h' {
		return false
	}
	name, _, _ = bytes.Cut(name, []byte{0})
	return equalFold(name, "post") || equalFold(name, "host:")
}

// equalFold reports whether name equals ascii case-insensitively. The comparison of the lengths
// excludes letters that are equal only in Unicode.
func equalFold(name []byte, ascii string) bool {
	return len(name) == len(ascii) && strings.EqualFold(string(name), ascii)
}
