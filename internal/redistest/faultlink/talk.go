package faultlink

import (
	"bufio"
	"net"
	"sync"

	"redlock-proxy/internal/redistest"
)

// talk is one forwarded connection of a CommandLink.
type talk struct {
	link           *CommandLink
	client, server *net.TCPConn
	queue          *line // commands that the client has sent
	sent           *line // commands that the target has and has not answered
	over           chan struct{}
	once           sync.Once
}

// run forwards until both directions have ended. The end of the client's side alone keeps nothing
// from arriving.
func (t *talk) run() {
	var all sync.WaitGroup
	all.Go(t.listen)
	all.Go(t.tell)
	all.Go(t.answer)
	all.Wait()
}

// listen takes commands from the client as they come, also while those before them are held.
func (t *talk) listen() {
	defer t.queue.close()
	input := bufio.NewReader(t.client)
	for {
		command, err := redistest.ReadRaw(input)
		if err != nil {
			return
		}
		t.queue.put(command)
	}
}

// tell sends commands to the target, each when it is due, and then their end.
func (t *talk) tell() {
	defer t.sent.close()
	for {
		command, ok := t.queue.take(t.over)
		if !ok {
			break
		}
		for _, h := range t.link.holding(&t.link.commands, command) {
			if !h.pass(t.over) {
				t.reset()
				return
			}
		}
		t.sent.put(command)
		if _, err := t.server.Write(command); err != nil {
			t.reset()
			return
		}
	}
	_ = t.server.CloseWrite()
}

// answer takes answers from the target and gives them to the client, if that is still there.
func (t *talk) answer() {
	defer t.reset() // a target that says no more is gone
	input := bufio.NewReader(t.server)
	for {
		reply, err := redistest.ReadRaw(input)
		if err != nil {
			return
		}
		command, ok := t.sent.take(t.over)
		if !ok {
			return
		}
		for _, h := range t.link.holding(&t.link.answers, command) {
			if !h.pass(t.over) {
				return
			}
		}
		_, _ = t.client.Write(reply) // a client that has gone needs no answer, but what it has sent still has to arrive
	}
}

// reset closes both sides with RST and ends run.
func (t *talk) reset() {
	t.once.Do(func() {
		close(t.over)
		abort(t.client)
		abort(t.server)
	})
}

// line is a queue without a bound.
type line struct {
	mu     sync.Mutex
	items  [][]byte
	closed bool
	ready  chan struct{} // holds one signal: something has changed
}

func newLine() *line { return &line{ready: make(chan struct{}, 1)} }

func (l *line) put(item []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.items = append(l.items, item)
	l.signal()
}

// close says that nothing more comes; what is there can still be taken.
func (l *line) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.signal()
}

func (l *line) signal() {
	select {
	case l.ready <- struct{}{}:
	default:
	}
}

// take waits for the next item; false when there is none any more. Only one goroutine takes.
func (l *line) take(over <-chan struct{}) ([]byte, bool) {
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
		case <-over:
			return nil, false
		}
	}
}
