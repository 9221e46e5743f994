package messages

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"redlock-proxy/internal/redistest"
	"redlock-proxy/quorum/pushconn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server is a master at an address.
type server struct{ dial func() (net.Conn, error) }

func (server) Name() string                                   { return "m" }
func (server) IsDown() bool                                   { return false }
func (s server) Watch(context.Context, int) (net.Conn, error) { return s.dial() }

// inbox collects the delivered messages.
type inbox struct {
	mu  sync.Mutex
	got []string
}

func (i *inbox) take(m Message) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.got = append(i.got, m.Payload)
}

func (i *inbox) is(want string) func() bool {
	return func() bool {
		i.mu.Lock()
		defer i.mu.Unlock()
		return fmt.Sprint(i.got) == want
	}
}

// listens returns a Listener for these masters that ends with the test, and the messages that it
// delivers.
func listens(t *testing.T, need int, servers ...Server) (*Listener, *inbox) {
	t.Helper()
	box := &inbox{}
	l := New(Options{
		Servers: servers, Own: NewSource(), Channel: "test", Need: need, Wait: 30 * time.Second, Deliver: box.take,
		Logger: slog.New(slog.DiscardHandler), Rand: func() float64 { return 0 },
	})
	t.Cleanup(l.Close)
	return l, box
}

// real returns a real master, and a client of it.
func real(t *testing.T) (server, *redistest.Client) {
	t.Helper()
	r := redistest.New(t, redistest.Options{})
	client, err := redistest.Dial(r.Addr(), 30*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return server{func() (net.Conn, error) { return net.Dial("tcp", r.Addr()) }}, client
}

func joins(t *testing.T, l *Listener, lost func()) *Subscription {
	t.Helper()
	m, err := l.Join(t.Context(), lost)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func do(t *testing.T, c *redistest.Client, words ...string) any {
	t.Helper()
	reply, err := c.Do(words...)
	if failure, bad := reply.(redistest.RespError); bad {
		err = failure
	}
	if err != nil {
		t.Fatalf("%.80v: %v", words, err)
	}
	return reply
}

func waits(t *testing.T, until func() bool) {
	t.Helper()
	redistest.Await(t, "what must come", until)
}

func numbered(n, after uint64) Message {
	return Message{Source: "0123456789abcdef", Number: n, After: after, Channel: "c", Payload: fmt.Sprint(n)}
}

// TestGap: a message that one master does not deliver is delivered by another master, ahead of its
// successors. The wait for a message that no master delivers ends when all masters have answered a
// flush.
func TestGap(t *testing.T) {
	one, atOne := real(t)
	two, atTwo := real(t)
	l, box := listens(t, 1, one, two)
	defer joins(t, l, func() {}).Leave()
	do(t, atOne, "PUBLISH", "test", numbered(1, 0).Encode())
	do(t, atTwo, "PUBLISH", "test", numbered(1, 0).Encode())
	waits(t, box.is("[1]"))
	do(t, atTwo, "PUBLISH", "test", numbered(2, 1).Encode())
	do(t, atOne, "PUBLISH", "test", numbered(3, 2).Encode())
	waits(t, box.is("[1 2 3]"))
	do(t, atOne, "PUBLISH", "test", numbered(5, 4).Encode())
	waits(t, box.is("[1 2 3 5]"))
	do(t, atTwo, "PUBLISH", "test", numbered(4, 3).Encode()) // its client got an error
	do(t, atTwo, "PUBLISH", "test", numbered(5, 4).Encode())
	do(t, atTwo, "PUBLISH", "test", numbered(6, 5).Encode())
	waits(t, box.is("[1 2 3 5 6]"))
}

// TestDecidedBefore: a late master delivers messages that were decided before this process began to
// listen. The process ignores them. Undecided messages are delivered to members that joined
// meanwhile.
func TestDecidedBefore(t *testing.T) {
	one, client := real(t)
	l, box := listens(t, 1, one)
	var sent []Message
	publish := func(last *uint64) {
		m := l.opts.Own.Begin(Message{Channel: "c"}, last)
		m.Payload = fmt.Sprint(m.Number)
		sent = append(sent, m)
	}
	var a, b uint64
	for _, last := range []*uint64{&a, &a, &b, &a, &b} {
		publish(last)
	}
	for _, n := range []int{1, 3, 4} { // 2 and 5 are open
		l.opts.Own.End(sent[n-1])
	}
	defer joins(t, l, func() {}).Leave()
	publish(&a)
	for _, m := range sent {
		do(t, client, "PUBLISH", "test", m.Encode())
	}
	waits(t, box.is("[2 5 6]"))
	l.Deliver(sent[0])
	if !box.is("[2 5 6]")() {
		t.Error("what was decided before came after all")
	}
}

// TestLost: a member whose master disconnects is notified once. A later member gets messages again.
func TestLost(t *testing.T) {
	one, client := real(t)
	l, box := listens(t, 1, one)
	lost := make(chan struct{}, 2)
	m := joins(t, l, func() { lost <- struct{}{} })
	do(t, client, "CLIENT", "KILL", "TYPE", "pubsub")
	select {
	case <-lost:
	case <-time.After(30 * time.Second):
		t.Fatal("it is not told")
	}
	m.Leave()
	defer joins(t, l, func() {}).Leave()
	do(t, client, "PUBLISH", "test", numbered(1, 0).Encode())
	waits(t, box.is("[1]"))
	if len(lost) > 0 {
		t.Error("it was told twice")
	}
}

// TestRefused: a member does not wait for a master that refuses SUBSCRIBE.
func TestRefused(t *testing.T) {
	for _, right := range []string{"-subscribe", "resetchannels"} {
		one, client := real(t)
		do(t, client, "ACL", "SETUSER", "default", "+@all", right)
		l, _ := listens(t, 1, one)
		l.opts.Wait = time.Second
		if _, err := l.Join(t.Context(), func() {}); !errors.Is(err, ErrTooFewMasters) {
			t.Errorf("%s: %v", right, err)
		}
		if err := l.Causes()[0]; err == nil || !strings.HasPrefix(err.Error(), "NOPERM") {
			t.Errorf("%s: %v", right, err)
		}
	}
}

// TestIdle: without members the proxy does not listen to masters.
func TestIdle(t *testing.T) {
	one, client := real(t)
	l, _ := listens(t, 1, one)
	joins(t, l, func() { t.Error("lost") }).Leave()
	l.mu.Lock()
	p := l.period
	l.mu.Unlock()
	p.mu.Lock()
	p.idle = p.idle.Add(-pushconn.Linger)
	p.mu.Unlock()
	waits(t, func() bool { return fmt.Sprint(do(t, client, "PUBSUB", "NUMSUB", "test")) == "[test 0]" })
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.period != nil {
		t.Error("it goes on")
	}
}

// TestClosed: a closed Listener notifies its members, and accepts no new members.
func TestClosed(t *testing.T) {
	one, _ := real(t)
	l, _ := listens(t, 1, one)
	lost := make(chan struct{}, 1)
	m := joins(t, l, func() { lost <- struct{}{} })
	l.Close()
	<-lost
	m.Leave()
	if _, err := l.Join(t.Context(), func() {}); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}

const greeting = "%1\r\n+proto\r\n:3\r\n>3\r\n$9\r\nsubscribe\r\n$4\r\ntest\r\n:1\r\n"

// liar returns a server that sends the greeting and the text says on the first connection. Later
// connections fail.
func liar(says string) server {
	var once sync.Once
	return server{func() (net.Conn, error) {
		err := errors.New("once")
		var ours net.Conn
		once.Do(func() { ours, err = redistest.FakeServer(greeting+says), nil }) // after HELLO, SUBSCRIBE
		return ours, err
	}}
}

// TestLiars: an unexpected message of a master ends only its connection. Texts that are not
// messages of a proxy are ignored.
func TestLiars(t *testing.T) {
	push := func(text string) string {
		return fmt.Sprintf(">3\r\n$7\r\nmessage\r\n$4\r\ntest\r\n$%d\r\n%s\r\n", len(text), text)
	}
	flood := strings.Builder{}
	for n := uint64(2); n < 2*maxGaps+10; n += 2 {
		flood.WriteString(push(numbered(n, 0).Encode()))
	}
	for name, test := range map[string]struct {
		says string
		ends bool
	}{
		"another push":       {">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n", true},
		"another channel":    {strings.Replace(push("x"), "$4\r\ntest", "$4\r\nelse", 1), true},
		"no text":            {">3\r\n$7\r\nmessage\r\n$4\r\ntest\r\n:1\r\n", true},
		"no end":             {">3\r\n$7\r\nmessage\r\n$4\r\ntest\r\n$1000000000\r\n", true},
		"many":               {">1000000000\r\n", true},
		"an unasked answer":  {"$1\r\n1\r\n", true},
		"an error":           {"-LOADING Redis is loading\r\n", true},
		"no RESP":            {"HTTP/1.1 400 Bad Request\r\n", true},
		"too many gaps":      {flood.String(), true},
		"what is no message": {push("x") + push("") + push("1 0123456789abcdef m 1 1 1 1\n"), false},
	} {
		t.Run(name, func(t *testing.T) {
			well, client := real(t)
			l, _ := listens(t, 1, well, liar(test.says))
			l.opts.Wait = time.Second // the liar may be disconnected by then
			defer joins(t, l, func() { t.Error("it counts for those that are well") }).Leave()
			if test.ends {
				waits(t, func() bool { return !l.Hears(1) && l.Causes()[1] != nil })
			}
			do(t, client, "PUBLISH", "test", numbered(1, 0).Encode())
			time.Sleep(20 * time.Millisecond) // a message that ends the connection would have arrived
			if !test.ends && !l.Hears(1) {
				t.Error(l.Causes()[1])
			}
		})
	}
}
