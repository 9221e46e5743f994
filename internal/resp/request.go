package resp

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
)

// What Redis itself allows.
const (
	redisMaxArgs   = math.MaxInt32
	redisMaxBulk   = 512 << 20
	redisMaxInline = 64 << 10
)

// minInline is the least that MaxInline may be set to, in bytes.
const minInline = 64

// RequestLimits bounds what one request may announce. A field that is zero or
// negative stands for Redis' own limit.
type RequestLimits struct {
	// MaxArgs is the largest number of arguments of one command, its name included;
	// never more than Redis' own limit.
	MaxArgs int
	// MaxBulk is the largest length of one argument, in bytes.
	MaxBulk int64
	// MaxInline is the largest length, in bytes and without its line end, of an
	// inline command and of the header line of an array or a bulk. Less than 64
	// counts as 64, so that every number has room.
	MaxInline int

	// unauthenticated makes the refusals say that logging in would help.
	unauthenticated bool
}

// DefaultRequestLimits returns what Redis allows a client: 2147483647 arguments of
// 512 MB, and lines of 64 KB.
func DefaultRequestLimits() RequestLimits {
	return RequestLimits{MaxArgs: redisMaxArgs, MaxBulk: redisMaxBulk, MaxInline: redisMaxInline}
}

// UnauthenticatedLimits returns what Redis allows a client that has still to
// log in: 10 arguments of 16384 bytes, and lines of 64 KB.
func UnauthenticatedLimits() RequestLimits {
	return RequestLimits{MaxArgs: 10, MaxBulk: 16 << 10, MaxInline: redisMaxInline, unauthenticated: true}
}

// resolved returns l with Redis' limit in place of every field left open.
func (l RequestLimits) resolved() RequestLimits {
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

// refuseArgs returns the error for an array of n arguments, which is over MaxArgs.
func (l *RequestLimits) refuseArgs(n int64) error {
	if l.unauthenticated && n <= redisMaxArgs {
		return errUnauthenticatedArgs
	}
	return errArgs
}

// refuseBulk returns the error for a bulk of n bytes, which is over MaxBulk.
func (l *RequestLimits) refuseBulk(n int64) error {
	if l.unauthenticated && n <= redisMaxBulk {
		return errUnauthenticatedBulk
	}
	return errBulk
}

// RequestError tells that the client's bytes are no request. Redis sends its
// text after "-ERR " and closes the connection, as no frame can be found after it.
type RequestError struct {
	// Text is in Redis' words, "Protocol error: …".
	Text string
}

// Error is the text.
func (e *RequestError) Error() string { return e.Text }

// The protocol errors, one for each refusal of Redis. The one for a byte other
// than '$' is made by errExpectedBulk.
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

// errCrossProtocol means that the command is called POST or Host:, so a browser
// was tricked into sending an HTTP request here. The connection must be closed
// without a reply, before the rest of the request is taken for commands.
var errCrossProtocol = errors.New("possible cross-protocol attack: the client speaks HTTP")

// tlsHandshake is the first byte of a client that speaks TLS. No command begins with it.
const tlsHandshake = 0x16

// ErrTLS means that the client speaks TLS on a connection without it. There is no reply that it
// would understand; taken for an inline command, what it sends would have no end.
var ErrTLS = errors.New("the client speaks TLS where none is spoken")

// errExpectedBulk returns the error for a bulk that begins with got. An error
// reply is one line, so Redis shows a line break as a blank.
func errExpectedBulk(got byte) error {
	if got == '\r' || got == '\n' {
		got = ' '
	}
	return &RequestError{fmt.Sprintf("Protocol error: expected '$', got '%s'", []byte{got})}
}

// speaksHTTP tells whether a command's name is one by which Redis knows an HTTP
// request. It compares as Redis does: in any case, and up to a zero byte.
func speaksHTTP(name []byte) bool {
	if len(name) < 4 || name[0]|0x20 != 'p' && name[0]|0x20 != 'h' {
		return false
	}
	name, _, _ = bytes.Cut(name, []byte{0})
	return isFold(name, "post") || isFold(name, "host:")
}

// isFold tells whether name is ascii in any case. The lengths keep out what only
// Unicode takes for the same letters.
func isFold(name []byte, ascii string) bool {
	return len(name) == len(ascii) && strings.EqualFold(string(name), ascii)
}
