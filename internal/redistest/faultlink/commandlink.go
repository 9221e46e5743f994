package faultlink

import (
	"fmt"
	"net"
	"sync"
	"time"

	"redlock-proxy/internal/redistest"
)

// CommandLink forwards connections to a Redis, command by command and reply by reply, and holds or
// delays the commands and replies that a test chooses. A held command counts as sent: it arrives
// when it is released, even if its sender has closed the connection.
//
//	link, err := faultlink.NewCommandLink(master.Addr())
//	late := link.HoldCommands(faultlink.Containing("lock:k"))
//	// … the proxy sends SET lock:k, waits for a reply, gives up and closes its connection
//	err = late.Wait(1, time.Second)
//	late.Release() // now the SET arrives at the master
//
// As on a real network, later commands on the same connection wait behind a held command. All other
// connections continue. The number of held commands is unlimited. Every command must have exactly
// one reply, so subscriptions do not work. Methods may be called concurrently.
type CommandLink struct {
	target   string
	listener net.Listener
	done     chan struct{} // closed by Close
	tasks    sync.WaitGroup

	mu           sync.Mutex
	commandRules []*Hold // rules for commands
	replyRules   []*Hold // rules for replies
	conns        map[*commandConn]struct{}
	closed       bool
}

// NewCommandLink listens on a free port of 127.0.0.1 and forwards to target (host:port), which need
// not be reachable yet.
func NewCommandLink(target string) (*CommandLink, error) {
	listener, err := redistest.ListenFree("127.0.0.1")
	if err != nil {
		return nil, fmt.Errorf("command link to %s: %w", target, err)
	}
	l := &CommandLink{target: target, listener: listener, done: make(chan struct{}), conns: map[*commandConn]struct{}{}}
	l.tasks.Go(l.accept)
	return l, nil
}

// Addr returns the host:port to use in place of the target's.
func (l *CommandLink) Addr() string { return l.listener.Addr().String() }

// HoldCommands holds the commands that match before they reach the target, until the Hold is
// released or discarded.
func (l *CommandLink) HoldCommands(match Match) *Hold { return l.addRule(&l.commandRules, match, 0) }

// HoldReplies lets the target execute the commands that match, and holds their replies.
func (l *CommandLink) HoldReplies(match Match) *Hold { return l.addRule(&l.replyRules, match, 0) }

// DelayCommands delays the commands that match, until the Hold is stopped, released or discarded.
func (l *CommandLink) DelayCommands(match Match, delay time.Duration) *Hold {
	return l.addRule(&l.commandRules, match, delay)
}

// Close resets all connections, stops listening, and waits for the link's goroutines. It may be
// called again.
func (l *CommandLink) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.closed = true
	close(l.done)
	err := l.listener.Close()
	for c := range l.conns {
		c.reset()
	}
	l.mu.Unlock()
	l.tasks.Wait()
	return err
}

func (l *CommandLink) addRule(rules *[]*Hold, match Match, delay time.Duration) *Hold {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := newHold(match, delay)
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

// forward runs one connection to its end. If forward cannot dial the target, it resets the client.
func (l *CommandLink) forward(client *net.TCPConn) {
	conn, err := net.DialTimeout("tcp", l.target, dialTimeout)
	if err != nil {
		abort(client)
		return
	}
	c := &commandConn{
		link: l, client: client, server: conn.(*net.TCPConn),
		pending: newQueue(), sent: newQueue(), done: make(chan struct{}),
	}
	defer c.reset()
	if !l.add(c) {
		return
	}
	defer l.remove(c)
	c.run()
}

func (l *CommandLink) add(c *commandConn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.conns[c] = struct{}{}
	return true
}

func (l *CommandLink) remove(c *commandConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, c)
}

// matchingRules returns the rules that hold this command or its reply.
func (l *CommandLink) matchingRules(rules *[]*Hold, command []byte) []*Hold {
	l.mu.Lock()
	defer l.mu.Unlock()
	var matching []*Hold
	for _, h := range *rules {
		if h.countMatch(command) {
			matching = append(matching, h)
		}
	}
	return matching
}
