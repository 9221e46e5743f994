package proxy_test

import (
	"crypto/tls"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"redlock-proxy/internal/certtest"
)

// startTLSTerminator starts a listener that terminates TLS in front of a server, and returns the
// listener's address.
func startTLSTerminator(t *testing.T, server string) string {
	t.Helper()
	config := &tls.Config{Certificates: []tls.Certificate{certtest.NewCA(t).Issue(t).TLS}}
	ln, err := tls.Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	t.Cleanup(func() { ln.Close(); running.Wait() })
	running.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			running.Go(func() { splice(conn.(*tls.Conn), server) })
		}
	})
	return ln.Addr().String()
}

// splice passes bytes between a client and a server until both have ended.
func splice(client *tls.Conn, server string) {
	defer client.Close()
	conn, err := net.Dial("tcp", server)
	if err != nil {
		return
	}
	defer conn.Close()
	var copiers sync.WaitGroup
	copiers.Go(func() {
		_, _ = io.Copy(conn, client)
		_ = conn.(*net.TCPConn).CloseWrite()
	})
	copiers.Go(func() {
		_, _ = io.Copy(client, conn)
		_ = client.CloseWrite()
	})
	copiers.Wait()
}

// TestUpstreamOverTLS checks that large values, half-closed clients, and blocked clients that
// leave are handled if the upstream is behind TLS.
func TestUpstreamOverTLS(t *testing.T) {
	server := startRedis(t)
	front := startTLSTerminator(t, server.Addr())
	r := startProxy(t, "rediss://"+front+"/2?skip_verify=true")
	big := strings.Repeat("x", 3<<20)
	p, other := r.connect(), dial(t, server.Addr())
	p.send(array("SET", "k", big) + lines("LOCK k t PX 1000", "GET k"))
	p.expect("+OK\r\n:1000\r\n" + bulk(big))
	p.send(lines("UNLOCK k t", "GET k", "ECHO end"))
	if err := p.conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	p.expectAll(":1\r\n" + bulk(big) + bulk("end"))

	p = r.connect()
	p.send(lines("PING", "BLPOP q 0"))
	p.expect("+PONG\r\n")
	eventually(t, "the blocked client", func() bool {
		return strings.Contains(other.ask("INFO clients"), "blocked_clients:1")
	})
	p.conn.Close()
	eventually(t, "the client's end", func() bool {
		return strings.Contains(other.ask("INFO clients"), "blocked_clients:0")
	})

	strict := startProxy(t, "rediss://"+front)
	if got := strict.connect().ask("GET a"); !strings.HasPrefix(got,
		"-ERR upstream "+front+": tls: failed to verify certificate") {
		t.Errorf("an untrusted certificate: %q", got)
	}
}
