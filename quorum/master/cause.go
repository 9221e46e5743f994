package master

import (
	"context"
	"errors"
	"net"
	"os"
	"syscall"

	"redlock-proxy/internal/escape"
)

var (
	// ErrClosed is the cause for masters of a cluster that has stopped.
	ErrClosed = errors.New("shutting down")

	// ErrQueueFull is the cause for a master with too many queued operations.
	ErrQueueFull = errors.New("too many operations are waiting for it")

	// errNotConnected is the cause until a master has replied for the first time.
	errNotConnected = errors.New("not connected yet")
)

// CauseText returns the meaning of a network error, without the addresses and layers that net and
// go-redis wrap around it. It does not name the master.
func CauseText(err error) string {
	var netErr net.Error
	var op *net.OpError
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return "no answer in time"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, syscall.ECONNRESET):
		return "connection reset"
	case errors.As(err, &netErr) && netErr.Timeout():
		return "no answer in time"
	case errors.As(err, &op):
		return op.Err.Error()
	case err.Error() == "EOF":
		return "connection closed"
	default:
		return excerpt(err.Error())
	}
}

// maxCause limits the text of an error in bytes, because a server can send an error of any length.
const maxCause = 256

// excerpt returns the beginning of a text, without characters that control a terminal. Line ends
// stay: replies to clients have blanks instead.
func excerpt(text string) string {
	head, isCut := escape.Cut(text, maxCause)
	if isCut {
		head += "…"
	}
	return escape.Text(head, "\\\r\n")
}
