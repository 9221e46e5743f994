//go:build integration

package operate

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/harness"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// balancerConfig is the configuration of HAProxy, with placeholders for its port, the address of
// the proxy, and the option that sends the header.
const balancerConfig = `defaults
    mode tcp
    timeout connect 5s
    timeout client 1h
    timeout server 1h
listen relay
    bind 0.0.0.0:%s
    server proxy %s %s
`

func startBalancer(t *testing.T, proxy, headerOption string) string {
	t.Helper()
	server, err := harness.StartServer(harness.ServerOptions{Program: "haproxy",
		Arguments: func(addr, dir string) ([]string, error) {
			_, port, err := net.SplitHostPort(addr)
			path := filepath.Join(dir, "haproxy.cfg")
			return []string{"-db", "-f", path}, errors.Join(err, os.WriteFile(path,
				fmt.Appendf(nil, balancerConfig, port, proxy, headerOption), 0o600))
		}})
	if errors.Is(err, harness.ErrNoProgram) {
		redistest.SkipMissing(t, "haproxy")
	}
	kit.Must(t, err)
	t.Cleanup(func() { kit.NoError(t, server.Close()) })
	return server.Addr()
}

// TestBehindHAProxy checks that the proxy shows, logs and checks the address of the client, and not
// the address of the HAProxy between them.
func TestBehindHAProxy(t *testing.T) {
	t.Parallel()
	otherAddr := kit.NonLoopbackAddress(t)
	for _, headerOption := range []string{"send-proxy", "send-proxy-v2"} {
		t.Run(headerOption, func(t *testing.T) {
			proxy := kit.StartProxy(t, []string{kit.StartRedis(t).URL()}, "--proxy-protocol", "127.0.0.0/8", "--audit-log")
			balancer := startBalancer(t, proxy.Addr(), headerOption)
			client := kit.Dial(t, balancer)
			kit.WantPrefix(t, client, "LOCK k here PX 60000", "5")
			for _, command := range [][]string{{"CLIENT", "INFO"}, {"CLIENT", "LIST"}, {"LOCKINFO", "k"}} {
				reply, err := client.Do(command...)
				if err != nil || !strings.Contains(fmt.Sprint(reply), client.LocalAddr()) {
					t.Errorf("%v: %v, %v; want %s in it", command, reply, err, client.LocalAddr())
				}
			}
			_, err := proxy.WaitLog(client.LocalAddr(), kit.WaitLimit)
			kit.Must(t, err)
			_, port, err := net.SplitHostPort(balancer)
			kit.Must(t, err)
			kit.WantPrefix(t, kit.Dial(t, net.JoinHostPort(otherAddr, port)), "LOCK l there PX 60000",
				"DENIED Redis is running in protected mode")
			_, err = proxy.WaitLog("client="+otherAddr+":", kit.WaitLimit)
			kit.Must(t, err)
			if got := runProxy(t, "healthcheck", "--ready", "--listen", proxy.Addr(), "--proxy-protocol",
				"127.0.0.1"); got != (outcome{}) {
				t.Errorf("healthcheck on a balancer's own machine: %+v", got)
			}
		})
	}
}

// TestHostileHeaders checks that the first bytes of a connection affect only this connection.
func TestHostileHeaders(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	master := kit.StartRedis(t).URL()
	listedProxy := kit.StartProxy(t, []string{master}, "--proxy-protocol", "127.0.0.1")
	otherProxy := kit.StartProxy(t, []string{master}, "--proxy-protocol", "10.255.255.1")
	const signature, line = "\r\n\r\n\x00\r\nQUIT\n", "PROXY TCP4 10.9.8.7 10.0.0.1 "
	const ping, refusal = "*1\r\n$4\r\nPING\r\n", "-ERR no PROXY protocol header"

	// The proxy closes a silent connection.
	startedAt := time.Now()
	stalled := kit.Dial(t, listedProxy.Addr())
	kit.Must(t, stalled.Send([]byte(signature+"\x21\x11\x00")))
	for _, c := range []struct {
		proxy         *harness.Proxy
		header, reply string
	}{
		{listedProxy, "PROXY UNKNOWN\r\n" + ping, "+PONG"},
		{listedProxy, signature + "\x20\x00\x00\x00" + ping, "+PONG"},
		{listedProxy, line + "0 6379\r\n" + ping, "-DENIED"},
		{listedProxy, line + "1234 6379\r\n" + ping, "-DENIED"},
		// The second header is a command.
		{listedProxy, "PROXY TCP4 127.0.0.1 127.0.0.1 1 1\r\n" + line + "1 1\r\n" + ping, "-ERR"},
		{listedProxy, ping, refusal},
		{listedProxy, "PROXY INFO\r\n", refusal},
		{listedProxy, "PROXY " + strings.Repeat("x", 4096), refusal},
		{listedProxy, signature + "\x21\x11\xff\xff" + strings.Repeat("x", 70000), refusal},
		{otherProxy, line + "1234 6379\r\n", "-ERR"},
		// This is a line with a zero byte: Redis also waits for its end.
		{otherProxy, signature + "\x21\x11\x00\x0c", ""},
		{otherProxy, ping, "+PONG"},
	} {
		client := kit.Dial(t, c.proxy.Addr())
		// The proxy may close the connection before it has read everything.
		_ = client.Send([]byte(c.header))
		if got, err := client.ReceiveRaw(len(c.reply)); string(got) != c.reply {
			t.Errorf("%.60q: %q, %v; want %s", c.header, got, err, c.reply)
		}
	}
	if rest, err := stalled.ReceiveAll(); len(rest) > 0 || time.Since(startedAt) > kit.WaitLimit {
		t.Errorf("half a header and silence: %q, %v, after %v", rest, err, time.Since(startedAt))
	}
	kit.WantLogged(t, listedProxy, "no PROXY protocol header from an address in proxy-protocol")
}
