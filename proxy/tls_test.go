package proxy_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"redlock-proxy/internal/certtest"
	"redlock-proxy/internal/logtest"
	"redlock-proxy/proxy"
)

// TestDifferentialOverTLS checks that the replies over TLS are the same as a server's, however the
// bytes are split. REDLOCK_TEST_TLS=1 makes all relay tests use TLS.
func TestDifferentialOverTLS(t *testing.T) {
	server, client := tlsSettings(t)
	d := newDifferentialWith(t, proxy.Options{TLS: server}, nil)
	d.testProxy.clientTLS = client
	d.runAll()
}

// startLogged starts a proxy with TLS clients, and returns its log.
func startLogged(
	t *testing.T, url string, opts proxy.Options, prepare ...func(*proxy.Server),
) (*testProxy, *logtest.Buffer) {
	t.Helper()
	log := &logtest.Buffer{}
	opts.Logger = slog.New(slog.NewTextHandler(log, nil))
	return startTLS(t, url, opts, nil, prepare...), log
}

// TestClientsOverTLS checks that pushes come at any time, a half-closed client gets all its
// replies, and the proxy notices a client that leaves.
func TestClientsOverTLS(t *testing.T) {
	server := startRedis(t)
	r := startTLS(t, server.URL(), proxy.Options{}, nil)
	direct := dial(t, server.Addr())

	subscriber, monitor := r.connect(), r.connect()
	subscriber.check("SUBSCRIBE c", ack("*", "subscribe", "c", 1))
	monitor.check("MONITOR", "+OK\r\n")
	for i := range 3 {
		direct.check(fmt.Sprintf("PUBLISH c m%d", i), ":1\r\n")
		subscriber.expect(fmt.Sprintf("*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$2\r\nm%d\r\n", i))
		if line := monitor.readReply(); !strings.Contains(line, `"PUBLISH" "c"`) {
			t.Errorf("MONITOR says %q", line)
		}
	}

	big := strings.Repeat("x", 1<<20)
	halfClosed := r.connect()
	halfClosed.send(array("SET", "k", big) + lines("LOCK k t PX 1000", "GET k", "UNLOCK k t", "ECHO end"))
	if err := halfClosed.conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	halfClosed.expectAll("+OK\r\n:1000\r\n" + bulk(big) + ":1\r\n" + bulk("end"))

	for name, disconnect := range map[string]func(c peerConn) error{
		"says farewell": peerConn.Close,
		"is cut off":    func(c peerConn) error { return c.(tlsConn).socket.Close() },
		"is reset":      func(c peerConn) error { _ = c.SetLinger(0); return c.(tlsConn).socket.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			p := r.connect()
			p.send(lines("PING", "BLPOP q 0"))
			p.expect("+PONG\r\n")
			eventually(t, "the blocked client", func() bool {
				return strings.Contains(direct.ask("INFO clients"), "blocked_clients:1")
			})
			if err := disconnect(p.conn); err != nil {
				t.Fatal(err)
			}
			eventually(t, "its end", func() bool {
				return strings.Contains(direct.ask("INFO clients"), "blocked_clients:0")
			})
		})
	}
}

// TestIdleClientOverTLS checks that an idle TLS client is not parked, and is served as before.
func TestIdleClientOverTLS(t *testing.T) {
	r := startTLS(t, startRedis(t).URL(), proxy.Options{}, nil, parkSoon)
	p := r.connect()
	p.check("SET a 1", "+OK\r\n")
	for range 20 {
		time.Sleep(5 * time.Millisecond) // the server looks for idle clients every millisecond
		p.check("GET a", bulk("1"))
	}
	if n := r.server.ParkedCount(); n != 0 {
		t.Errorf("%d clients are parked", n)
	}
}

// TestNoHandshake checks that an incomplete handshake blocks only its own connection, counts as a
// client, and is logged.
func TestNoHandshake(t *testing.T) {
	server := startRedis(t)
	r, log := startLogged(t, server.URL(), proxy.Options{MaxClients: 3},
		func(s *proxy.Server) { s.SetHandshakeTimeout(5 * time.Second) })
	good := r.connect()
	good.check("SET a 1", "+OK\r\n")

	plain := dial(t, r.addr)
	plain.send(lines("FLUSHALL"))
	plain.expectAll("-ERR this port requires TLS\r\n")
	eventually(t, "a line", func() bool {
		return strings.Contains(log.String(), `cause="the client does not speak TLS"`)
	})
	eventually(t, "its end", func() bool { return r.server.Clients() == 1 })

	silent, incomplete := dial(t, r.addr), dial(t, r.addr)
	incomplete.send("\x16\x03\x01\x02\x00\x01") // the beginning of a handshake
	eventually(t, "both", func() bool { return r.server.Clients() == 3 })
	dial(t, r.addr).expectAll("-ERR max number of clients reached\r\n")
	good.check("GET a", bulk("1"))
	silent.expectAll("")
	incomplete.expectAll("")
	eventually(t, "their end", func() bool { return r.server.Clients() == 1 })
	if !strings.Contains(log.String(), `cause=timeout`) {
		t.Errorf("it is not logged: %s", log)
	}
	good.check("GET a", bulk("1"))
	r.connect().check("GET a", bulk("1"))
}

// TestClientCertificates checks that a client without the required certificate cannot run commands.
func TestClientCertificates(t *testing.T) {
	server, ca := startRedis(t), certtest.NewCA(t)
	config := &tls.Config{Certificates: []tls.Certificate{ca.Issue(t).TLS}, ClientCAs: ca.Pool(),
		ClientAuth: tls.RequireAndVerifyClientCert}
	r, log := startLogged(t, server.URL(), proxy.Options{TLS: config})
	r.clientTLS = &tls.Config{RootCAs: ca.Pool(), ServerName: "localhost"}
	connectWith := func(pair certtest.Pair) *peer {
		p := dial(t, r.addr)
		settings := r.clientTLS.Clone()
		settings.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return &pair.TLS, nil
		}
		p.speakTLS(settings)
		return p
	}
	connectWith(ca.Issue(t)).check("SET a 1", "+OK\r\n")
	for name, test := range map[string]struct {
		p     *peer
		cause string
	}{
		"none":       {r.connect(), `cause="client didn't provide a certificate"`},
		"a stranger": {connectWith(certtest.NewCA(t).Issue(t)), "signed by unknown authority"},
		"expired":    {connectWith(ca.IssueUntil(t, time.Now().Add(-time.Minute))), "certificate has expired"},
	} {
		test.p.send(lines("FLUSHALL", "LOCK k t PX 60000"))
		if got, err := io.ReadAll(test.p.in); len(got) > 0 || err == nil {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
		eventually(t, "a line about "+name, func() bool { return strings.Contains(log.String(), test.cause) })
	}
	dial(t, server.Addr()).check("GET a", bulk("1"))
	eventually(t, "their end", func() bool { return r.server.Clients() == 1 })
}

// TestTLSOnAPlainPort checks that a TLS client on a port without TLS cannot run commands, and that
// the proxy logs it.
func TestTLSOnAPlainPort(t *testing.T) {
	log := &logtest.Buffer{}
	skipOverTLS(t)
	r := startProxyWith(t, startRedis(t).URL(), proxy.Options{Logger: slog.New(slog.NewTextHandler(log, nil))}, nil)
	conn, err := tls.Dial("tcp", r.addr, &tls.Config{InsecureSkipVerify: true})
	if err == nil {
		conn.Close()
		t.Fatal("it speaks TLS")
	}
	eventually(t, "a line", func() bool {
		return strings.Contains(log.String(), "client turned away: it speaks TLS, but this port does not (tls-cert)")
	})
	p := r.connect()
	p.send("PING\r\n\x16\x03\x01")
	p.expectAll("+PONG\r\n")
	eventually(t, "their end", func() bool { return r.server.Clients() == 0 })
}

// TestLogOfManyRefusedClients checks that refused clients cannot fill the log.
func TestLogOfManyRefusedClients(t *testing.T) {
	r, log := startLogged(t, startRedis(t).URL(), proxy.Options{})
	const clients = 50
	for range clients {
		plain := dial(t, r.addr)
		plain.send("PING\r\n")
		plain.expectAll("-ERR this port requires TLS\r\n")
	}
	eventually(t, "their end", func() bool { return r.server.Clients() == 0 })
	if got := strings.Count(log.String(), "client turned away"); got != 10 {
		t.Errorf("%d lines, want 10", got)
	}
}

// TestDrainOverTLS checks that a stopping proxy closes TLS to idle clients properly, and does not
// wait for clients that read nothing or never spoke TLS.
func TestDrainOverTLS(t *testing.T) {
	server := startRedis(t)
	r := startTLS(t, server.URL(), proxy.Options{DrainTimeout: 300 * time.Millisecond}, nil)
	dial(t, server.Addr()).check("SET big "+strings.Repeat("b", 1<<20), "+OK\r\n")
	idle, silent, nonReader := r.connect(), dial(t, r.addr), r.connect()
	idle.check("PING", "+PONG\r\n")
	_ = nonReader.conn.SetReadBuffer(4 << 10)
	nonReader.send(strings.Repeat(cmd("GET big"), 30))
	eventually(t, "three clients", func() bool { return r.server.Clients() == 3 })
	r.stop()
	idle.expectAll("")
	silent.expectAll("")
	await(t, "the server's end", r.serveDone)
}

// TestRandomBytesForTLS checks that random bytes instead of a handshake end only their own
// connection.
func TestRandomBytesForTLS(t *testing.T) {
	r := startTLS(t, startRedis(t).URL(), proxy.Options{}, nil)
	good := r.connect()
	good.check("PING", "+PONG\r\n")
	rng := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		junk := make([]byte, 1+rng.IntN(2000))
		for i := range junk {
			junk[i] = byte(rng.UintN(256))
		}
		copy(junk, "\x16\x03\x01\x00")
		p := dial(t, r.addr)
		p.send(string(junk))
		_ = p.conn.CloseWrite()
		_, _ = io.ReadAll(p.in)
		_ = p.conn.Close()
	}
	good.check("PING", "+PONG\r\n")
	eventually(t, "their end", func() bool { return r.server.Clients() == 1 })
}
