//go:build integration

package lockkeys

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// blockingConversations returns conversations of clients, by name, with one step per line:
//
//	A DEL lock:q      client A sends the command and reads its reply
//	A> BLPOP lock:q 0 client A sends the command, and waits
//	A+ PING           client A sends another command while it waits
//	A <               client A reads the reply; << reads two
//	A !               client A disconnects
func blockingConversations() map[string]string {
	return map[string]string{
		"an element comes": "A> BLPOP lock:q 0\nB RPUSH lock:q 1 2\nA <\nB LRANGE lock:q 0 -1\nA> BRPOP lock:r 0\nB RPUSH lock:r 1 2\nA <\n" +
			"A BRPOP lock:r 0\nB EXISTS lock:r",
		"one is there": "A RPUSH lock:q 1 2 3\nA BLPOP lock:q 0\nA brpop lock:q 0.5\nA BLPOP lock:q 1\nA EXISTS lock:q",
		"first come":   "A> BLPOP lock:q 0\nB> BRPOP lock:q 0\nC> BLPOP lock:q 0\nD RPUSH lock:q 1 2 3\nA <\nB <\nC <\nD EXISTS lock:q",
		"one by one":   "A> BLPOP lock:q 0\nB> BLPOP lock:q 0\nC RPUSH lock:q 1\nA <\nA> BLPOP lock:q 0\nC LPUSH lock:q 2\nB <\nC LPUSH lock:q 3\nA <",
		"one leaves":   "A> BLPOP lock:q 0\nB> BLPOP lock:q 0\nA !\nC RPUSH lock:q 1\nB <\nC EXISTS lock:q",
		"moved": "A> BLMOVE lock:q lock:q RIGHT LEFT 0\nB RPUSH lock:q 1 2 3\nA <\nB LRANGE lock:q 0 -1\nA BRPOPLPUSH lock:q lock:q 1\n" +
			"A BLMOVE lock:q lock:q LEFT RIGHT 0\nB LRANGE lock:q 0 -1",
		"moved to another": "A> BLMOVE lock:q {lock:q}:r RIGHT LEFT 0\nB RPUSH lock:q 1 2 3\nA <\nB LRANGE {lock:q}:r 0 -1\nA BRPOPLPUSH {lock:q}:r lock:q 1\n" +
			"A BLMOVE lock:q {lock:q}:r LEFT RIGHT 0\nB LRANGE lock:q 0 -1\nB EXISTS lock:q {lock:q}:r\nA BLMOVE {lock:q}:s lock:q LEFT RIGHT 0.01",
		"moved on": "A> BLMOVE lock:q {lock:q}:r RIGHT LEFT 0\nB> BLPOP {lock:q}:r 0\nC RPUSH lock:q 1\nA <\nB <\nC EXISTS lock:q {lock:q}:r",
		"to where it cannot be put": "A SET {lock:q}:r x\nA> BRPOPLPUSH lock:q {lock:q}:r 0\nB SET lock:q x\nB DEL lock:q\nB RPUSH lock:q 1\nA <\nA LLEN lock:q\n" +
			"A BLMOVE lock:q {lock:q}:r LEFT LEFT 0\nA DEL lock:q\nA BLMOVE lock:q {lock:q}:r LEFT LEFT 0.01",
		"rotated": "A> BRPOPLPUSH lock:q lock:q 0\nB RPUSH lock:q 1\nA <\nB LRANGE lock:q 0 -1",
		"least and greatest": "A> BZPOPMIN lock:z 0\nB ZADD lock:z 2 b 1.5 a 3 c\nA <\nA BZPOPMAX lock:z 0\nA bzpopmin lock:z 0\nA> BZPOPMAX lock:z 0\n" +
			"B ZADD lock:z 2 b 1.5 a\nA <",
		"the time is over": "A BLPOP lock:q 0.05\nA BRPOP lock:q 0.05\nA BLMOVE lock:q lock:q LEFT RIGHT 0.05\nA BRPOPLPUSH lock:q lock:q 0.05\n" +
			"A BZPOPMIN lock:q 0.05\nA BZPOPMAX lock:q lock:r 0.05\n" +
			"A BLPOP lock:q 0.0001",
		"no time": "A BLPOP lock:q x\nA BLPOP lock:q -1\nA BLPOP lock:q -0.5\nA BLPOP lock:q 1e400\nA BLPOP lock:q nan\n" +
			"A BLPOP lock:q 9223372036854775807\nA BLMOVE lock:q lock:q LEFT RIGHT -1\n" +
			"A BZPOPMIN lock:q inf",
		"no such words": "A BLPOP lock:q\nA BLMOVE lock:q lock:q LEFT UP 0\nA BRPOPLPUSH lock:q lock:q",
		"something else": "A SET lock:q x\nA BLPOP lock:q 0\nA BLMOVE lock:q lock:q LEFT LEFT 0\nA BZPOPMIN lock:q 0\n" +
			"A BLPOP lock:q lock:r 0\nA DEL lock:q\nA RPUSH lock:q 1\nA BZPOPMAX lock:r lock:q 0\n" +
			"A BLPOP lock:r lock:q 0",
		"something else comes": "A> BLPOP lock:q 0\nB SET lock:q x\nB DEL lock:q\nB ZADD lock:q 1 m\nB ZADD lock:q 2 n\nB DEL lock:q\nB RPUSH lock:q 1\nA <\n" +
			"A> BZPOPMIN lock:q 0\nB RPUSH lock:q 1\nB DEL lock:q\nB ZADD lock:q 1 m\nA <",
		"of two kinds": "A> BLPOP lock:q 0\nB> BZPOPMIN lock:q 0\nC> BRPOP lock:q 0\nD ZADD lock:q 1 m\nB <\nD RPUSH lock:q 1 2\nA <\nC <",
		"two keys": "A> BLPOP lock:q lock:r 0\nB RPUSH lock:r 1 2\nA <\nA> BLPOP lock:q lock:s 0\nB RPUSH lock:q 3\nA <\nA BLPOP lock:q lock:r 0\n" +
			"A BLPOP lock:q lock:r 0.01",
		"the first of two": "A RPUSH lock:q 1\nA RPUSH lock:r 2\nA BLPOP lock:q lock:r 0\nA BLPOP lock:q lock:r 0\nA BLPOP lock:q lock:r 0.01\n" +
			"A RPUSH lock:r 1 2 3\nA BLPOP lock:q lock:r lock:s 0\nA BRPOP lock:q lock:r lock:s 0\nA BRPOP lock:q lock:r lock:q 0",
		"queues of two keys": "A> BLPOP lock:q 0\nB> BLPOP lock:q lock:r 0\nC> BLPOP lock:r lock:s 0\nD RPUSH lock:r 1\nB <\nD RPUSH lock:q 2\nA <\n" +
			"D RPUSH lock:s 3\nC <",
		"two keys, three wait": "A> BLPOP lock:q lock:r 0\nB> BLPOP lock:r 0\nC> BLPOP lock:q 0\nD RPUSH lock:r 1 2\nA <\nB <\nD RPUSH lock:q 3\nC <",
		"in a transaction": "A MULTI\nA BLPOP lock:q 0\nA RPUSH lock:q 1 2 3\nA BLPOP lock:q 0\nA BLMOVE lock:q lock:q LEFT RIGHT 0\nA BZPOPMIN lock:q 0\n" +
			"A DEL lock:q\nA BZPOPMIN lock:q 0\nA EXEC",
		"by a transaction": "A> BLPOP lock:q 0\nB MULTI\nB RPUSH lock:q 1 2\nB LPOP lock:q\nB LLEN lock:q\nB EXEC\nA <\nA> BLPOP lock:q 0\nB MULTI\n" +
			"B RPUSH lock:q 1\nB DEL lock:q\nB EXEC\nB RPUSH lock:q 2\nA <",
		"by a script":         "A> BLPOP lock:q 0\nB EVAL return|redis.call('rpush',KEYS[1],'1','2') 1 lock:q\nA <\nB LLEN lock:q",
		"one after the other": "A> BLPOP lock:q 0\nA+ PING\nA+ LLEN lock:q\nB RPUSH lock:q 1 2\nA <<<",
		"it is put back": "A> BLPOP lock:q 0\nB RPUSH lock:q 1\nA <\nA> BRPOP lock:q 0\nB LPUSH lock:q 2\nA <\nA> BLPOP lock:q 0\nB RPUSHX lock:q 3\n" +
			"B RPUSH lock:q 4\nA <",
		"its time":              "A RPUSH lock:q 1 2\nA PEXPIRE lock:q 1000000\nA BLPOP lock:q 0\nA PERSIST lock:q\nA BLPOP lock:q 0\nA TTL lock:q",
		"in another database":   "A SELECT 3\nA> BLPOP lock:q 0\nB RPUSH lock:q 0\nC SELECT 3\nC RPUSH lock:q 3\nA <\nB LPOP lock:q",
		"what a client watches": "A RPUSH lock:q 1 2\nA WATCH lock:q\nA BLPOP lock:q 0\nA MULTI\nA LLEN lock:q\nA EXEC",
	}
}

// TestBlockingAsOneRedis runs each conversation with a single Redis and with the proxy, in both
// protocols, and compares the replies byte for byte.
func TestBlockingAsOneRedis(t *testing.T) {
	masters, upstream, single := redistest.URLs(kit.StartMasters(t)), kit.StartRedis(t), kit.StartReference(t)
	proxy := kit.StartProxy(t, masters, append(kit.LockKeyArgs(upstream), "--lock-keys", "{lock:*", "--lock-tags", "*")...)
	for name, lines := range blockingConversations() {
		for _, proto := range []string{"2", "3"} {
			t.Run(name+" in RESP"+proto, func(t *testing.T) {
				want := runConversation(t, single.Addr(), proto, lines, "INFO", "clients")
				if got := runConversation(t, proxy.Addr(), proto, lines, "PROXY", "INFO"); got != want {
					t.Errorf("got\n%swant\n%s", got, want)
				}
			})
		}
	}
}

// conversation holds the clients of a conversation, and their replies so far.
type conversation struct {
	*testing.T
	addr, proto string
	clients     map[string]*peer
	// waiting is the set of the waiting clients.
	waiting map[string]bool
	// infoCommand is the command that returns the number of waiting clients; observer sends it.
	infoCommand []string
	observer    *redistest.Client
	transcript  strings.Builder
}

// runConversation runs a conversation, and returns a line for each reply.
func runConversation(t *testing.T, addr, proto, lines string, infoCommand ...string) string {
	t.Helper()
	h := &conversation{T: t, addr: addr, proto: proto, clients: map[string]*peer{}, waiting: map[string]bool{}, infoCommand: infoCommand,
		observer: kit.Dial(t, addr)}
	for _, db := range []string{"3", "0"} {
		kit.Want(t, h.observer, "OK", "SELECT", db)
		kit.Do(t, h.observer, "DEL", "lock:q", "lock:r", "lock:s", "lock:z")
		kit.Do(t, h.observer, "DEL", "{lock:q}:r", "{lock:q}:s")
	}
	for line := range strings.SplitSeq(lines, "\n") {
		h.runLine(line)
	}
	for _, client := range h.clients {
		_ = client.conn.Close()
	}
	h.wantBlocked(0)
	return h.transcript.String()
}

func (h *conversation) runLine(line string) {
	h.Helper()
	words := strings.Fields(line)
	for i := range words {
		words[i] = strings.ReplaceAll(words[i], "|", " ")
	}
	name, mode := words[0][:1], words[0][1:]
	client := h.client(name)
	switch {
	case words[1] == "!":
		kit.Must(h.T, client.conn.Close())
		delete(h.clients, name)
		delete(h.waiting, name)
		h.wantBlocked(len(h.waiting))
		return
	case strings.HasPrefix(words[1], "<"):
		h.readReplies(name, line, len(words[1]))
		delete(h.waiting, name)
		return
	}
	kit.Must(h.T, client.send(words[1:]))
	switch mode {
	case ">":
		h.waiting[name] = true
		h.wantBlocked(len(h.waiting))
	case "":
		h.readReplies(name, line, 1)
	}
}

// readReplies reads the given number of replies of one client.
func (h *conversation) readReplies(name, line string, replies int) {
	h.Helper()
	p := h.clients[name]
	for range replies {
		if _, err := redistest.ReadReply(p.reader); err != nil {
			h.Fatalf("%s: %v, after\n%s", line, err, &h.transcript)
		}
	}
	fmt.Fprintf(&h.transcript, "%s: %q\n", line, p.raw.String())
	p.raw.Reset()
}

func (h *conversation) client(name string) *peer {
	h.Helper()
	if h.clients[name] == nil {
		p, err := dialPeer(h.addr)
		kit.Must(h.T, err)
		h.clients[name] = p
		kit.Must(h.T, p.send([]string{"HELLO", h.proto}))
		_, err = p.receive()
		kit.Must(h.T, err)
		p.raw.Reset()
	}
	return h.clients[name]
}

var (
	blockedClients = regexp.MustCompile(`(?m)^(?:proxy_)?blocked_clients:(\d+)\r$`)
	watchedKeys    = regexp.MustCompile(`,watched_keys=(\d+)`)
)

// wantBlocked waits until n clients wait. If n is not 0, it also waits until the proxy watches keys
// on every master.
func (h *conversation) wantBlocked(n int) {
	h.Helper()
	kit.Eventually(h.T, func() error {
		info := fmt.Sprint(kit.Do(h.T, h.observer, h.infoCommand...))
		if match := blockedClients.FindStringSubmatch(info); match == nil || match[1] != fmt.Sprint(n) {
			return fmt.Errorf("not %d clients wait:\n%s", n, info)
		}
		for _, match := range watchedKeys.FindAllStringSubmatch(info, -1) {
			if n > 0 && match[1] == "0" {
				return errors.New("the masters are not watched yet")
			}
		}
		return nil
	})
}
