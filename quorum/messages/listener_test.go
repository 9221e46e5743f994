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

// server implements Server with a dial function.
type server struct{ dial func() (net.Conn, error) }

func (server) Name() string                                   { return "m" }
func (server) IsDown() bool                                   { return false }
func (s server) Watch(context.Context, int) (net.Conn, error) { return s.dial() }

// inbox collects the delivered messages.
type inbox struct {
	mu       sync.Mutex
	payloads []string
}

func (i *inbox) add(m Message) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.payloads = append(i.payloads, m.Payload)
}

func (i *inbox) contains(want string) func() bool {
	return func() bool {
		i.mu.Lock()
		defer i.mu.Unlock()
		return fmt.Sprint(i.payloads) == want
	}
}

// newTestListener returns a Listener for these masters, and an inbox with its messages. The
// Listener ends with the test.
func newTestListener(t *testing.T, need int, servers ...Server) (*Listener, *inbox) {
	t.Helper()
	box := &inbox{}
	l := New(Options{
		Servers: servers, OwnSource: NewSource(), Channel: "test", MinMasters: need, JoinTimeout: 30 * time.Second, Deliver: box.add,
		Logger: slog.New(slog.DiscardHandler), Rand: func() float64 { return 0 },
	})
	t.Cleanup(l.Close)
	return l, box
}

// newRealMaster starts a real master, and returns it with a client of it.
func newRealMaster(t *testing.T) (server, *redistest.Client) {
	t.Helper()
	r := redistest.New(t, redistest.Options{})
	client, err := redistest.Dial(r.Addr(), 30*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return server{func() (net.Conn, error) { return net.Dial("tcp", r.Addr()) }}, client
}

func mustJoin(t *testing.T, l *Listener, onLoss func()) *Subscription {
	t.Helper()
	m, err := l.Join(t.Context(), onLoss)
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

func awaitCondition(t *testing.T, condition func() bool) {
	t.Helper()
	redistest.Await(t, "the condition", condition)
}

func numberedMessage(n, previous uint64) Message {
	return Message{Source: "0123456789abcdef", Number: n, PreviousNumber: previous, Channel: "c", Payload: fmt.Sprint(n)}
}

// TestGap checks a message that one master does not deliver. The Listener gets it from another
// master, and delivers it ahead of its successors. The wait for a message that no master delivers
// ends when all masters have answered a flush.
func TestGap(t *testing.T) {
	first, firstClient := newRealMaster(t)
	second, secondClient := newRealMaster(t)
	l, box := newTestListener(t, 1, first, second)
	defer mustJoin(t, l, func() {}).Leave()
	do(t, firstClient, "PUBLISH", "test", numberedMessage(1, 0).Encode())
	do(t, secondClient, "PUBLISH", "test", numberedMessage(1, 0).Encode())
	awaitCondition(t, box.contains("[1]"))
	do(t, secondClient, "PUBLISH", "test", numberedMessage(2, 1).Encode())
	do(t, firstClient, "PUBLISH", "test", numberedMessage(3, 2).Encode())
	awaitCondition(t, box.contains("[1 2 3]"))
	do(t, firstClient, "PUBLISH", "test", numberedMessage(5, 4).Encode())
	awaitCondition(t, box.contains("[1 2 3 5]"))
	// message 4 is late: its client got an error
	do(t, secondClient, "PUBLISH", "test", numberedMessage(4, 3).Encode())
	do(t, secondClient, "PUBLISH", "test", numberedMessage(5, 4).Encode())
	do(t, secondClient, "PUBLISH", "test", numberedMessage(6, 5).Encode())
	awaitCondition(t, box.contains("[1 2 3 5 6]"))
}

// TestDecidedNumbers checks that a Listener ignores messages of its own process that were decided
// before it began to listen. It delivers messages that were still undecided then.
func TestDecidedNumbers(t *testing.T) {
	server, client := newRealMaster(t)
	l, box := newTestListener(t, 1, server)
	var sentMessages []Message
	publish := func(lastNumber *uint64) {
		m := l.opts.OwnSource.Begin(Message{Channel: "c"}, lastNumber)
		m.Payload = fmt.Sprint(m.Number)
		sentMessages = append(sentMessages, m)
	}
	var a, b uint64
	for _, last := range []*uint64{&a, &a, &b, &a, &b} {
		publish(last)
	}
	for _, n := range []int{1, 3, 4} { // 2 and 5 stay undecided
		l.opts.OwnSource.End(sentMessages[n-1])
	}
	defer mustJoin(t, l, func() {}).Leave()
	publish(&a)
	for _, m := range sentMessages {
		do(t, client, "PUBLISH", "test", m.Encode())
	}
	awaitCondition(t, box.contains("[2 5 6]"))
	l.Deliver(sentMessages[0])
	if !box.contains("[2 5 6]")() {
		t.Error("a message was delivered that was decided before the subscription joined")
	}
}

// TestLostSubscription checks that onLoss is called once if the only master disconnects. A later
// subscription gets messages again.
func TestLostSubscription(t *testing.T) {
	server, client := newRealMaster(t)
	l, box := newTestListener(t, 1, server)
	losses := make(chan struct{}, 2)
	m := mustJoin(t, l, func() { losses <- struct{}{} })
	do(t, client, "CLIENT", "KILL", "TYPE", "pubsub")
	select {
	case <-losses:
	case <-time.After(30 * time.Second):
		t.Fatal("the subscription is not notified")
	}
	m.Leave()
	defer mustJoin(t, l, func() {}).Leave()
	do(t, client, "PUBLISH", "test", numberedMessage(1, 0).Encode())
	awaitCondition(t, box.contains("[1]"))
	if len(losses) > 0 {
		t.Error("the subscription was notified twice")
	}
}

// TestRefusedSubscription checks that Join fails at its timeout, with the cause, if too few masters
// permit SUBSCRIBE.
func TestRefusedSubscription(t *testing.T) {
	for _, right := range []string{"-subscribe", "resetchannels"} {
		server, client := newRealMaster(t)
		do(t, client, "ACL", "SETUSER", "default", "+@all", right)
		l, _ := newTestListener(t, 1, server)
		l.opts.JoinTimeout = 3 * time.Second
		if _, err := l.Join(t.Context(), func() {}); !errors.Is(err, ErrTooFewMasters) {
			t.Errorf("%s: %v", right, err)
		}
		if err := l.Causes()[0]; err == nil || !strings.HasPrefix(err.Error(), "NOPERM") {
			t.Errorf("%s: %v", right, err)
		}
	}
}

// TestIdleListener checks that the proxy does not listen to masters while the Listener has no
// subscriptions.
func TestIdleListener(t *testing.T) {
	server, client := newRealMaster(t)
	l, _ := newTestListener(t, 1, server)
	mustJoin(t, l, func() { t.Error("the subscription was notified") }).Leave()
	l.mu.Lock()
	p := l.period
	l.mu.Unlock()
	p.mu.Lock()
	p.idleSince = p.idleSince.Add(-pushconn.IdleTimeout)
	p.mu.Unlock()
	awaitCondition(t, func() bool { return fmt.Sprint(do(t, client, "PUBSUB", "NUMSUB", "test")) == "[test 0]" })
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.period != nil {
		t.Error("the period continues")
	}
}

// TestClosedListener checks that Close calls onLoss of the subscriptions, and that later calls of
// Join fail.
func TestClosedListener(t *testing.T) {
	server, _ := newRealMaster(t)
	l, _ := newTestListener(t, 1, server)
	losses := make(chan struct{}, 1)
	m := mustJoin(t, l, func() { losses <- struct{}{} })
	l.Close()
	<-losses
	m.Leave()
	if _, err := l.Join(t.Context(), func() {}); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}

const greeting = "%1\r\n+proto\r\n:3\r\n>3\r\n$9\r\nsubscribe\r\n$4\r\ntest\r\n:1\r\n"

// newFakeMaster returns a server that sends the greeting and the text on the first connection.
// Later connections fail.
func newFakeMaster(text string) server {
	var once sync.Once
	return server{func() (net.Conn, error) {
		err := errors.New("once")
		var conn net.Conn
		// The greeting answers HELLO and SUBSCRIBE. The text follows.
		once.Do(func() { conn, err = redistest.DialFakeServer(greeting+text), nil })
		return conn, err
	}}
}

// TestUnexpectedMessages checks that an unexpected message of a master ends only the connection to
// that master. The Listener ignores texts that are not messages of a proxy.
func TestUnexpectedMessages(t *testing.T) {
	push := func(text string) string {
		return fmt.Sprintf(">3\r\n$7\r\nmessage\r\n$4\r\ntest\r\n$%d\r\n%s\r\n", len(text), text)
	}
	flood := strings.Builder{}
	for n := uint64(2); n < 2*maxGaps+10; n += 2 {
		flood.WriteString(push(numberedMessage(n, 0).Encode()))
	}
	for name, test := range map[string]struct {
		text    string
		wantEnd bool
	}{
		"another push":               {">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n", true},
		"another channel":            {strings.Replace(push("x"), "$4\r\ntest", "$4\r\nelse", 1), true},
		"no text":                    {">3\r\n$7\r\nmessage\r\n$4\r\ntest\r\n:1\r\n", true},
		"no end":                     {">3\r\n$7\r\nmessage\r\n$4\r\ntest\r\n$1000000000\r\n", true},
		"many":                       {">1000000000\r\n", true},
		"an unrequested reply":       {"$1\r\n1\r\n", true},
		"an error":                   {"-LOADING Redis is loading\r\n", true},
		"no RESP":                    {"HTTP/1.1 400 Bad Request\r\n", true},
		"too many gaps":              {flood.String(), true},
		"text that is not a message": {push("x") + push("") + push("1 0123456789abcdef m 1 1 1 1\n"), false},
	} {
		t.Run(name, func(t *testing.T) {
			honest, client := newRealMaster(t)
			l, _ := newTestListener(t, 1, honest, newFakeMaster(test.text))
			// Join waits up to this long for a fake master that has disconnected.
			l.opts.JoinTimeout = time.Second
			defer mustJoin(t, l, func() { t.Error("the loss of the other master affects the subscription") }).Leave()
			if test.wantEnd {
				awaitCondition(t, func() bool { return !l.IsConnected(1) && l.Causes()[1] != nil })
			}
			do(t, client, "PUBLISH", "test", numberedMessage(1, 0).Encode())
			// A message that ends the connection would have arrived.
			time.Sleep(20 * time.Millisecond)
			if !test.wantEnd && !l.IsConnected(1) {
				t.Error(l.Causes()[1])
			}
		})
	}
}
