package proxy

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
)

// relay is a session's connection to the upstream. The session's goroutine
// forwards commands; a goroutine of its own brings the replies to the client.
type relay struct {
	up     *Upstream
	client net.Conn

	// What the session's goroutine alone uses.
	conn     net.Conn // nil: not connected
	stateful bool     // the client has changed something of its connection
	silence  replySilence

	mu      sync.Mutex
	changed sync.Cond // something of the following, while waiting > 0
	waiting int
	awaited awaited
	learned learned
	replies replyScanner
	writing bool // the client is being written to
	asked   []byte
	answer  []byte // of what the proxy asked itself; nil: none yet
	// gone: the upstream's connection has ended, and its client is dealt with.
	gone bool
	// over: the client's connection must end, too.
	over bool

	copying sync.WaitGroup
	// hangUp has the session end, once what it is doing is done.
	hangUp func()
}

// replySilence follows CLIENT REPLY.
type replySilence uint8

const (
	speaking replySilence = iota
	silentOnce
	silentFromNow
)

func newRelay(up *Upstream, client net.Conn, hangUp func()) *relay {
	r := &relay{up: up, client: client, learned: newLearned(), hangUp: hangUp}
	r.learned.db = up.options.DB
	r.changed.L = &r.mu
	return r
}

// open connects, if that is not done. The error is for the client, too.
func (r *relay) open(ctx context.Context) error {
	if r.conn != nil && !r.isGone() {
		return nil
	}
	conn, err := r.up.connect(ctx)
	if err != nil {
		return err
	}
	r.mu.Lock()
	r.gone, r.replies = false, replyScanner{}
	r.mu.Unlock()
	r.conn = conn
	r.copying.Go(func() { r.copyReplies(conn) })
	return nil
}

func (r *relay) isGone() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.gone
}

// expect awaits the replies of commands that are about to be sent.
func (r *relay) expect(plain int, also ...slot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if plain > 0 {
		r.awaited.plain(plain)
	}
	for _, s := range also {
		r.awaited.add(s)
	}
}

// send forwards bytes. That the upstream does not take them any more is for the
// other goroutine to find and to deal with.
func (r *relay) send(p []byte) {
	if len(p) > 0 {
		_, _ = r.conn.Write(p)
	}
}

// quiet reports whether the upstream owes nothing and the client is between two
// replies. It is called with mu held.
func (r *relay) quiet() bool {
	return r.gone || !r.writing && !r.replies.inside && (r.awaited.empty() || r.learned.stream)
}

func (r *relay) isQuiet() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.quiet()
}

// settle waits until the upstream has answered all that it was asked, or ctx ends.
func (r *relay) settle(ctx context.Context) error {
	return r.wait(ctx, r.quiet)
}

// wait waits for a condition on what mu guards.
func (r *relay) wait(ctx context.Context, until func() bool) error {
	stop := context.AfterFunc(ctx, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.changed.Broadcast()
	})
	defer stop()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting++
	defer func() { r.waiting-- }()
	for !until() && ctx.Err() == nil {
		r.changed.Wait()
	}
	if until() {
		return nil
	}
	return context.Cause(ctx)
}

// signal wakes those who wait. It is called with mu held.
func (r *relay) signal() {
	if r.waiting > 0 {
		r.changed.Broadcast()
	}
}

// write gives the client a reply of the proxy's own, between two of the
// upstream's.
func (r *relay) write(p []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting++
	for r.writing || r.replies.inside && !r.gone {
		r.changed.Wait()
	}
	r.waiting--
	_, err := r.client.Write(p)
	return err
}

// errUpstreamGone ends what waited for an answer.
var errUpstreamGone = errors.New("the upstream closed the connection")

// ask sends a command for the proxy itself and gives its whole reply. Nothing else
// may be awaited.
func (r *relay) ask(ctx context.Context, command []byte) ([]byte, error) {
	if err := r.open(ctx); err != nil {
		return nil, err
	}
	r.expect(0, slot{kind: slotCapture, n: 1})
	r.send(command)
	if err := r.wait(ctx, func() bool { return r.answer != nil || r.gone }); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	answer := r.answer
	r.answer = nil
	if answer == nil {
		return nil, &upstreamError{r.up.name, errUpstreamGone}
	}
	return answer, nil
}

// know is a copy of what has been learned.
func (r *relay) know() learned {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.learned
}

// halfClose tells the upstream that the client sends no more, and waits until it
// has sent its last reply and closed.
func (r *relay) halfClose(ctx context.Context) {
	if r.conn == nil || r.isGone() {
		return
	}
	if c, ok := r.conn.(interface{ CloseWrite() error }); ok {
		_ = c.CloseWrite()
		_ = r.wait(ctx, func() bool { return r.gone })
	}
}

// close ends the connection and waits for the other goroutine.
func (r *relay) close() {
	if r.conn != nil {
		_ = r.conn.Close()
	}
	r.copying.Wait()
}

// copyReplies brings replies to the client until either connection ends.
func (r *relay) copyReplies(conn net.Conn) {
	var buf []byte
	w := newWire(conn, func() []byte {
		if buf == nil {
			buf = borrow()
		}
		return buf
	}, func() {
		giveBack(buf)
		buf = nil
	})
	for {
		n, err := w.read()
		if n > 0 && r.deliver(buf[:n]) != nil {
			err = errClientLeft
		}
		if err != nil {
			giveBack(buf)
			_ = conn.Close()
			r.end(err)
			return
		}
	}
}

// deliver learns from what the upstream sent, and writes to the client what is
// for it.
func (r *relay) deliver(p []byte) error {
	r.mu.Lock()
	p = r.sift(p)
	r.writing = len(p) > 0
	if !r.writing {
		r.signal()
	}
	r.mu.Unlock()
	if len(p) == 0 {
		return nil
	}
	_, err := r.client.Write(p)
	r.mu.Lock()
	r.writing = false
	r.signal()
	r.mu.Unlock()
	return err
}

// sift scans replies and takes out those that the proxy asked for itself. It is
// called with mu held.
func (r *relay) sift(p []byte) []byte {
	var kept []byte // of p[:at], once something was taken out
	taken := false
	at := 0
	for at < len(p) && !r.streaming() {
		mine := r.isMine(p[at])
		n, ended, err := r.replies.scan(p[at:])
		part := p[at : at+n]
		switch {
		case mine:
			if !taken {
				kept, taken = append(kept, p[:at]...), true
			}
			r.asked = append(r.asked, part...)
		case taken:
			kept = append(kept, part...)
		}
		at += n
		if err != nil {
			r.learned.stream = true
		}
		if ended && r.learned.reply(&r.awaited, &r.replies) {
			r.answer, r.asked = r.asked, nil
		}
	}
	if !taken {
		return p
	}
	return append(kept, p[at:]...)
}

// streaming reports whether what comes now is not a reply.
func (r *relay) streaming() bool {
	if first := r.awaited.first(); first != nil && first.kind == slotStream {
		r.learned.stream = true
	}
	return r.learned.stream
}

// isMine reports whether the reply in which, or before which, the next byte stands
// is one that the proxy asked for itself.
func (r *relay) isMine(next byte) bool {
	first := r.awaited.first()
	if first == nil || first.kind != slotCapture {
		return false
	}
	if r.replies.inside {
		return len(r.asked) > 0
	}
	return next != '>'
}

// end deals with the client of a connection that has ended: what was asked and
// not answered is answered with an error naming the upstream, and the client may
// go on, unless its connection has state that is lost, or the state of its own
// stream is not known.
func (r *relay) end(cause error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := &r.learned
	owed := r.awaited.owed()
	honest := !r.replies.inside && !l.multi && !l.listening() && !l.stream && !l.quitting && !r.awaited.closes()
	if honest && owed > 0 && cause != errClientLeft {
		r.apologise(owed, cause)
	}
	r.over = !honest || owed == 0 || r.stateful || cause == errClientLeft
	r.awaited, r.learned = awaited{}, newLearned()
	r.learned.db = r.up.options.DB
	r.gone = true
	r.changed.Broadcast()
	if r.over {
		r.hangUp()
	}
}

// apologise answers n commands that the upstream never will.
func (r *relay) apologise(n int, cause error) {
	if errors.Is(cause, io.EOF) {
		cause = errUpstreamGone
	}
	failed := &upstreamError{r.up.name, plainCause(cause)}
	reply := "-" + failed.reply() + " before it answered: the command may or may not have been done\r\n"
	for range n {
		if _, err := io.WriteString(r.client, reply); err != nil {
			return
		}
	}
}
