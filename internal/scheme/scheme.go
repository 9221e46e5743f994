// Package scheme finds out whether a server that cannot be asked would answer with TLS instead of
// without, or the other way round: the failed connection itself seldom says so.
package scheme

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"syscall"
	"time"
)

const (
	useTLS   = "it speaks TLS: use rediss:// instead of redis://"
	usePlain = "it speaks no TLS: use redis:// instead of rediss://"
)

// Server is where a connection led.
type Server struct {
	Network, Addr string
	// TLS: its URL says rediss://.
	TLS bool
}

// Advice says what to use instead of the scheme of the URL, or nothing. Where the error leaves it
// open, it tries the server the other way, within the timeout, and sends it nothing but a PING.
func Advice(ctx context.Context, s Server, timeout time.Duration, err error) string {
	var record tls.RecordHeaderError
	switch {
	case errors.As(err, &record):
		return usePlain
	case !LeavesOpen(err):
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, s.Network, s.Addr)
	if err != nil {
		return ""
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(timeout))
	if s.TLS {
		return tryPlain(conn)
	}
	return tryTLS(ctx, conn)
}

// LeavesOpen reports whether a connection may have failed by the wrong scheme: a server with TLS
// hangs up, one without waits for the end of a line.
func LeavesOpen(err error) bool {
	var timeout net.Error
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) ||
		errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()
}

func tryTLS(ctx context.Context, conn net.Conn) string {
	whoever := &tls.Config{InsecureSkipVerify: true} // only whether it speaks TLS is asked
	if tls.Client(conn, whoever).HandshakeContext(ctx) != nil {
		return ""
	}
	return useTLS
}

func tryPlain(conn net.Conn) string {
	if _, err := conn.Write([]byte("*1\r\n$4\r\nPING\r\n")); err != nil {
		return ""
	}
	var buf [256]byte
	n, err := conn.Read(buf[:])
	said := buf[:n]
	if err != nil || said[0] != '+' && said[0] != '-' || bytes.HasSuffix(said, []byte(" TLS\r\n")) { // so a redlock-proxy with TLS says, of 0.3 too ("speaks TLS")
		return ""
	}
	return usePlain
}
