package proxy_test

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"redlock-proxy/internal/redistest"
	"redlock-proxy/proxy"
)

// These are about clients that share connections to the upstream; that they notice nothing of it is shown by all other tests
// of the relay with REDLOCK_TEST_SHARING=2.

// sharingOf starts a proxy whose clients share so many connections.
func sharingOf(t *testing.T, connections int, url string, prepare ...func(*proxy.Server)) *rig {
	t.Helper()
	return startProxyWith(t, url, proxy.Options{UpstreamConnections: connections}, []string{"lock:*"}, prepare...)
}

// connections are those that the upstream has, without the one that asks.
func connections(t *testing.T, server *redistest.Server) int {
	t.Helper()
	p := dial(t, server.Addr())
	defer p.conn.Close()
	return listed(p)
}

// listed are those that somebody else has.
func listed(p *peer) int {
	p.Helper()
	list := p.ask("CLIENT LIST")
	return strings.Count(list, "id=") - strings.Count(list, "cmd=client|list")
}

// Many clients use few connections, and each gets its own replies. REDLOCK_TEST_CLIENTS=10000 for more of them.
func TestManyClientsShareFewConnections(t *testing.T) {
	const shared = 8
	clients := 500
	if n, err := strconv.Atoi(os.Getenv("REDLOCK_TEST_CLIENTS")); err == nil {
		clients = n
	}
	server := startRedis(t)
	r := sharingOf(t, shared, server.URL())
	peers := make([]*peer, clients)
	for i := range peers {
		peers[i] = r.connect()
	}
	for round := range 3 {
		for i, p := range peers {
			p.send(cmd(fmt.Sprintf("SET k:%d %d-%d", i, i, round)) + cmd(fmt.Sprintf("GET k:%d", i)) + cmd("INCR all"))
		}
		for i, p := range peers {
			p.expect("+OK\r\n" + bulk(fmt.Sprintf("%d-%d", i, round)))
			p.reply()
		}
	}
	if n := connections(t, server); n != shared {
		t.Errorf("%d connections", n)
	}
	dial(t, server.Addr()).say("GET all", bulk(fmt.Sprint(3*clients)))
}

// Whatever belongs to a connection is on one of the client's own, which is given back when the client is quiet and has left nothing behind.
func TestOwnConnectionComesAndGoes(t *testing.T) {
	notOverTLS(t)
	server := startRedis(t)
	for _, c := range []struct{ name, takes, want, leaves, then string }{
		{"MULTI", "MULTI", "+OK\r\n", "EXEC", "*0\r\n"},
		{"WATCH", "WATCH x", "+OK\r\n", "UNWATCH", "+OK\r\n"},
		{"SUBSCRIBE", "SUBSCRIBE x", ack("*", "subscribe", "x", 1), "UNSUBSCRIBE x", ack("*", "unsubscribe", "x", 0)},
		{"PSUBSCRIBE", "PSUBSCRIBE x", ack("*", "psubscribe", "x", 1), "PUNSUBSCRIBE x", ack("*", "punsubscribe", "x", 0)},
		{"CLIENT", "CLIENT ID", "", "", ""},
		{"an unknown command", "NOSUCH", "", "", ""},
		{"AUTH", "AUTH default x", "", "", ""},
		{"EVAL", "", "", "EVAL return(1) 0", ":1\r\n"},
		{"BLPOP", "", "", "BLPOP none 0.01", "*-1\r\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := sharingOf(t, 1, server.URL(), soonParked)
			p := r.connect()
			p.say("SET a 1", "+OK\r\n")
			before := connections(t, server)
			if c.takes != "" {
				if got := p.ask(c.takes); c.want != "" && got != c.want {
					t.Fatalf("%s: %q", c.takes, got)
				}
				eventually(t, "parking", func() bool { return r.server.Parked() == 1 })
				if n := connections(t, server); n != before+1 {
					t.Errorf("%d connections instead of %d", n, before+1)
				}
			}
			if c.leaves == "" {
				return
			}
			p.say(c.leaves, c.then)
			eventually(t, "the end of its own connection", func() bool { return connections(t, server) == before })
			p.say("GET a", bulk("1"))
			if n := connections(t, server); n != before {
				t.Errorf("%d connections instead of %d", n, before)
			}
		})
	}
}

// A pipeline that goes over both kinds of connections is carried out in order.
func TestPipelineOverBothKinds(t *testing.T) {
	server := startRedis(t)
	r := sharingOf(t, 2, server.URL())
	for range 20 {
		p := r.connect()
		p.send(lines("SET x 1", "INCR x", "LOCK k t PX 1000", "INCR x", "MULTI", "INCR x", "EXEC", "INCR x", "UNLOCK k t", "EVAL return(5) 0", "GET x", "QUIT"))
		p.expectAll("+OK\r\n:2\r\n:1000\r\n:3\r\n+OK\r\n+QUEUED\r\n*1\r\n:4\r\n:5\r\n:1\r\n:5\r\n" + bulk("5") + "+OK\r\n")
	}
}

// A client that takes nothing of a large reply keeps nobody waiting, and gets all of it when it reads.
func TestSlowClientBesideOthers(t *testing.T) {
	server := startRedis(t)
	const size = 20 << 20
	direct := dial(t, server.Addr())
	direct.send(array("SET", "big", strings.Repeat("v", size)))
	direct.expect("+OK\r\n")
	r := sharingOf(t, 1, server.URL())
	slow := r.connect()
	slow.send(lines("GET big", "PING"))
	for range 50 {
		other := r.connect()
		other.say("PING", "+PONG\r\n")
		other.conn.Close()
	}
	slow.expect(fmt.Sprintf("$%d\r\n", size))
	if n, err := io.CopyN(io.Discard, slow.in, size); n != size || err != nil {
		t.Fatal(n, err)
	}
	slow.expect("\r\n+PONG\r\n")
	eventually(t, "nothing held", func() bool { return r.server.Held() == 0 })
}

// hasRelayed waits until so many commands were sent to the upstream. They are counted after that, so an answer may be there first.
func (r *rig) hasRelayed(n int64) {
	r.Helper()
	eventually(r.T, fmt.Sprintf("%d commands", n), func() bool { return r.server.Counts().Relayed == n })
}

// Many clients that leave a little less unread are not all kept: there is a bound for them together.
func TestBoundOfWhatIsHeldByAll(t *testing.T) {
	server := startRedis(t)
	direct := dial(t, server.Addr())
	direct.send(array("SET", "big", strings.Repeat("v", 31<<20)))
	direct.expect("+OK\r\n")
	r := sharingOf(t, 1, server.URL())
	r.server.Apply(proxy.Settings{Unread: 128 << 20})
	const clients = 7
	other := r.connect()
	other.say("PING", "+PONG\r\n")
	r.hasRelayed(1)
	if err := server.Pause(); err != nil {
		t.Fatal(err)
	}
	for i := range int64(clients) {
		r.connect().send(cmd("GET big"))
		r.hasRelayed(2 + i)
	}
	other.send(cmd("PING"))
	r.hasRelayed(2 + clients)
	if err := server.Continue(); err != nil {
		t.Fatal(err)
	}
	other.expect("+PONG\r\n")
	eventually(t, "the end of some", func() bool { return r.server.Clients() < 1+clients })
	if held := r.server.Held(); held > 129<<20 {
		t.Errorf("%d bytes are held", held)
	}
}

// Whose command stands behind a reply of which more is left unread than is held gets its own; who leaves it unread is disconnected.
func TestBoundOfWhatIsHeld(t *testing.T) {
	server := startRedis(t)
	const size = 48 << 20 // more than maxHeld and what the system holds
	direct := dial(t, server.Addr())
	direct.send(array("SET", "big", strings.Repeat("v", size)))
	direct.expect("+OK\r\n")
	r := sharingOf(t, 1, server.URL())
	slow, other := r.connect(), r.connect()
	slow.say("PING", "+PONG\r\n")
	other.say("PING", "+PONG\r\n")
	r.hasRelayed(2)
	if err := server.Pause(); err != nil {
		t.Fatal(err)
	}
	slow.send(cmd("GET big"))
	r.hasRelayed(3)
	other.send(cmd("PING"))
	r.hasRelayed(4)
	if err := server.Continue(); err != nil {
		t.Fatal(err)
	}
	other.expect("+PONG\r\n")
	eventually(t, "the end of the slow one", func() bool { return r.server.Clients() == 1 })
	if n, err := io.Copy(io.Discard, slow.in); n >= size {
		t.Errorf("the slow one got %d bytes (%v)", n, err)
	}
	other.say("PING", "+PONG\r\n")
}

// A client that writes on and reads nothing neither blocks the others, nor itself.
func TestWriterThatReadsLater(t *testing.T) {
	server := startRedis(t)
	direct := dial(t, server.Addr())
	direct.send(array("SET", "v", strings.Repeat("v", 10<<10)))
	direct.expect("+OK\r\n")
	r := sharingOf(t, 1, server.URL())
	p := r.connect()
	const times = 3000
	for i := range times {
		p.send(cmd("GET v"))
		if i%100 == 0 {
			r.connect().say("PING", "+PONG\r\n")
		}
	}
	one := bulk(strings.Repeat("v", 10<<10))
	for range times {
		p.expect(one)
	}
}

// When the upstream dies in the midst of pipelines, each command was carried out once at the most, each is answered, and
// the clients stay.
func TestUpstreamDiesUnderSharers(t *testing.T) {
	server := redistest.New(t, redistest.Options{ExtraArgs: []string{"--appendonly", "yes", "--appendfsync", "always"}})
	r := sharingOf(t, 2, server.URL())
	const clients, depth = 40, 5
	var all sync.WaitGroup
	begun := make(chan struct{}, clients)
	answered := make([]int, clients)
	sent := make([]int, clients)
	for who := range clients {
		p := r.connect()
		all.Go(func() {
			key := fmt.Sprintf("n:%d", who)
			for lost := 0; lost == 0; {
				p.send(strings.Repeat(cmd("INCR "+key), depth))
				sent[who] += depth
				for range depth {
					switch got, err := readReply(p.in); {
					case err != nil:
						t.Errorf("client %d: %v", who, err)
						return
					case strings.HasPrefix(got, "-ERR upstream "):
						lost++
					case got == fmt.Sprintf(":%d\r\n", answered[who]+1) && lost == 0:
						answered[who]++
					default:
						t.Errorf("client %d: got %q after %d", who, got, answered[who])
						return
					}
				}
				if sent[who] == 10*depth {
					begun <- struct{}{}
				}
			}
			p.say("LOCK k:"+key+" t PX 1000", ":1000\r\n")
		})
	}
	for range clients {
		<-begun
	}
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	all.Wait()
	if err := server.Revive(); err != nil {
		t.Fatal(err)
	}
	direct := dial(t, server.Addr())
	for who := range clients {
		var done int
		_, _ = fmt.Sscanf(strings.SplitN(direct.ask(fmt.Sprintf("GET n:%d", who)), "\r\n", 2)[1], "%d", &done)
		if done < answered[who] || done > sent[who] {
			t.Errorf("client %d: %d done, %d answered, %d sent", who, done, answered[who], sent[who])
		}
	}
}

// WAIT is about the writes that went over a connection that is shared.
func TestWaitAfterSharing(t *testing.T) {
	server := startRedis(t, "--repl-diskless-sync-delay", "0")
	host, port, _ := strings.Cut(server.Addr(), ":")
	replica := startRedis(t, "--replicaof", host+" "+port)
	r := sharingOf(t, 1, server.URL())
	p := r.connect()
	p.say("SET a 1", "+OK\r\n")
	eventually(t, "the replica", func() bool { return dial(t, replica.Addr()).ask("GET a") == bulk("1") })
	direct := dial(t, server.Addr())
	direct.say("WAIT 1 0", ":1\r\n")
	if err := replica.Pause(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = replica.Continue() }()
	q := r.connect()
	q.say("SET b 1", "+OK\r\n")
	q.say("WAIT 1 50", ":0\r\n") // the replica cannot have it
}

// Who has not logged in where that is demanded has a connection of its own, so that Redis' limits for such clients end nobody else's.
func TestNobodySharesBeforeALogin(t *testing.T) {
	server := startRedis(t, "--requirepass", "secret")
	r := sharingOf(t, 1, server.URL())
	a, b := r.connect(), r.connect()
	a.say("GET a", noAuth)
	b.say("GET a", noAuth)
	direct := dial(t, server.Addr())
	direct.say("AUTH secret", "+OK\r\n")
	if n := listed(direct); n != 2 {
		t.Errorf("%d connections", n)
	}
}

// What servers may read in different ways goes over a connection of the client's own, and so does what is long.
func TestOddFramesAreNotShared(t *testing.T) {
	for name, sent := range map[string]string{
		"inline":              "PING\r\n",
		"another line end":    "*1\r\n$4\r\nPINGxx",
		"several keys":        "*3\r\n$6\r\nEXISTS\r\n$1\r\na\r\n$1\r\nbxx",
		"an empty request":    "*0\r\n" + cmd("PING"),
		"an empty line":       "\r\n" + cmd("PING"),
		"a long command":      array("PING", strings.Repeat("x", 20<<10)),
		"the middle of a row": cmd("PING") + "*1\r\n$4\r\nPINGxx" + cmd("PING"),
	} {
		t.Run(name, func(t *testing.T) {
			server := startRedis(t)
			r := sharingOf(t, 1, server.URL())
			first := r.connect()
			first.say("PING", "+PONG\r\n")
			before := connections(t, server)
			p, direct := r.connect(), dial(t, server.Addr())
			p.send(sent + cmd("ECHO end"))
			direct.send(sent + cmd("ECHO end"))
			if got, want := upTo(p, bulk("end")), upTo(direct, bulk("end")); got != want {
				t.Errorf("got %.100q, want %.100q", got, want)
			}
			direct.conn.Close()
			eventually(t, "one more connection", func() bool { return connections(t, server) == before+1 })
		})
	}
}

// A client that begins a command and does not end it keeps nobody waiting.
func TestHalfACommandKeepsNobodyWaiting(t *testing.T) {
	server := startRedis(t)
	r := sharingOf(t, 1, server.URL())
	half := r.connect()
	half.send("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$5\r\nva")
	r.connect().say("PING", "+PONG\r\n")
	r.connect().say("GET k", "$-1\r\n")
	half.send("lue\r\n")
	half.expect("+OK\r\n")
}

// Clients that leave before their replies have come disturb nobody, and what they have sent is carried out.
func TestSharersThatLeave(t *testing.T) {
	server := startRedis(t)
	r := sharingOf(t, 1, server.URL())
	stays := r.connect()
	for i := range 200 {
		p := r.connect()
		p.send(strings.Repeat(cmd("INCR n"), 3))
		if i%2 == 0 {
			_ = p.conn.SetLinger(0)
			time.Sleep(time.Duration(i%5) * time.Millisecond) // it leaves at any moment
		} else {
			_ = p.conn.CloseWrite()
		}
		stays.say(fmt.Sprintf("ECHO %d", i), bulk(fmt.Sprint(i)))
		if i%2 == 1 {
			p.all()
		}
		p.conn.Close()
	}
	stays.say("PING", "+PONG\r\n")
}

// A client that pipelines keeps others waiting for few of its replies, and is told all of them; one whose replies are short goes on sharing.
func TestPipelinesShareFairly(t *testing.T) {
	server := startRedis(t)
	direct := dial(t, server.Addr())
	long, short := strings.Repeat("v", 60<<10), "v"
	for key, value := range map[string]string{"long": long, "short": short} {
		direct.send(array("SET", key, value))
		direct.expect("+OK\r\n")
	}
	r := sharingOf(t, 1, server.URL(), neverParked)
	other := r.connect()
	other.say("PING", "+PONG\r\n")
	const n = 250
	for i, value := range []string{short, long} {
		client, before := r.connect(), int64(1+i*(n+1))
		r.hasRelayed(before) // what was answered may be counted a moment later
		if err := server.Pause(); err != nil {
			t.Fatal(err)
		}
		client.send(strings.Repeat(cmd("GET "+map[string]string{long: "long", short: "short"}[value]), n))
		r.hasRelayed(before + 16)
		other.send(cmd("PING"))
		r.hasRelayed(before + 17) // and no more: it is the next one
		if err := server.Continue(); err != nil {
			t.Fatal(err)
		}
		other.expect("+PONG\r\n")
		client.expect(strings.Repeat(bulk(value), n))
		if got, want := sharers(r), 2; got != want {
			t.Errorf("pipeline %d: %d share, want %d", i, got, want)
		}
	}
}

// While a script runs too long, who needs a connection that is given what it has said is told what others are told.
func TestBusyUpstreamIsToldAsItIs(t *testing.T) {
	server := startRedis(t, "--lua-time-limit", "50")
	r := sharingOf(t, 1, server.URL(), neverParked)
	c, script, direct := r.connect(), dial(t, server.Addr()), dial(t, server.Addr())
	c.say("SELECT 1", "+OK\r\n")
	eventually(t, "sharing", func() bool {
		c.say("PING", "+PONG\r\n")
		return sharers(r) == 1
	})
	script.send(array("EVAL", "while true do end", "0"))
	eventually(t, "a script that runs too long", func() bool { return strings.HasPrefix(direct.ask("GET k"), "-BUSY ") })
	want := direct.ask("CLIENT GETNAME")
	if got := c.ask("CLIENT GETNAME"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	direct.say("SCRIPT KILL", "+OK\r\n")
}
