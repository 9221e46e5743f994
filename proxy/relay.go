package proxy

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"
)

// relay is a session's connection to the upstream. The session's goroutine
// forwards commands; a goroutine of its own brings the replies to the client.
type relay struct {
	up      *Upstream
	session *session

	// What the session's goroutine alone uses.
	silence replySilence

	mu       sync.Mutex
	wire     *wire     // to the upstream; nil: not connected; changed by the session's goroutine
	dial     uint16    // the number of that connection
	loan     loan      // what wire reads into
	changed  sync.Cond // something of the following, while waiting > 0
	waiting  int
	awaited  awaited
	learned  learned
	replies  replyScanner
	stateful bool   // the client has changed something of its connection
	writing  bool   // the client is being written to
	bounded  bool   // a write to the client has a deadline
	brought  uint64 // how often something was brought to the client
	asked    []byte
	answer   []byte // of what the proxy asked itself; nil: none yet
	// parting: the upstream was told that the client sends no more.
	parting bool
	// gone: the upstream's connection has ended, and its client is dealt with.
	gone bool
	// over: the client's connection must end, too.
	over bool

	// pausing: the other goroutine is to end; paused: it has, and will be started again.
	pausing, paused bool

	copying sync.WaitGroup
}

// replySilence follows CLIENT REPLY.
type replySilence uint8

const (
	speaking replySilence = iota
	silentOnce
	silentFromNow
)

var (
	// errOver ends a session whose client has lost something with the upstream's
	// connection.
	errOver = errors.New("the client's connection to the upstream is lost")
	// errUpstreamGone ends what waited for an answer.
	errUpstreamGone = errors.New("the upstream closed the connection")
)

func newRelay(up *Upstream, s *session) *relay {
	r := &relay{up: up, session: s, learned: newLearned()}
	r.learned.db = up.options.DB
	r.changed.L = &r.mu
	return r
}

// open connects, if that is not done. The error is for the client, too. When ctx
// ends, what the upstream does not take is not waited for any more.
func (r *relay) open(ctx context.Context) error {
	if err := r.isOver(); err != nil || r.wire != nil && !r.isGone() {
		return err
	}
	conn, err := r.up.connect(ctx)
	if err != nil {
		return err
	}
	r.use(conn)
	r.bringReplies(ctx)
	return nil
}

// use takes up a new connection.
func (r *relay) use(conn net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gone, r.replies, r.asked = false, replyScanner{}, nil
	r.dial = max(1, r.dial+1)
	r.wire = newWire(conn, &r.loan, &r.session.stir)
	r.wire.toldBy(r.session.poller, r.tag())
}

// bringReplies starts the goroutine that brings the replies.
func (r *relay) bringReplies(ctx context.Context) {
	w := r.wire
	stop := context.AfterFunc(ctx, func() { _ = w.conn.SetWriteDeadline(longAgo) })
	r.copying.Go(func() {
		defer stop()
		r.copyReplies(w)
	})
}

func (r *relay) isGone() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.gone
}

// isOver returns errOver where the client's connection must end.
func (r *relay) isOver() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return errOver
	}
	return nil
}

// expect awaits the replies of commands that are about to be sent, unless the
// connection has ended.
func (r *relay) expect(plain int, also ...slot) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.gone {
		return false
	}
	if plain > 0 {
		r.awaited.plain(plain)
	}
	for _, s := range also {
		r.awaited.add(s)
		r.stateful = r.stateful || s.kind != slotCapture
	}
	return true
}

// follow is expect for a command that may change something of the connection.
func (r *relay) follow(s slot) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stateful = true
	if s.n != 0 || s.kind == slotSubscribe {
		r.awaited.add(s)
	}
	return !r.gone
}

// forgo awaits one reply less: the last command will not be sent to its end.
func (r *relay) forgo() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.awaited.forgo()
	r.signal()
}

// unheard is follow for a command that is not answered.
func (r *relay) unheard(s slot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stateful = true
	r.learned.unheard(s)
}

// teach has something learned that the proxy asked for.
func (r *relay) teach(lesson func(*learned)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	lesson(&r.learned)
}

// know is a copy of what has been learned.
func (r *relay) know() learned {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.learned
}

// send forwards bytes. That the upstream does not take them any more is for the
// other goroutine to find and to deal with.
func (r *relay) send(p []byte) {
	if len(p) > 0 {
		_, _ = r.wire.Write(p)
	}
}

// quiet reports whether the upstream owes nothing and the client is between two
// replies. It is called with mu held.
func (r *relay) quiet() bool {
	return r.gone || !r.writing && !r.replies.inside && r.awaited.empty() || !r.writing && r.learned.stream
}

func (r *relay) isQuiet() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.quiet()
}

// settle waits until the upstream has answered all that it was asked, or ctx ends.
func (r *relay) settle(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.wait(ctx, r.quiet)
}

// wait waits for a condition on what mu guards. It is called with mu held.
func (r *relay) wait(ctx context.Context, until func() bool) error {
	if until() {
		return nil
	}
	stop := context.AfterFunc(ctx, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.changed.Broadcast()
	})
	defer stop()
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
// upstream's. Where the upstream's stream is broken off within a reply, or has no
// replies, there is no such place.
func (r *relay) write(p []byte) error {
	between := func() bool { return !r.writing && (!r.replies.inside || r.gone || r.learned.stream) }
	r.mu.Lock()
	defer r.mu.Unlock()
	if !between() {
		ctx, cancel := context.WithTimeout(context.Background(), r.up.stall)
		defer cancel()
		if err := r.wait(ctx, between); err != nil {
			return err
		}
	}
	if r.replies.inside || r.learned.stream {
		return errOver
	}
	r.bound(r.learned.unasked())
	_, err := r.client().Write(p)
	return err
}

// client is the way to the client.
func (r *relay) client() *wire { return r.session.in.wire }

// bound limits the time that the client may take for the next write, or does not:
// Redis waits for those who asked for what they get, but not for subscribers. It is
// called with mu held.
func (r *relay) bound(limited bool) {
	if limited {
		_ = r.session.conn.SetWriteDeadline(time.Now().Add(r.up.stall))
	} else if r.bounded {
		_ = r.session.conn.SetWriteDeadline(time.Time{})
	}
	r.bounded = limited
}

// halfClose tells the upstream that the client sends no more, and waits until it
// has sent its last reply and closed, as long as it goes on or the client takes it.
func (r *relay) halfClose(ctx context.Context) {
	if r.wire == nil || r.isGone() {
		return
	}
	c, ok := r.wire.conn.(interface{ CloseWrite() error })
	if !ok {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.parting = true
	_ = c.CloseWrite()
	for before := r.brought - 1; !r.gone && before != r.brought && ctx.Err() == nil; {
		before = r.brought
		soon, cancel := context.WithTimeout(ctx, r.up.stall)
		_ = r.wait(soon, func() bool { return r.gone })
		cancel()
	}
}

// close ends the connection and waits for the other goroutine, which may be writing
// to the client. There is nothing more for that.
func (r *relay) close() {
	_ = r.session.conn.Close()
	if r.wire != nil {
		_ = r.wire.conn.Close()
	}
	r.copying.Wait()
}
