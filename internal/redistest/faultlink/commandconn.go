package faultlink

import (
	"bufio"
	"net"
	"sync"

	"redlock-proxy/internal/redistest"
)

// commandConn forwards one connection of a CommandLink.
type commandConn struct {
	link           *CommandLink
	client, server *net.TCPConn
	pending        *queue        // commands from the client that were not sent to the target yet
	sent           *queue        // commands that were sent to the target, without a reply yet
	done           chan struct{} // closed by reset
	once           sync.Once
}

// run forwards until both directions have ended. If only the client's side ends, its commands still
// arrive.
func (c *commandConn) run() {
	var tasks sync.WaitGroup
	tasks.Go(c.readCommands)
	tasks.Go(c.sendCommands)
	tasks.Go(c.returnReplies)
	tasks.Wait()
}

// readCommands reads commands from the client as they arrive, even while earlier commands are held.
func (c *commandConn) readCommands() {
	defer c.pending.close()
	input := bufio.NewReader(c.client)
	for {
		command, err := redistest.ReadRaw(input)
		if err != nil {
			return
		}
		c.pending.put(command)
	}
}

// sendCommands sends each command to the target when no rule holds it, and then the end of the
// stream.
func (c *commandConn) sendCommands() {
	defer c.sent.close()
	for {
		command, ok := c.pending.take(c.done)
		if !ok {
			break
		}
		for _, h := range c.link.matchingRules(&c.link.commandRules, command) {
			if !h.waitPass(c.done) {
				c.reset()
				return
			}
		}
		c.sent.put(command)
		if _, err := c.server.Write(command); err != nil {
			c.reset()
			return
		}
	}
	_ = c.server.CloseWrite()
}

// returnReplies sends each reply of the target to the client when no rule holds it.
func (c *commandConn) returnReplies() {
	defer c.reset()
	input := bufio.NewReader(c.server)
	for {
		reply, err := redistest.ReadRaw(input)
		if err != nil {
			return
		}
		command, ok := c.sent.take(c.done)
		if !ok {
			return
		}
		for _, h := range c.link.matchingRules(&c.link.replyRules, command) {
			if !h.waitPass(c.done) {
				return
			}
		}
		_, _ = c.client.Write(reply) // fails if the client has disconnected
	}
}

// reset closes both sides with RST and ends run.
func (c *commandConn) reset() {
	c.once.Do(func() {
		close(c.done)
		abort(c.client)
		abort(c.server)
	})
}

// queue holds commands in order. Its length is unlimited.
type queue struct {
	mu     sync.Mutex
	items  [][]byte
	closed bool
	ready  chan struct{} // signals that items or closed has changed; its capacity is 1
}

func newQueue() *queue { return &queue{ready: make(chan struct{}, 1)} }

func (l *queue) put(item []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.items = append(l.items, item)
	l.signal()
}

// close marks the end of the queue; its items can still be taken.
func (l *queue) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.signal()
}

func (l *queue) signal() {
	select {
	case l.ready <- struct{}{}:
	default:
	}
}

// take waits for the next item. It returns false if the queue is closed and empty, or if done is
// closed. Only one goroutine may call it.
func (l *queue) take(done <-chan struct{}) ([]byte, bool) {
	for {
		l.mu.Lock()
		if len(l.items) > 0 {
			item := l.items[0]
			l.items = l.items[1:]
			l.mu.Unlock()
			return item, true
		}
		closed := l.closed
		l.mu.Unlock()
		if closed {
			return nil, false
		}
		select {
		case <-l.ready:
		case <-done:
			return nil, false
		}
	}
}
