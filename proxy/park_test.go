package proxy_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"redlock-proxy/internal/redistest"
	"redlock-proxy/proxy"
)

// parkSoon parks clients as soon as they pause.
func parkSoon(s *proxy.Server) { s.SetIdleTime(time.Millisecond) }

// parkNever never parks clients.
func parkNever(s *proxy.Server) { s.SetIdleTime(time.Hour) }

// startParking starts a proxy that parks its clients soon.
func startParking(t *testing.T, url string, opts proxy.Options) *testProxy {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED: clients are parked on Linux only")
	}
	skipOverTLS(t)
	return startProxyWith(t, url, opts, nil, parkSoon)
}

// waitParked waits until n clients are parked.
func (r *testProxy) waitParked(n int) {
	r.Helper()
	eventually(r.T, "parked clients", func() bool { return r.server.ParkedCount() == n })
}

// TestManyClientsAreParkedAndWoken checks that thousands of idle clients have no goroutines. Each
// client is served immediately whenever the client or its upstream sends something.
func TestManyClientsAreParkedAndWoken(t *testing.T) {
	redistest.SkipShort(t)
	server := startRedis(t)
	r := startParking(t, server.URL(), proxy.Options{})
	const clients = 2000
	before := runtime.NumGoroutine()
	peers := make([]*peer, clients)
	for i := range peers {
		peers[i] = r.connect()
		peers[i].check(fmt.Sprintf("SET k%d 0", i), "+OK\r\n")
		if i%2 == 1 {
			peers[i].check(fmt.Sprintf("SUBSCRIBE c%d", i), ack("*", "subscribe", fmt.Sprintf("c%d", i), 1))
		}
	}
	publisher := dial(t, server.Addr())
	for round := range 3 {
		r.waitParked(clients)
		eventually(t, "the end of their goroutines", func() bool { return runtime.NumGoroutine() < before+clients/10 })
		for _, p := range peers {
			_ = p.conn.SetDeadline(time.Now().Add(testTimeout))
		}
		_ = publisher.conn.SetDeadline(time.Now().Add(testTimeout))
		for i, p := range peers {
			if i%2 == 1 {
				publisher.send(cmd(fmt.Sprintf("PUBLISH c%d %d", i, round)))
				continue
			}
			p.send(cmd(fmt.Sprintf("INCR k%d", i)))
		}
		for i, p := range peers {
			if i%2 == 1 {
				publisher.expect(":1\r\n")
				p.expect(message("*", fmt.Sprintf("c%d", i), fmt.Sprint(round)))
				continue
			}
			p.expect(fmt.Sprintf(":%d\r\n", round+1))
		}
	}
	for i, p := range peers {
		p.conn.Close()
		if i == clients/2 { // half of the clients leave while they are parked
			r.waitParked(clients - 1 - i)
		}
	}
	eventually(t, "the sessions' ends", func() bool { return r.server.Clients() == 0 })
}

// TestWaitersForLocksAreNotParked checks that a client that waits for its lock is not parked, and
// that other clients are.
func TestWaitersForLocksAreNotParked(t *testing.T) {
	r := startParking(t, startRedis(t).URL(), proxy.Options{})
	holder, waiter, idle := r.connect(), r.connect(), r.connect()
	holder.check("LOCK k t PX 60000", ":60000\r\n")
	waiter.send(cmd("LOCK k u PX 60000 BLOCK 0"))
	eventually(t, "the waiter", func() bool { return r.locks.waiters() == 1 })
	r.waitParked(2)
	holder.check("UNLOCK k t", ":1\r\n")
	waiter.expect(":60000\r\n")
	r.waitParked(3)
	idle.check("LOCK k v PX 60000", "$-1\r\n")
	waiter.check("UNLOCK k u", ":1\r\n")
}

// TestStateSurvivesParking checks that a connection has the same state after its client is woken.
func TestStateSurvivesParking(t *testing.T) {
	server := startRedis(t, "--requirepass", "secret")
	r := startParking(t, server.URL(), proxy.Options{})
	p := r.connect()
	for _, step := range []struct{ sent, want string }{
		{"LOCK k t PX 60000", "-NOAUTH Authentication required.\r\n"},
		{"AUTH secret", "+OK\r\n"},
		{"SELECT 3", "+OK\r\n"},
		{"LOCK k t PX 60000", ":60000\r\n"},
		{"CLIENT SETNAME me", "+OK\r\n"},
		{"MULTI", "+OK\r\n"},
		{"SET a 1", "+QUEUED\r\n"},
		{"EXEC", "*1\r\n+OK\r\n"},
		{"UNLOCK k t", ":1\r\n"},
		{"CLIENT GETNAME", bulk("me")},
		{"SUBSCRIBE c", ack("*", "subscribe", "c", 1)},
		{"LOCK k t PX 60000", cannotLockError},
		{"UNSUBSCRIBE c", ack("*", "unsubscribe", "c", 0)},
		{"GET a", bulk("1")},
	} {
		r.waitParked(1)
		p.check(step.sent, step.want)
	}
}

// TestBlockedClientsAreParked checks that a client that is blocked at the upstream is parked. The
// reply wakes it, and if the client leaves, nothing is popped from the list.
func TestBlockedClientsAreParked(t *testing.T) {
	server := startRedis(t)
	r := startParking(t, server.URL(), proxy.Options{})
	worker, leaving, direct := r.connect(), r.connect(), dial(t, server.Addr())
	leaving.send(cmd("BLPOP list 0"))
	blocked := func(n string) func() bool {
		return func() bool { return strings.Contains(direct.ask("INFO clients"), "blocked_clients:"+n+"\r\n") }
	}
	eventually(t, "a blocked client", blocked("1"))
	worker.send(cmd("BLPOP list 0"))
	eventually(t, "two blocked clients", blocked("2"))
	r.waitParked(2)
	leaving.conn.Close()
	eventually(t, "its end", blocked("1"))
	direct.check("RPUSH list x", ":1\r\n")
	worker.expect("*2\r\n" + bulk("list") + bulk("x"))
	worker.send(lines("BLPOP list 0", "LOCK k t PX 1000"))
	eventually(t, "a blocked client", blocked("1"))
	direct.check("RPUSH list y", ":1\r\n")
	worker.expect("*2\r\n" + bulk("list") + bulk("y") + ":1000\r\n")
}

// TestIncompleteCommandPreventsParking checks that a client that has sent a part of a command is
// not parked, and is served as usual.
func TestIncompleteCommandPreventsParking(t *testing.T) {
	r := startParking(t, startRedis(t).URL(), proxy.Options{})
	other := r.connect()
	for _, command := range []string{cmd("SET key value"), cmd("LOCK k t PX 1000"), "PING hello\r\n", cmd("SELECT 1")} {
		for at := 1; at < len(command); at++ {
			p := r.connect()
			p.send(cmd("PING") + command[:at])
			p.expect("+PONG\r\n")
			eventually(t, "its being left alone", func() bool { return r.server.UnparkableCount() == 1 })
			p.send(command[at:])
			p.readReply()
			p.conn.Close()
			eventually(t, "its end", func() bool { return r.server.Clients() == 1 })
		}
	}
	other.check("PING", "+PONG\r\n")
}

// TestParkedClientsEnd checks that the end of either stream wakes a parked client and ends it.
func TestParkedClientsEnd(t *testing.T) {
	for name, end := range map[string]func(p *peer, up net.Conn) error{
		"client closes":     func(p *peer, _ net.Conn) error { return p.conn.Close() },
		"client halfcloses": func(p *peer, _ net.Conn) error { return p.conn.CloseWrite() },
		"client resets": func(p *peer, _ net.Conn) error {
			_ = p.conn.SetLinger(0)
			return p.conn.Close()
		},
		"upstream closes":     func(_ *peer, up net.Conn) error { return up.Close() },
		"upstream halfcloses": func(_ *peer, up net.Conn) error { return up.(*net.TCPConn).CloseWrite() },
		"upstream resets": func(_ *peer, up net.Conn) error {
			_ = up.(*net.TCPConn).SetLinger(0)
			return up.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			upstreamConns := make(chan net.Conn, 1)
			fake := startFake(t, func(c *fakeConn) {
				c.read(1)
				c.write("+OK\r\n")
				upstreamConns <- c.Conn
				c.read(1)
			})
			r := startParking(t, fake.url(), proxy.Options{})
			p := r.connect()
			p.check("GET a", "+OK\r\n")
			r.waitParked(1)
			if err := end(p, <-upstreamConns); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the session's end", func() bool { return r.server.Clients() == 0 })
		})
	}
}

// TestEndTogetherWithTheLastCommand checks that a client that sends its last command together with
// the end of its stream gets the reply, and then the end of the proxy's stream. If the client
// resets its connection, its session ends. The test does not park clients, because parking would
// also detect the end.
func TestEndTogetherWithTheLastCommand(t *testing.T) {
	r := startProxyWith(t, startRedis(t).URL(), proxy.Options{}, nil, parkNever)
	for i := range 300 {
		p := r.connect()
		if i%2 == 0 {
			p.check("PING", "+PONG\r\n") // the client has an upstream connection now
		}
		p.send(cmd("ECHO last"))
		if i%5 == 0 {
			_ = p.conn.SetLinger(0)
			p.conn.Close()
			continue
		}
		if err := p.conn.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		p.expectAll(bulk("last"))
	}
	eventually(t, "the sessions' ends", func() bool { return r.server.Clients() == 0 })
}

// TestUpstreamThatEndsTogetherWithItsAnswer checks that the proxy does not wait for an upstream
// that closes the connection together with its reply.
func TestUpstreamThatEndsTogetherWithItsAnswer(t *testing.T) {
	for name, closing := range map[string]func(c *net.TCPConn){
		"close": func(c *net.TCPConn) {},
		"reset": func(c *net.TCPConn) { _ = c.SetLinger(0) },
	} {
		t.Run(name, func(t *testing.T) {
			fake := startFake(t, func(c *fakeConn) {
				c.read(1)
				c.write("+OK\r\n")
				closing(c.Conn.(*net.TCPConn))
			})
			r := startProxyWith(t, fake.url(), proxy.Options{}, nil, parkNever)
			for range 300 {
				p := r.connect()
				p.send(cmd("GET a"))
				got := p.readAll() // a reset may overtake the reply
				if got != "+OK\r\n" && (name != "reset" || !strings.HasPrefix(got, "-ERR upstream")) {
					t.Fatalf("got %q", got)
				}
			}
		})
	}
}

// TestDrainWhileParked checks that a stopping server closes its parked clients immediately,
// including clients that are parked or woken at that moment.
func TestDrainWhileParked(t *testing.T) {
	server := startRedis(t)
	for _, wait := range []bool{true, false} {
		r := startParking(t, server.URL(), proxy.Options{DrainTimeout: time.Hour})
		peers := make([]*peer, 500)
		for i := range peers {
			peers[i] = r.connect()
			peers[i].check("GET a", "$-1\r\n")
		}
		if wait {
			r.waitParked(len(peers))
		}
		r.stop()
		for _, p := range peers {
			p.expectAll("")
		}
		await(t, "the server's end", r.serveDone)
	}
}

// TestParkingAtRandom lets clients work, pause and leave at random. Each client gets correct
// replies.
func TestParkingAtRandom(t *testing.T) {
	redistest.SkipShort(t)
	skipOverTLS(t)
	server := startRedis(t)
	r := startProxyWith(t, server.URL(), proxy.Options{}, nil,
		func(s *proxy.Server) { s.SetIdleTime(200 * time.Microsecond) })
	var clients sync.WaitGroup
	for id := range 20 {
		clients.Go(func() {
			rng := rand.New(rand.NewPCG(7, uint64(id)))
			for visit := range 10 {
				r.runClient(rng, fmt.Sprintf("%d.%d", id, visit))
			}
		})
	}
	clients.Wait()
	eventually(t, "the sessions' ends", func() bool { return r.server.Clients() == 0 })
}

// runClient runs one client's connection.
func (r *testProxy) runClient(rng *rand.Rand, name string) {
	conn, err := net.Dial("tcp", r.addr)
	if err != nil {
		r.Error(err)
		return
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(testTimeout))
	count := 0
	for range 30 {
		// The commands come at any moment.
		time.Sleep(time.Duration(rng.IntN(3)) * time.Duration(rng.IntN(400)) * time.Microsecond)
		sent, want := "", ""
		for range 1 + rng.IntN(3) {
			switch rng.IntN(4) {
			case 0:
				sent += lines("LOCK l"+name+" t PX 60000", "UNLOCK l"+name+" t")
				want += ":60000\r\n:1\r\n"
			case 1:
				sent += lines("RPUSH q"+name+" x", "BLPOP q"+name+" 0")
				want += ":1\r\n*2\r\n" + bulk("q"+name) + bulk("x")
			default:
				count++
				sent += cmd("INCR n" + name)
				want += fmt.Sprintf(":%d\r\n", count)
			}
		}
		at := rng.IntN(len(sent))
		if _, err := conn.Write([]byte(sent[:at])); err != nil {
			r.Error(err)
			return
		}
		// The pause makes the commands arrive in two pieces.
		time.Sleep(time.Duration(rng.IntN(2)*rng.IntN(800)) * time.Microsecond)
		if _, err := conn.Write([]byte(sent[at:])); err != nil {
			r.Error(err)
			return
		}
		got := make([]byte, len(want))
		if n, err := io.ReadFull(conn, got); string(got[:n]) != want {
			r.Errorf("client %s: got %q, %v\nwant %q", name, got[:n], err, want)
			return
		}
	}
}
