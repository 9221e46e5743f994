package proxy

import (
	"context"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"redlock-proxy/quorum"
)

const blockingCommand = "LOCK k t PX 5000 BLOCK 0\r\n"

// disconnects lists the ways in which a client can disconnect.
var disconnects = map[string]func(c *net.TCPConn) error{
	"close":     func(c *net.TCPConn) error { return c.Close() },
	"halfclose": func(c *net.TCPConn) error { return c.CloseWrite() },
	"reset": func(c *net.TCPConn) error {
		_ = c.SetLinger(0)
		return c.Close()
	},
}

func TestDisconnectIsDetectedImmediately(t *testing.T) {
	for name, disconnect := range disconnects {
		for behind, rest := range map[string]string{"": "", "with commands behind": strings.Repeat(array("PING"), 100),
			"with half a command behind": "*2\r\n$4\r\nPI",
			"with much behind":           strings.Repeat(array("PING"), 50_000/len(array("PING"))),
			"with too much behind":       strings.Repeat(array("PING"), 100_000/len(array("PING")))} {
			t.Run(name+behind, func(t *testing.T) {
				locks := newWaitingLocks()
				b := serveLocks(t, locks)
				p := b.connect()
				p.send("PING\r\n" + blockingCommand + rest)
				await(t, "the LOCK", locks.waitingTokens)
				p.expect(pong)
				if err := disconnect(p.conn.(*net.TCPConn)); err != nil {
					t.Fatal(err)
				}
				if err := await(t, "its end", locks.endCauses); err != errClientDisconnected {
					t.Errorf("ended by %v", err)
				}
				b.waitClients(0)
				if got := locks.releasedLocks(); len(got) != 0 {
					t.Errorf("nothing was granted, but released: %q", got)
				}
			})
		}
	}
}

// TestGrantToClientThatJustLeft checks that a lock that is granted just when its client leaves is
// released.
func TestGrantToClientThatJustLeft(t *testing.T) {
	locks := newWaitingLocks()
	inner := locks.lock
	locks.lock = func(ctx context.Context, req quorum.LockRequest) (time.Duration, error) {
		_, err := inner(ctx, req)
		if err != nil {
			return req.TTL, nil // the grant was on its way
		}
		return req.TTL, err
	}
	b := serveLocks(t, locks)
	p := b.connect()
	p.send(blockingCommand)
	await(t, "the LOCK", locks.waitingTokens)
	p.conn.Close()
	await(t, "its end", locks.endCauses)
	b.waitClients(0)
	if got := locks.releasedLocks(); !slices.Equal(got, []string{"k=t"}) {
		t.Errorf("released %q", got)
	}
}

func TestCommandsAfterBlock(t *testing.T) {
	locks := newWaitingLocks()
	b := serveLocks(t, locks)
	p := b.connect()
	p.send("PING\r\n" + blockingCommand + "ECHO a\r\n" + array("foo") + blockingCommand + "UNLOCK k t\r\nPI")
	p.expect(pong) // the BLOCK does not delay this reply
	await(t, "the first LOCK", locks.waitingTokens)
	locks.grants <- struct{}{}
	p.expect(":5000\r\n$1\r\na\r\n" + unknownReply)
	await(t, "the second LOCK", locks.waitingTokens)
	p.send("NG\r\n")
	locks.grants <- struct{}{}
	p.expect(":5000\r\n:1\r\n" + pong)
}

// TestManyCommandsAfterBlock checks that a client waits for its turn if it sends more after the
// BLOCK than the proxy reads ahead. Other clients notice nothing.
func TestManyCommandsAfterBlock(t *testing.T) {
	const commandCount = 200_000
	locks := newWaitingLocks()
	b := serveLocks(t, locks)
	p, other := b.connect(), b.connect()
	p.send(blockingCommand)
	await(t, "the LOCK", locks.waitingTokens)
	go func() { _, _ = p.conn.Write([]byte(strings.Repeat("PING\r\n", commandCount))) }()
	for range 100 {
		other.check("PING\r\n", pong)
	}
	locks.grants <- struct{}{}
	p.expect(":5000\r\n")
	for range commandCount / 1000 {
		p.expect(strings.Repeat(pong, 1000))
	}
}

// TestSilentWait checks that a client with replies off waits, too, and that CLIENT REPLY covers
// exactly the intended commands.
func TestSilentWait(t *testing.T) {
	locks := newWaitingLocks()
	b := serveLocks(t, locks)
	p := b.connect()
	p.send("ECHO before\r\nCLIENT REPLY SKIP\r\n" + blockingCommand + "ECHO behind\r\n")
	await(t, "the LOCK", locks.waitingTokens)
	p.expect("$6\r\nbefore\r\n")
	locks.grants <- struct{}{}
	p.expect("$6\r\nbehind\r\n")
	p.conn.Close()
	b.waitClients(0)
	if got := locks.releasedLocks(); len(got) != 0 {
		t.Errorf("released %q", got)
	}
}

// TestDisconnectedWaiterGetsNoLock disconnects the second of three clients that wait for a lock
// on real masters. The other clients are served in order, and the masters never hold the token of
// the second client.
func TestDisconnectedWaiterGetsNoLock(t *testing.T) {
	locker, masters := startMasters(t, 3)
	locks := reportingLocks{locker, make(chan string, 10)}
	b := serveLocks(t, locks)
	holder := b.connect()
	holder.send("LOCK k holder PX 60000\r\n")
	if got := holder.readLine(); !strings.HasPrefix(got, ":") {
		t.Fatal(got)
	}
	await(t, "the holder", locks.results)
	waiters := map[string]*peer{}
	for _, name := range []string{"first", "leaver", "last"} {
		waiters[name] = b.connect()
		waiters[name].send("PING\r\nLOCK k " + name + " PX 60000 BLOCK 0\r\n")
		waiters[name].expect(pong) // the client waits for the lock, or is about to
	}
	waiters["leaver"].conn.Close()
	if got := await(t, "the leaver's end", locks.results); got != "leaver: "+errClientDisconnected.Error() {
		t.Fatal(got)
	}
	holder.check("UNLOCK k holder\r\n", ":1\r\n")
	for range 2 {
		name, _, _ := strings.Cut(await(t, "a grant", locks.results), ":")
		p := waiters[name]
		if got := p.readLine(); !strings.HasPrefix(got, ":") {
			t.Fatalf("%s: %q", name, got)
		}
		for i, m := range masters {
			if v, _ := m.Get("k"); v == "leaver" {
				t.Errorf("master %d holds %q", i, v)
			}
		}
		p.check("UNLOCK k "+name+"\r\n", ":1\r\n")
	}
	for _, m := range masters {
		b.eventually("a master without the key", func() bool { return !m.Exists("k") })
	}
}
