package proxy_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"redlock-proxy/internal/redistest"
	"redlock-proxy/proxy"
)

// What libraries say when they connect, of themselves and of how they speak, keeps no client from sharing.

// openings are such, as libraries have them.
var openings = [][]string{
	{"HELLO 3"},
	{"HELLO 2"},
	{"HELLO 3 SETNAME somebody"},
	{"SELECT 3"},
	{"CLIENT SETNAME somebody", "CLIENT GETNAME"},
	{"CLIENT SETINFO LIB-NAME lib", "CLIENT SETINFO LIB-VER 1.2.3"},
	{"HELLO 3", "CLIENT MAINT_NOTIFICATIONS ON", "CLIENT SETINFO LIB-NAME lib", "SELECT 2", "CLIENT SETNAME x"},
	{"INFO", "SELECT 1"},
	{"HELLO 4", "CLIENT SETNAME a\tb", "SELECT 99", "HELLO x"},
}

// shares has a client go on until it has a reply over a connection that is shared.
func shares(r *rig, p *peer, group string) {
	r.Helper()
	eventually(r.T, "sharing in "+group, func() bool {
		p.say("PING", "+PONG\r\n")
		return groups(r)[group] > 0
	})
}

// groups are how many clients share, by group.
func groups(r *rig) map[string]int {
	all := map[string]int{}
	for _, g := range r.server.Shared() {
		all[fmt.Sprintf("%d in RESP%d", g.DB, g.Proto)] = g.Clients
	}
	return all
}

// sharers are how many clients share.
func sharers(r *rig) (n int) {
	for _, clients := range groups(r) {
		n += clients
	}
	return n
}

func TestOpeningsAreShared(t *testing.T) {
	server := startRedis(t)
	const clients = 10
	for _, opening := range openings {
		t.Run(strings.Join(opening, ","), func(t *testing.T) {
			r := sharingOf(t, 1, server.URL(), neverParked)
			direct := dial(t, server.Addr())
			var want, after []string
			for _, line := range opening {
				want = append(want, strings.Replace(withoutID(direct.ask(line)), "MAINT_NOTIFICATIONS", "MAINT_NOTIFICATIONS-IS-NOT-FOR-LOCK-KEYS", 1))
			}
			for _, line := range stateOf {
				after = append(after, told(direct.ask(line)))
			}
			all := make([]*peer, clients)
			for i := range all {
				all[i] = r.connect()
				for n, line := range opening {
					if got := withoutID(all[i].ask(line)); line != "INFO" && got != want[n] {
						t.Errorf("%s: got %q, want %q", line, got, want[n])
					}
				}
				eventually(t, "sharing", func() bool {
					all[i].say("PING", "+PONG\r\n")
					return sharers(r) == i+1
				})
			}
			eventually(t, "one connection", func() bool { return connections(t, server) == 2 }) // with the direct one
			// What the client has said is true of its own connection, too.
			for _, p := range all {
				for n, line := range stateOf {
					if got := told(p.ask(line)); got != after[n] {
						t.Errorf("%s: got %q, want %q", line, got, after[n])
					}
				}
			}
		})
	}
}

// stateOf asks for all that is known of a connection.
var stateOf = []string{"CLIENT GETNAME", "CLIENT INFO", "HELLO", "HGETALL none", "XREAD BLOCK 1 STREAMS s $"}

// told is what of the answer does not differ between two connections of the same state.
func told(answer string) string {
	if !strings.Contains(answer, "laddr=") {
		return withoutID(answer)
	}
	return fmt.Sprint(toldField.FindAllString(answer, -1))
}

var toldField = regexp.MustCompile(`\b(name|db|sub|multi|resp|user|lib-name|lib-ver|flags)=\S*`)

// What was said is put onto each connection of the client's own, before anything else, in the words of each part of it.
func TestStateIsPutOntoAnOwnConnection(t *testing.T) {
	var mu sync.Mutex
	var all [][]string // by connection
	refuse := ""
	fake := startFake(t, func(c *fakeConn) {
		mu.Lock()
		at := len(all)
		all = append(all, nil)
		mu.Unlock()
		for {
			raw, err := readReply(c.in)
			if err != nil {
				return
			}
			line := ""
			for i, word := range strings.Split(raw, "\r\n") {
				if i >= 2 && i%2 == 0 {
					line += " " + word
				}
			}
			line = strings.TrimSpace(line)
			mu.Lock()
			all[at] = append(all[at], line)
			refused := line == refuse
			mu.Unlock()
			switch {
			case refused:
				c.write("-NOPERM not any more\r\n")
			case strings.HasPrefix(line, "HELLO"):
				c.write("%1\r\n+proto\r\n:3\r\n")
			default:
				c.write("+OK\r\n")
			}
		}
	})
	r := sharingOf(t, 1, fake.url())
	p := r.connect()
	opening := []string{"HELLO 3 SETNAME x", "SELECT 3", "CLIENT SETINFO LIB-NAME lib", "CLIENT SETINFO LIB-VER 1", "CLIENT SETNAME y"}
	for _, line := range opening {
		p.ask(line)
	}
	eventually(t, "sharing", func() bool { p.ask("GET a"); return sharers(r) == 1 })
	p.ask("WATCH a")
	mu.Lock()
	own, refuseNext := all[len(all)-1], "SELECT 3"
	mu.Unlock()
	want := []string{"HELLO 3", "SELECT 3", "CLIENT SETNAME y", "CLIENT SETINFO LIB-NAME lib", "CLIENT SETINFO LIB-VER 1", "WATCH a"}
	if fmt.Sprint(own) != fmt.Sprint(want) {
		t.Errorf("its own connection began with %q", own)
	}

	// Where that is refused, the command is not carried out anywhere, and nobody else is concerned.
	q := r.connect()
	q.ask("SELECT 3")
	eventually(t, "sharing", func() bool { q.ask("GET a"); return sharers(r) == 1 })
	mu.Lock()
	refuse = refuseNext
	mu.Unlock()
	q.say("WATCH a", "-ERR upstream "+fake.addr()+": SELECT: NOPERM not any more\r\n")
	r.connect().say("EVAL return(1) 0", "+OK\r\n")
	mu.Lock()
	refuse = ""
	mu.Unlock()
	q.say("WATCH a", "+OK\r\n")
}

// Who logs in is another user than those who share, be it that the name is the same: it is checked once, and what becomes of it is the
// upstream's to say.
func TestLoginsAreNotShared(t *testing.T) {
	notOverTLS(t)
	server := startRedis(t, "--user", "u", "on", ">p", "~*", "+@all")
	for _, opening := range []string{"AUTH u p", "HELLO 3 AUTH u p", "AUTH default", "RESET", "CLIENT ID", "CLIENT NO-EVICT ON", "CLIENT TRACKING OFF"} {
		r := sharingOf(t, 1, server.URL(), soonParked)
		p := r.connect()
		p.ask(opening)
		for range 5 {
			p.say("PING", "+PONG\r\n")
			eventually(t, "parking", func() bool { return r.server.Parked() == 1 })
		}
		if n := sharers(r); n != 0 {
			t.Errorf("%s: %d clients share", opening, n)
		}
		p.conn.Close()
	}
}

// A client that goes from one database to the other has a connection of its own after some times, until it is quiet.
func TestReturnsAreBounded(t *testing.T) {
	server := startRedis(t)
	r := sharingOf(t, 1, server.URL(), neverParked)
	p := r.connect()
	before := received(t, server)
	for i := range 50 {
		p.say(fmt.Sprintf("SELECT %d", i%2), "+OK\r\n")
		p.say(fmt.Sprintf("SET k %d", i%2), "+OK\r\n")
		p.say("GET k", bulk(fmt.Sprint(i%2)))
	}
	if n := received(t, server) - before; n < 4 || n > 8 { // its own ones, those that are shared, and the one that asks
		t.Errorf("%d connections were made", n)
	}
}

// received is how many connections the server was asked for.
func received(t *testing.T, server *redistest.Server) (n int) {
	t.Helper()
	p := dial(t, server.Addr())
	defer p.conn.Close()
	_, after, _ := strings.Cut(p.ask("INFO stats"), "total_connections_received:")
	if _, err := fmt.Sscanf(after, "%d", &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// When a connection that is shared is lost, nothing that the client has said is.
func TestStateOutlivesASharedConnection(t *testing.T) {
	server := redistest.New(t, redistest.Options{ExtraArgs: []string{"--appendonly", "yes", "--appendfsync", "always"}})
	r := sharingOf(t, 1, server.URL())
	p := r.connect()
	p.ask("HELLO 3")
	p.say("SELECT 3", "+OK\r\n")
	p.say("CLIENT SETNAME x", "+OK\r\n")
	shares(r, p, "3 in RESP3")
	p.say("HSET h a 1", ":1\r\n")
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	if got := p.ask("PING"); !strings.HasPrefix(got, "-ERR upstream ") {
		t.Fatalf("got %q", got)
	}
	if err := server.Revive(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the upstream", func() bool { return p.ask("HGETALL h") == "%1\r\n"+bulk("a")+bulk("1") })
	p.say("CLIENT GETNAME", bulk("x"))
	p.say("GET none", "_\r\n")
}

// When its own connection is lost, what was put onto that is lost with it, and so the client's connection ends: it never goes on in
// another database.
func TestStateIsLostWithAnOwnConnection(t *testing.T) {
	server := startRedis(t)
	r := sharingOf(t, 1, server.URL(), neverParked)
	p := r.connect()
	p.say("SELECT 3", "+OK\r\n")
	shares(r, p, "3 in RESP2")
	p.say("EVAL return(1) 0", ":1\r\n")
	if err := server.Pause(); err != nil {
		t.Fatal(err)
	}
	p.send(cmd("EVAL return(2) 0") + cmd("LOCK k t PX 1000"))
	time.Sleep(20 * time.Millisecond) // it is under way, or not yet: the answer is the same
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	if got := sameLoss(p.all()); got != lost(server.Addr()) {
		t.Errorf("got %q", got)
	}
}

// Others may have what they track told to a connection that is shared. Nobody there is.
func TestMessagesToASharedConnection(t *testing.T) {
	server := startRedis(t)
	r := sharingOf(t, 1, server.URL())
	p := r.connect()
	p.ask("HELLO 3")
	shares(r, p, "0 in RESP3")
	hostile := dial(t, server.Addr())
	ids := regexp.MustCompile(`(?m)id=(\d+) .*resp=3`).FindStringSubmatch(hostile.ask("CLIENT LIST"))
	hostile.say("CLIENT TRACKING ON BCAST REDIRECT "+ids[1], "+OK\r\n")
	before := received(t, server)
	for i := range 100 {
		p.send(lines(fmt.Sprintf("SET k %d", i), "GET k"))
		p.expect("+OK\r\n" + bulk(fmt.Sprint(i)))
		hostile.say("SET other x", "+OK\r\n")
	}
	if n := received(t, server) - before; n != 1 { // that one asks
		t.Errorf("%d connections were made", n)
	}
}

// Many clients at once, of both protocols, several databases and names, who go to and fro between connections of their own and shared
// ones, get what they get of a server of their own.
func TestManyGroupsBesideDirectConnections(t *testing.T) {
	notOverTLS(t)
	seed := number(t, "REDLOCK_TEST_SEED", 1)
	limit := time.Duration(number(t, "REDLOCK_TEST_SECONDS", 4)) * time.Second
	direct, upstream := startRedis(t), startRedis(t)
	r := sharingOf(t, 2, upstream.URL(), func(s *proxy.Server) { s.SetQuiet(2 * time.Millisecond) })
	const clients, groupsWanted = 40, 4
	var all sync.WaitGroup
	var mu sync.Mutex
	used, began := map[string]bool{}, time.Now()
	done := func() bool { // when the time is over and several groups were used
		mu.Lock()
		defer mu.Unlock()
		passed := time.Since(began)
		return t.Failed() || passed > limit && len(used) >= groupsWanted || passed > limit+patience
	}
	for who := range clients {
		var pair []*peer
		rng := rand.New(rand.NewPCG(uint64(seed), uint64(who)))
		all.Go(func() {
			for !done() {
				if len(pair) == 0 || rng.IntN(30) == 0 { // some have done what keeps them apart for good
					for _, p := range pair {
						p.conn.Close()
					}
					pair = []*peer{dial(t, direct.Addr()), r.connect()}
				}
				for _, p := range pair {
					_ = p.conn.SetDeadline(time.Now().Add(patience))
				}
				said := sayings(rng, who)
				var got [2]string
				for i, p := range pair {
					if _, err := io.WriteString(p.conn, lines(said...)); err != nil {
						t.Error(err)
						return
					}
					for range said {
						reply, err := readReply(p.in)
						if err != nil {
							t.Errorf("client %d, %q: %v", who, said, err)
							return
						}
						got[i] += told(reply)
					}
				}
				if got[0] != got[1] {
					t.Errorf("client %d (REDLOCK_TEST_SEED=%d) sent %q: %s", who, seed, said, firstDifference(got[1], got[0]))
					return
				}
				if rng.IntN(8) == 0 {
					time.Sleep(time.Duration(rng.IntN(8)) * time.Millisecond) // at any moment
				}
				mu.Lock()
				for group, n := range groups(r) {
					if n > 1 {
						used[group] = true
					}
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if len(used) < groupsWanted {
		t.Errorf("clients shared in %v only", used)
	}
	t.Logf("groups: %d", len(used))
}

// sayings are some commands of a client: mostly what may be shared, on its own keys, sometimes what says how it speaks, and now and then what is its connection's.
func sayings(rng *rand.Rand, who int) (all []string) {
	key := fmt.Sprintf("k:%d:%d", who, rng.IntN(3))
	for range 1 + rng.IntN(4) {
		plain := []string{
			"SET " + key + " " + fmt.Sprint(rng.IntN(1000)), "GET " + key, "INCR n" + key, "HSET h" + key + " f " + fmt.Sprint(rng.IntN(99)), "HGETALL h" + key,
			"ZADD z" + key + " 1.5 a 2 b", "ZRANGE z" + key + " 0 -1 WITHSCORES", "ZSCORE z" + key + " b", "SADD s" + key + " m", "SMEMBERS s" + key,
			"ECHO " + key, "GET none", "LRANGE h" + key + " 0 -1", "EXISTS " + key, "MGET " + key + " none", "SET v" + key + " " + strings.Repeat("v", rng.IntN(5000)), "GET v" + key,
		}
		all = append(all, plain[rng.IntN(len(plain))])
	}
	said := []string{
		"HELLO 3", "HELLO 2", fmt.Sprintf("SELECT %d", rng.IntN(4)), fmt.Sprintf("CLIENT SETNAME c%d.%d", who, rng.IntN(9)), "CLIENT GETNAME", "CLIENT INFO",
		"HELLO 3 SETNAME h" + fmt.Sprint(who), "CLIENT SETINFO LIB-NAME x", "HELLO",
	}
	switch rng.IntN(12) {
	case 0, 1:
		all = append(all, said[rng.IntN(len(said))])
	case 2:
		all = append(all, "MULTI", "INCR n"+key, fmt.Sprintf("SELECT %d", rng.IntN(4)), "EXEC")
	case 3:
		all = append(all, "WATCH "+key, "MULTI", "GET "+key, "EXEC", "UNWATCH")
	case 4:
		all = append(all, "EVAL return(redis.call('get',KEYS[1])) 1 "+key, "NOSUCH")
	}
	return all
}
