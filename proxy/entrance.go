package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"time"

	"redlock-proxy/proxy/origin"
)

const (
	// entryTime bounds the time that a client may take until TLS is spoken.
	entryTime = 10 * time.Second
	// parting bounds the time that a client which is turned away has to read why.
	parting = time.Second
)

// plainOnTLS is what a client reads that does not speak TLS where it must.
const plainOnTLS = "-ERR this port requires TLS\r\n"

// errTurnedAway ends a session that has not begun.
var errTurnedAway = errors.New("the client is turned away")

// enter lets a client in: a balancer has said whose connection it is, TLS is spoken, and protected
// mode has nothing against it. Nothing that the client sends is carried out before. The log is told
// of those who are turned away, but not of those who leave.
func (s *session) enter(ctx context.Context) error {
	if err := s.identify(ctx); err != nil {
		return err
	}
	client := s.client.Addr
	if conn, ok := s.conn.(*tls.Conn); ok {
		if err := s.shakeHands(ctx, conn); err != nil {
			if why := handshakeCause(err); why != "" && ctx.Err() == nil && !s.ending.Load() {
				s.shared.turned.warn(time.Now(), "a client is turned away: TLS is not agreed", "client", client.String(), "cause", why)
			}
			return err
		}
	}
	text := s.shared.denial(s.acceptedWith, client)
	if text == "" {
		return nil
	}
	s.shared.turned.warn(time.Now(), "a client is turned away: protected mode", "client", client.String())
	turnAway(s.conn, text)
	return errTurnedAway
}

// noOrigin is what a balancer reads that does not say for whom it connects.
const noOrigin = "-ERR this port expects the PROXY protocol of this address (proxy-protocol)\r\n"

// identify reads from a balancer for whom it connects. Where it says that it does so for itself, or
// does not know, the connection's own address stands. Of all others nothing is read.
func (s *session) identify(ctx context.Context) error {
	if !origin.Among(s.shared.opts.Balancers, s.client.Addr) {
		return nil
	}
	conn := s.conn
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	ctx, cancel := context.WithTimeout(ctx, s.shared.entry)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	addr, err := origin.Read(conn)
	switch {
	case errors.Is(err, origin.ErrNoHeader):
		stop()
		s.shared.turned.warn(time.Now(), "a connection is turned away: its address is in proxy-protocol, and it began with no header of that", "from", s.client.Addr.String())
		turnAway(conn, noOrigin)
	case err == nil && addr != nil:
		s.setAddr(addr)
	}
	return err
}

// shakeHands bounds the handshake. A client that does not speak TLS is told so, if it can be.
func (s *session) shakeHands(ctx context.Context, conn *tls.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, s.shared.entry)
	defer cancel()
	err := conn.HandshakeContext(ctx)
	if plain, ok := errors.AsType[tls.RecordHeaderError](err); ok && plain.Conn != nil {
		turnAway(plain.Conn, plainOnTLS)
	}
	return err
}

// handshakeCause is why a handshake failed, for an operator; empty where the client just left.
func handshakeCause(err error) string {
	var plain tls.RecordHeaderError
	var remote *net.OpError
	text := strings.TrimPrefix(err.Error(), "tls: ")
	switch {
	case errors.As(err, &plain):
		return "it speaks no TLS"
	case strings.Contains(text, "bad record MAC"): // so says Go where OpenSSL breaks off
		return "it broke the handshake off: it may not believe tls-cert"
	case errors.Is(err, context.DeadlineExceeded):
		return "it took too long"
	case errors.As(err, &remote) && remote.Op == "remote error":
		return "it said: " + strings.TrimPrefix(remote.Err.Error(), "tls: ")
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, net.ErrClosed):
		return ""
	}
	return text
}

// turnAway tells a client why, and waits a little until it has read that: who closes while there
// is something unread may take the answer away again.
func turnAway(conn net.Conn, text string) {
	_ = conn.SetDeadline(time.Now().Add(parting))
	_, err := io.WriteString(conn, text)
	half, ok := conn.(interface{ CloseWrite() error })
	if err != nil || !ok || half.CloseWrite() != nil {
		return
	}
	_, _ = io.CopyN(io.Discard, conn, maxAhead)
}

// denied is how Redis turns clients away in protected mode, with the ways out that there are here.
const denied = "-DENIED Redis is running in protected mode because protected mode is enabled and %s. " +
	"In this mode connections are only accepted from the loopback interface. If you want to connect from external computers you may adopt one of the following solutions: " +
	"1) Have clients log in: by users of the proxy (acl-file) or of the upstream, or with client-password-file, or with a certificate of their own (tls-client-ca). " +
	"2) Connect over the loopback interface, if you did not mean the port to be reached from elsewhere. " +
	"3) Disable protected mode by protected-mode: false, and PROXY RELOAD. Make sure that nobody but your clients can reach the port.\r\n"

// denial is what a client is told that protected mode turns away, or empty. Whether one has to log
// in at the upstream is for the upstream to say; as long as it was not reached, it is not known.
func (s *shared) denial(given *Settings, addr net.Addr) string {
	if !s.protects(given) || IsLoopback(addr) {
		return ""
	}
	if known, _ := s.mustLogIn(given); !known {
		return fmt.Sprintf(denied, "the upstream, which has not been reached yet, has not said whether one must log in there")
	}
	return fmt.Sprintf(denied, "nobody has to log in")
}

// mustLogIn reports whether a client has to show who it is before it may do anything, here or at
// the upstream.
func (s *shared) mustLogIn(given *Settings) (known, must bool) {
	switch up := s.opts.Upstream; {
	case s.opts.Users != nil:
		return true, !s.opts.Users.IsOpen()
	case up == nil:
		return true, false
	case given.ClientPassword != "":
		return true, true
	default:
		must, known = up.DemandsLogin()
		return known, must
	}
}

// protects reports whether clients from other machines are turned away that meet these settings.
func (s *shared) protects(given *Settings) bool {
	_, must := s.mustLogIn(given)
	return given.ProtectedMode && !must
}

// IsLoopback reports whether an address is one of this machine that others cannot reach.
func IsLoopback(addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	return !ok || tcp.AddrPort().Addr().Unmap().IsLoopback()
}
