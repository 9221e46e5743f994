package proxy_test

import (
	"net"
	"strings"
	"testing"

	"redlock-proxy/proxy"
)

// remoteListener gives connections the address of a client on another machine.
type remoteListener struct {
	net.Listener
	addr net.Addr
}

func (l remoteListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &remoteConn{conn.(*net.TCPConn), l.addr}, nil
}

// remoteConn is a connection whose address is on another machine.
type remoteConn struct {
	*net.TCPConn
	addr net.Addr
}

func (c *remoteConn) RemoteAddr() net.Addr { return c.addr }

// startWithClientAddr starts a proxy whose clients seem to come from an address.
func startWithClientAddr(t *testing.T, ip, url string, opts proxy.Options) *testProxy {
	t.Helper()
	r := newTestProxy(t, testTimeout, url, opts, nil)
	r.serve(remoteListener{listen(t), &net.TCPAddr{IP: net.ParseIP(ip), Port: 4711}})
	return r
}

// TestProtectedMode checks that protected mode refuses clients from other machines while neither
// the upstream nor the proxy requires a login.
func TestProtectedMode(t *testing.T) {
	open, closed, loggedIn := startRedis(t), startRedis(t, "--requirepass", "secret"),
		startRedis(t, "--requirepass", "secret")
	fewRights := startRedis(t)
	dial(t, fewRights.Addr()).check("ACL SETUSER default nopass +@all -@all +ping", "+OK\r\n")
	const deniedReply = "-DENIED Redis is running in protected mode because protected mode is enabled and no login is required. " +
		"In this mode connections are only accepted from the loopback interface. "
	nowhere := "redis://127.0.0.1:1"
	for name, test := range map[string]struct {
		url, addr string
		opts      proxy.Options
		want      string // the reply to PING
	}{
		"nobody logs in":            {open.URL(), "192.0.2.7", proxy.Options{ProtectedMode: true}, deniedReply},
		"over IPv6":                 {open.URL(), "2001:db8::7", proxy.Options{ProtectedMode: true}, deniedReply},
		"from this machine":         {open.URL(), "127.0.0.2", proxy.Options{ProtectedMode: true}, "+PONG\r\n"},
		"from this machine, IPv6":   {open.URL(), "::1", proxy.Options{ProtectedMode: true}, "+PONG\r\n"},
		"from this machine, mapped": {open.URL(), "::ffff:127.0.0.1", proxy.Options{ProtectedMode: true}, "+PONG\r\n"},
		"off":                       {open.URL(), "192.0.2.7", proxy.Options{}, "+PONG\r\n"},
		"the upstream decides": {closed.URL(), "192.0.2.7", proxy.Options{ProtectedMode: true},
			"-NOAUTH Authentication required.\r\n"},
		"the proxy logs in": {"redis://:secret@" + loggedIn.Addr(), "192.0.2.7",
			proxy.Options{ProtectedMode: true}, deniedReply},
		"a password at the proxy": {"redis://:secret@" + loggedIn.Addr(), "192.0.2.7",
			proxy.Options{ProtectedMode: true, ClientPassword: "p"}, "-NOAUTH Authentication required.\r\n"},
		"few rights without a login": {fewRights.URL(), "192.0.2.7", proxy.Options{ProtectedMode: true}, deniedReply},
		"an upstream never heard of": {nowhere, "192.0.2.7", proxy.Options{ProtectedMode: true},
			"-DENIED Redis is running in protected mode because protected mode is enabled and the proxy cannot tell whether the upstream requires a login until"},
		"that, from this machine": {nowhere, "127.0.0.1", proxy.Options{ProtectedMode: true},
			"-ERR upstream 127.0.0.1:1: connection refused\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			r := startWithClientAddr(t, test.addr, test.url, test.opts)
			p := r.connect()
			p.send(lines("PING"))
			if got := p.readReply(); !strings.HasPrefix(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
			if strings.HasPrefix(test.want, "-DENIED") {
				p.send(lines("FLUSHALL"))
				p.expectAll("")
			}
		})
	}
}

// TestProtectedModeFollowsTheUpstream checks that the upstream's demand for a login applies to
// clients that connect afterwards.
func TestProtectedModeFollowsTheUpstream(t *testing.T) {
	server := startRedis(t)
	r := startWithClientAddr(t, "192.0.2.7", server.URL(), proxy.Options{ProtectedMode: true})
	direct := dial(t, server.Addr())
	for _, step := range [][2]string{{"secret", "-NOAUTH"}, {"", "-DENIED"}, {"again", "-NOAUTH"}} {
		direct.send(array("CONFIG", "SET", "requirepass", step[0]))
		direct.expect("+OK\r\n")
		r.upstream.Probe(t.Context())
		if got := r.connect().ask("PING"); !strings.HasPrefix(got, step[1]) {
			t.Errorf("password %q: got %q, want %s", step[0], got, step[1])
		}
	}
}
