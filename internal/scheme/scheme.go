// Package scheme recognizes two causes of a failed connection to a server: the URL has the wrong
// scheme, redis:// or rediss://, or the server refuses all connections from this address. The error
// of the connection seldom shows the cause.
package scheme

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"time"
)

const (
	useTLSAdvice   = "it requires TLS: use rediss:// instead of redis://"
	usePlainAdvice = "it does not use TLS: use redis:// instead of rediss://"
)

// Server names the server of a failed connection.
type Server struct {
	Network, Addr string
	// TLS is set if the URL has the scheme rediss://.
	TLS bool
}

// Advice returns the advice to use the other scheme, or the text with which the server refuses
// connections, such as in Redis' protected mode. It returns "" if err has another cause. If err
// alone does not show the cause, Advice connects to the server with the other scheme, within the
// timeout. It sends no command except PING.
func Advice(ctx context.Context, s Server, timeout time.Duration, err error) string {
	var record tls.RecordHeaderError
	switch {
	case errors.As(err, &record):
		return usePlainAdvice
	case !MayBeWrongScheme(err):
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

// MayBeWrongScheme reports whether a connection may have failed because of the wrong scheme. A
// server with TLS closes a plain connection; a server without TLS waits for the end of a line.
func MayBeWrongScheme(err error) bool {
	var timeout net.Error
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) ||
		errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()
}

func tryTLS(ctx context.Context, conn net.Conn) string {
	anyServer := &tls.Config{InsecureSkipVerify: true} // only the use of TLS matters
	recorder := &recordingConn{Conn: conn}
	if tls.Client(recorder, anyServer).HandshakeContext(ctx) == nil {
		return useTLSAdvice
	}
	refusal, isError := strings.CutPrefix(string(recorder.received), "-") // a RESP error
	if !isError {
		return ""
	}
	sentence, _, _ := strings.Cut(refusal, ". ")
	return strings.TrimSpace(sentence)
}

// recordingConn records the bytes that it receives.
type recordingConn struct {
	net.Conn
	received []byte
}

// Read implements net.Conn.
func (c *recordingConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.received = append(c.received, p[:n]...)
	return n, err
}

func tryPlain(conn net.Conn) string {
	if _, err := conn.Write([]byte("*1\r\n$4\r\nPING\r\n")); err != nil {
		return ""
	}
	var buf [256]byte
	n, err := conn.Read(buf[:])
	reply := buf[:n]
	// The proxy replies "requires TLS"; version 0.3 replied "speaks TLS".
	isProxyWithTLS := bytes.HasSuffix(reply, []byte(" TLS\r\n"))
	if err != nil || reply[0] != '+' && reply[0] != '-' || isProxyWithTLS {
		return ""
	}
	return usePlainAdvice
}
