package faultlink

import (
	"fmt"
	"net"
	"sync"
	"time"

	"redlock-proxy/internal/redistest"
)

// CommandLink forwards connections to a Redis, command by command and answer by answer, and holds
// or delays those that a test chooses. What is held has been sent: it arrives when it is released,
// even if its sender has closed the connection long since.
//
//	link, err := faultlink.NewCommandLink(master.Addr())
//	late := link.HoldCommands(faultlink.Naming("lock:k"))
//	// … the proxy sends SET lock:k, waits for an answer, gives up and closes its connection
//	err = late.Wait(1, time.Second)
//	late.Release() // now the SET arrives at the master
//
// As on a real network, what follows on the same connection waits behind what is held; other
// connections go on. It holds without a bound. Every command must have one answer: no
// subscriptions. Methods may be called concurrently.
type CommandLink struct {
	target   string
	listener net.Listener
	done     chan struct{} // closed by Close
	tasks    sync.WaitGroup

	mu       sync.Mutex
	commands []*Hold // rules for what goes to the target
	answers  []*Hold // rules for what comes back
	talks    map[*talk]struct{}
	closed   bool
}

// NewCommandLink listens on a free port of 127.0.0.1 and forwards to target (host:port), which need
// not be reachable yet.
func NewCommandLink(target string) (*CommandLink, error) {
	listener, err := redistest.ListenFree("127.0.0.1")
	if err != nil {
		return nil, fmt.Errorf("command link to %s: %w", target, err)
	}
	l := &CommandLink{target: target, listener: listener, done: make(chan struct{}), talks: map[*talk]struct{}{}}
	l.tasks.Go(l.accept)
	return l, nil
}

// Addr returns the host:port to use in place of the target's.
func (l *CommandLink) Addr() string { return l.listener.Addr().String() }

// HoldCommands holds the commands that match before they reach the target, until the Hold is told
// what to do with them.
func (l *CommandLink) HoldCommands(match Match) *Hold { return l.rule(&l.commands, match, 0) }

// HoldAnswers lets the commands that match be carried out, and holds their answers.
func (l *CommandLink) HoldAnswers(match Match) *Hold { return l.rule(&l.answers, match, 0) }

// DelayCommands has the commands that match reach the target later by so much, until the Hold is
// ended.
func (l *CommandLink) DelayCommands(match Match, by time.Duration) *Hold {
	return l.rule(&l.commands, match, by)
}

// Close resets everything and waits for the link's goroutines. It may be called again.
func (l *CommandLink) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.closed = true
	close(l.done)
	err := l.listener.Close()
	for t := range l.talks {
		t.reset()
	}
	l.mu.Unlock()
	l.tasks.Wait()
	return err
}

func (l *CommandLink) rule(rules *[]*Hold, match Match, by time.Duration) *Hold {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := newHold(match, by)
	*rules = append((*rules)[:len(*rules):len(*rules)], h)
	return h
}

func (l *CommandLink) accept() {
	for {
		conn, err := l.listener.Accept()
		if err != nil {
			return
		}
		l.tasks.Go(func() { l.forward(conn.(*net.TCPConn)) })
	}
}

// forward runs one connection to its end. A client whose target cannot be dialled is reset.
func (l *CommandLink) forward(client *net.TCPConn) {
	conn, err := net.DialTimeout("tcp", l.target, dialTimeout)
	if err != nil {
		abort(client)
		return
	}
	t := &talk{link: l, client: client, server: conn.(*net.TCPConn), queue: newLine(), sent: newLine(), over: make(chan struct{})}
	defer t.reset()
	if !l.add(t) {
		return
	}
	defer l.remove(t)
	t.run()
}

func (l *CommandLink) add(t *talk) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.talks[t] = struct{}{}
	return true
}

func (l *CommandLink) remove(t *talk) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.talks, t)
}

// holding returns those of the rules that hold this command, or the answer to it.
func (l *CommandLink) holding(rules *[]*Hold, command []byte) []*Hold {
	l.mu.Lock()
	defer l.mu.Unlock()
	var by []*Hold
	for _, h := range *rules {
		if h.takes(command) {
			by = append(by, h)
		}
	}
	return by
}
