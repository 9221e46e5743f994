//go:build integration

package locks

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"redlock-proxy/integration/harness"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/certtest"
	"redlock-proxy/internal/redistest"
)

// deliveryCase is the configuration for a lock whose client may disconnect before it reads the
// grant.
type deliveryCase struct {
	name string
	args []string
	// key is the key of the lock.
	key string
	// neighbour, if not empty, is another key of the tag that is set after the grant.
	neighbour string
	tlsConfig *tls.Config // the clients' TLS configuration; nil: no TLS
}

func deliveryCases(t *testing.T) []deliveryCase {
	t.Helper()
	ca := certtest.NewCA(t)
	pair := ca.Issue(t)
	lockKeyArgs, tagArgs := []string{"--lock-keys", "*"}, []string{"--lock-keys", "*", "--lock-tags", "*"}
	return []deliveryCase{
		{name: "lock server", args: lockKeyArgs, key: "lock:k"},
		{name: "upstream", args: kit.LockKeyArgs(kit.StartRedis(t)), key: "lock:k"},
		{name: "tag", args: tagArgs, key: "lock:k:{t}"},
		{name: "name of a tag", args: tagArgs, key: "lock:t", neighbour: "n:{lock:t}"},
		{name: "TLS", args: append(slices.Clone(lockKeyArgs), "--tls-cert", pair.Cert, "--tls-key", pair.Key), key: "lock:k",
			tlsConfig: &tls.Config{RootCAs: ca.Pool(), ServerName: "localhost"}},
	}
}

// runEachCase runs a test in each case, with three masters and two proxies.
func runEachCase(t *testing.T, test func(t *testing.T, s deliveryCase, masters []*redistest.Server, proxies [2]*harness.Proxy)) {
	for _, s := range deliveryCases(t) {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			masters := kit.StartMasters(t)[:3]
			var proxies [2]*harness.Proxy
			for i := range proxies {
				proxies[i] = kit.StartProxy(t, redistest.URLs(masters), s.args...)
			}
			test(t, s, masters, proxies)
		})
	}
}

// client is a connection to a proxy that reads only on request, over TLS if the case has a TLS
// configuration.
type client struct {
	t    *testing.T
	tcp  *net.TCPConn
	conn net.Conn
	in   *bufio.Reader
}

// limitBuffers limits the buffers of both sockets. Small segments limit the sender's buffer.
func limitBuffers(_, _ string, raw syscall.RawConn) error {
	var sockoptErr error
	err := raw.Control(func(fd uintptr) {
		sockoptErr = errors.Join(syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4<<10),
			syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_MAXSEG, 536))
	})
	return errors.Join(err, sockoptErr)
}

func (s deliveryCase) connect(t *testing.T, proxy *harness.Proxy) *client {
	t.Helper()
	dialer := net.Dialer{Timeout: kit.WaitLimit, Control: limitBuffers}
	conn, err := dialer.Dial("tcp", proxy.Addr())
	kit.Must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	kit.Must(t, conn.SetDeadline(time.Now().Add(kit.WaitLimit)))
	c := &client{t: t, tcp: conn.(*net.TCPConn), conn: conn}
	if s.tlsConfig != nil {
		c.conn = tls.Client(conn, s.tlsConfig)
	}
	c.in = bufio.NewReader(c.conn)
	return c
}

func (c *client) send(commands ...[]string) {
	c.t.Helper()
	var raw []byte
	for _, words := range commands {
		raw = redistest.AppendCommand(raw, words...)
	}
	_, err := c.conn.Write(raw)
	kit.Must(c.t, err)
}

func (c *client) receive() any {
	c.t.Helper()
	reply, err := redistest.ReadReply(c.in)
	kit.Must(c.t, err)
	return reply
}

func (c *client) do(words ...string) any {
	c.t.Helper()
	c.send(words)
	return c.receive()
}

// disconnect resets the connection, and waits until the proxy has noticed the reset.
func (c *client) disconnect(s deliveryCase, proxy *harness.Proxy) {
	c.t.Helper()
	kit.Must(c.t, c.tcp.SetLinger(0))
	kit.Must(c.t, c.tcp.Close())
	observer := s.connect(c.t, proxy)
	defer observer.conn.Close()
	kit.Eventually(c.t, func() error {
		if info := fmt.Sprint(observer.do("PROXY", "INFO")); !strings.Contains(info, "connected_clients:1\r\n") {
			return fmt.Errorf("others than this one are connected:\n%s", info)
		}
		return nil
	})
}

// longReplyScript is a script whose reply exceeds the socket buffers between a proxy and a client.
const longReplyScript = "return string.rep('x', 1000000)"

// grantCommands holds commands that take a lock with the token "1". The last reply shows the grant.
type grantCommands struct {
	name     string
	commands func(key, ms string) [][]string
}

// evalCommand returns an EVAL with one key.
func evalCommand(body, key string, args ...string) []string {
	return append([]string{"EVAL", body, "1", key}, args...)
}

const takeScript = "if redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then %s end return 0"

func shortGrants() []grantCommands {
	plain := func(words ...string) func(key, ms string) [][]string {
		return func(key, ms string) [][]string {
			return [][]string{strings.Fields(strings.NewReplacer("KEY", key, "MS", ms).Replace(strings.Join(words, " ")))}
		}
	}
	return []grantCommands{
		{"SET NX", plain("SET KEY 1 NX PX MS")},
		{"LOCK", plain("LOCK KEY 1 PX MS")},
		{"EVAL", func(key, ms string) [][]string {
			return [][]string{evalCommand(fmt.Sprintf(takeScript, "return 1"), key, "1", ms)}
		}},
		{"EXEC", func(key, ms string) [][]string {
			return append(append([][]string{{"MULTI"}}, plain("SET KEY 1 NX PX MS")(key, ms)...), []string{"EXEC"})
		}},
	}
}

// longGrants returns the commands whose reply does not fit into the sockets.
func longGrants() []grantCommands {
	return []grantCommands{
		{"EVAL", func(key, ms string) [][]string {
			return [][]string{evalCommand(fmt.Sprintf(takeScript, longReplyScript), key, "1", ms)}
		}},
		{"EXEC", func(key, ms string) [][]string {
			return [][]string{{"MULTI"}, {"SET", key, "1", "NX", "PX", ms}, evalCommand(longReplyScript, key), {"EXEC"}}
		}},
	}
}

// awaitHeld waits until a lock is held with the token "1", and sets the neighbour.
func (s deliveryCase) awaitHeld(t *testing.T, observer *client) {
	t.Helper()
	kit.Eventually(t, func() error {
		if got := observer.do("GET", s.key); got != "1" {
			return fmt.Errorf("%s holds %v", s.key, got)
		}
		return nil
	})
	if s.neighbour != "" {
		observer.do("RPUSH", s.neighbour, "x")
	}
}

// wantStillHeld fails the test unless a lock can still be released a moment after its client has
// disconnected.
func (s deliveryCase) wantStillHeld(t *testing.T, observer *client) {
	t.Helper()
	time.Sleep(300 * time.Millisecond) // an undo would happen immediately
	if got := observer.do("UNLOCK", s.key, "1"); got != any(int64(1)) {
		t.Errorf("UNLOCK of what was delivered: %v", got)
	}
}

// TestDeliveredGrant checks that a lock stays if its client has read the grant and then
// disconnects. The client has not read the later replies of the same pipeline. The same holds if
// the client has half-closed its connection.
func TestDeliveredGrant(t *testing.T) {
	runEachCase(t, func(t *testing.T, s deliveryCase, _ []*redistest.Server, proxies [2]*harness.Proxy) {
		for i, grant := range slices.Repeat(shortGrants(), 2) {
			halfClosed := i >= len(shortGrants())
			t.Run(fmt.Sprintf("%s, half-closed %v", grant.name, halfClosed), func(t *testing.T) {
				owner, other := s.connect(t, proxies[0]), s.connect(t, proxies[1])
				defer other.conn.Close()
				commands := grant.commands(s.key, "60000")
				owner.send(append(slices.Clone(commands), evalCommand(longReplyScript, s.key))...)
				if halfClosed {
					kit.Must(t, owner.conn.(interface{ CloseWrite() error }).CloseWrite())
				}
				for range commands {
					if failure, isError := owner.receive().(redistest.RespError); isError {
						t.Fatal(failure)
					}
				}
				owner.disconnect(s, proxies[0])
				s.wantStillHeld(t, other)
			})
		}
	})
}

// TestUndeliveredGrant checks a lock whose holder disconnects before it has received the
// grant. Another client gets the lock long before the lease expires.
func TestUndeliveredGrant(t *testing.T) {
	runEachCase(t, func(t *testing.T, s deliveryCase, _ []*redistest.Server, proxies [2]*harness.Proxy) {
		for _, grant := range longGrants() {
			t.Run(grant.name, func(t *testing.T) {
				owner, other := s.connect(t, proxies[0]), s.connect(t, proxies[1])
				defer other.conn.Close()
				owner.send(grant.commands(s.key, "600000")...)
				s.awaitHeld(t, other)
				owner.disconnect(s, proxies[0])
				kit.Eventually(t, func() error {
					if got := other.do("LOCK", s.key, "2", "PX", "60000"); got == nil {
						return fmt.Errorf("it is still held: %v", other.do("LOCKINFO", s.key))
					}
					return nil
				})
				if got := other.do("UNLOCK", s.key, "2"); got != any(int64(1)) {
					t.Errorf("UNLOCK: %v", got)
				}
			})
		}
	})
}

// TestLockAfterUndeliveredGrant checks that a lock stays when an earlier holder disconnects. The
// earlier holder has not received its grant, and its lease has expired. Another client has taken
// the lock with the same token, through the same proxy or another proxy.
func TestLockAfterUndeliveredGrant(t *testing.T) {
	runEachCase(t, func(t *testing.T, s deliveryCase, _ []*redistest.Server, proxies [2]*harness.Proxy) {
		for _, longGrant := range longGrants() {
			for _, nextGrant := range shortGrants()[:2] {
				for i, proxy := range proxies {
					t.Run(fmt.Sprintf("%s, then %s through proxy %d", longGrant.name, nextGrant.name, i+1), func(t *testing.T) {
						stalledClient, owner, other := s.connect(t, proxies[0]), s.connect(t, proxy), s.connect(t, proxies[1])
						stalledClient.send(longGrant.commands(s.key, "1000")...)
						s.awaitHeld(t, other)
						kit.Eventually(t, func() error {
							commands := nextGrant.commands(s.key, "60000")
							owner.send(commands...)
							var reply any
							for range commands {
								reply = owner.receive()
							}
							if replies, isList := reply.([]any); isList {
								reply = replies[0]
							}
							if reply == nil || reply == any(int64(0)) {
								return fmt.Errorf("the time is not over: %v", reply)
							}
							return nil
						})
						// The owner disconnects. Otherwise this proxy would count it as a client
						// that is still connected.
						if proxy == proxies[0] {
							kit.Must(t, owner.conn.Close())
						}
						stalledClient.disconnect(s, proxies[0])
						s.wantStillHeld(t, other)
						kit.Must(t, other.conn.Close())
					})
				}
			}
		}
	})
}
