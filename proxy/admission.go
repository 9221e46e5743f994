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

	"redlock-proxy/proxy/proxyproto"
)

const (
	// handshakeTimeout limits the time for a load balancer's header, and the time for the TLS
	// handshake.
	handshakeTimeout = 10 * time.Second
	// refusalReadTimeout limits the time that a refused client has to read the reason.
	refusalReadTimeout = time.Second
)

// tlsRequiredReply is the reply to a client that does not speak TLS on a port that requires it.
const tlsRequiredReply = "-ERR this port requires TLS\r\n"

// errRefused ends the session of a client that was not admitted.
var errRefused = errors.New("client turned away")

// admit admits a client: it reads the header of a load balancer, completes the TLS handshake, and
// checks protected mode. The client's commands run only afterwards. It logs refused clients, but
// not clients that disconnect.
func (s *session) admit(ctx context.Context) error {
	if err := s.readProxyHeader(ctx); err != nil {
		return err
	}
	client := s.client.Addr
	if conn, ok := s.conn.(*tls.Conn); ok {
		if err := s.handshake(ctx, conn); err != nil {
			if cause := handshakeCause(err); cause != "" && ctx.Err() == nil && !s.ending.Load() {
				s.serverState.proxyState.clientLog.Warn(time.Now(), "client turned away: TLS handshake failed",
					"client", client.String(), "cause", cause)
			}
			return err
		}
	}
	text := s.serverState.protectedModeRefusal(s.acceptSettings, client)
	if text == "" {
		return nil
	}
	s.serverState.proxyState.clientLog.Warn(time.Now(), "client turned away: protected mode", "client", client.String())
	refuseConn(s.conn, text)
	return errRefused
}

// noProxyHeaderReply is the reply to a load balancer that sends no PROXY protocol header.
const noProxyHeaderReply = "-ERR no PROXY protocol header: this port requires one from this address (proxy-protocol)\r\n"

// readProxyHeader reads the client's address from a load balancer's header. If the header names no
// client, the connection's own address remains. It reads nothing if the connection is not from a
// load balancer.
func (s *session) readProxyHeader(ctx context.Context) error {
	if !proxyproto.IsIn(s.serverState.opts.Balancers, s.client.Addr) {
		return nil
	}
	conn := s.conn
	if tlsConn, ok := conn.(*tls.Conn); ok {
		conn = tlsConn.NetConn()
	}
	ctx, cancel := context.WithTimeout(ctx, s.serverState.handshakeTimeout)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	addr, err := proxyproto.Read(conn)
	switch {
	case errors.Is(err, proxyproto.ErrNoHeader):
		stop()
		s.serverState.proxyState.clientLog.Warn(time.Now(),
			"connection turned away: no PROXY protocol header from an address in proxy-protocol",
			"from", s.client.Addr.String())
		refuseConn(conn, noProxyHeaderReply)
	case err == nil && addr != nil:
		s.setAddr(addr)
	}
	return err
}

// handshake does the TLS handshake within handshakeTimeout. It sends a client that does not speak
// TLS an error in plain text.
func (s *session) handshake(ctx context.Context, conn *tls.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, s.serverState.handshakeTimeout)
	defer cancel()
	err := conn.HandshakeContext(ctx)
	if plain, ok := errors.AsType[tls.RecordHeaderError](err); ok && plain.Conn != nil {
		refuseConn(plain.Conn, tlsRequiredReply)
	}
	return err
}

// handshakeCause returns the reason why a handshake failed, for operators; empty if the client
// simply disconnected.
func handshakeCause(err error) string {
	var plain tls.RecordHeaderError
	var remote *net.OpError
	text := strings.TrimPrefix(err.Error(), "tls: ")
	switch {
	case errors.As(err, &plain):
		return "the client does not speak TLS"
	case strings.Contains(text, "bad record MAC"): // Go's error if OpenSSL aborts the handshake
		return "the client aborted the handshake: it may not trust tls-cert"
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case errors.As(err, &remote) && remote.Op == "remote error":
		return "the client reported: " + strings.TrimPrefix(remote.Err.Error(), "tls: ")
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, net.ErrClosed):
		return ""
	}
	return text
}

// refuseConn sends a client the reason why it is refused, and waits briefly for the client to read
// it. Closing a connection with unread input may discard the reason.
func refuseConn(conn net.Conn, text string) {
	_ = conn.SetDeadline(time.Now().Add(refusalReadTimeout))
	_, err := io.WriteString(conn, text)
	closer, ok := conn.(interface{ CloseWrite() error })
	if err != nil || !ok || closer.CloseWrite() != nil {
		return
	}
	_, _ = io.CopyN(io.Discard, conn, maxLookahead)
}

// protectedModeText is the format of Redis' refusal in protected mode, with the proxy's remedies.
const protectedModeText = "-DENIED Redis is running in protected mode because protected mode is enabled and %s. " +
	"In this mode connections are only accepted from the loopback interface. " +
	"If you want to connect from external computers you may adopt one of the following solutions: " +
	"1) Have clients log in: by users of the proxy (acl-file) or of the upstream, or with client-password-file, " +
	"or with a certificate of their own (tls-client-ca). " +
	"2) Connect over the loopback interface, if the port need not be reachable from other machines. " +
	"3) Disable protected mode by protected-mode: false, and PROXY RELOAD. " +
	"Make sure that only your clients can reach the port.\r\n"

// protectedModeRefusal returns the refusal for a client that protected mode refuses; empty for
// other clients. Until the first probe has reached the upstream, it is unknown whether the upstream
// requires a login.
func (s *serverState) protectedModeRefusal(settings *Settings, addr net.Addr) string {
	if !s.protects(settings) || IsLoopback(addr) {
		return ""
	}
	if known, _ := s.mustLogIn(settings); !known {
		return fmt.Sprintf(protectedModeText, "the proxy cannot tell whether the upstream requires a login until it reaches the upstream")
	}
	return fmt.Sprintf(protectedModeText, "no login is required")
}

// mustLogIn reports whether a client must log in before it may do anything, at the proxy or the
// upstream. known is false if that depends on an upstream that was never reached.
func (s *serverState) mustLogIn(settings *Settings) (known, required bool) {
	switch up := s.opts.Upstream; {
	case s.opts.Users != nil:
		return true, !s.opts.Users.IsOpen()
	case up == nil:
		return true, false
	case settings.ClientPassword != "":
		return true, true
	default:
		required, known = up.RequiresLogin()
		return known, required
	}
}

// protects reports whether protected mode refuses clients from other machines with these settings.
func (s *serverState) protects(settings *Settings) bool {
	_, required := s.mustLogIn(settings)
	return settings.ProtectedMode && !required
}

// IsLoopback reports whether an address is reachable only from this machine. It returns true for
// addresses that are not TCP.
func IsLoopback(addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	return !ok || tcp.AddrPort().Addr().Unmap().IsLoopback()
}
