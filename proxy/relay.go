package proxy

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"redlock-proxy/commands/command"
	"redlock-proxy/proxy/track"
	"redlock-proxy/proxy/upstream"
	"redlock-proxy/proxy/wire"
)

const (
	// stallTime is how long a subscriber may leave what it gets unread, and how long
	// the last replies for a client that sends no more may stop to flow.
	stallTime = time.Minute
	// farewellTime is how long a client that sends no more is taken to be still there
	// while the upstream does not answer.
	farewellTime = 5 * time.Second
)

// relayTimes are stallTime and farewellTime, but in tests.
type relayTimes struct{ stall, farewell time.Duration }

// relay is a session's connection to the upstream. The session's goroutine forwards
// commands; a goroutine of its own, the courier, brings the replies to the client.
type relay struct {
	// Set once.
	up      *upstream.Upstream // nil: there is none, and nothing is ever forwarded
	session *session
	times   *relayTimes
	// patience is how long a client may leave the proxy's own replies unread; 0: any time.
	patience time.Duration
	traffic  *traffic

	// The session's goroutine.
	silence track.Silence
	// unnoticed: the last command that was forwarded is not answered.
	unnoticed bool

	// blocking: a command that may block was forwarded since the upstream was quiet. The session's goroutine sets it.
	blocking atomic.Bool

	// doubtful: the upstream led the client elsewhere, and never said whether it is alone.
	doubtful atomic.Bool

	// The courier, from bringReplies to its end.
	loan wire.Loan // what wire reads into

	*line // to the client; its mu is of what follows, too

	// wire goes to the upstream; nil: not connected. dial is its number. Both are written by the
	// session's goroutine, with mu held, so that this one reads them without.
	wire *wire.Conn
	dial uint16
	term uint64 // of the upstream, as the connection was made
	// left: it was ended because the upstream is another server now.
	left bool
	// tracker knows the connection's state, and what is awaited.
	tracker  track.Tracker
	stateful bool     // the client has changed something of its connection
	brought  uint64   // how often something was brought to the client
	asked    []byte   // of the answer to what the proxy asked itself, as far as it has come
	answers  [][]byte // those that have come
	// spoilt says why these cannot be used; givenUp: the proxy ended the connection for want
	// of them.
	spoilt  error
	givenUp bool
	// carries is about commands on lock keys, while the locks are at the upstream.
	carries carries
	// parting: the upstream was told that the client sends no more.
	parting bool
	// gone: the upstream's connection has ended, and its client is dealt with.
	gone bool
	// over: the client's connection must end, too.
	over bool
	// pausing: the courier is to end; paused: it has, and will be started again.
	pausing, paused bool

	copying sync.WaitGroup // the courier; the session's goroutine starts it and waits for it
}

// errOver ends a session whose client has lost something with the upstream's
// connection.
var errOver = errors.New("the client's connection to the upstream is lost")

func newRelay(up *upstream.Upstream, s *session, times *relayTimes, traffic *traffic) *relay {
	r := &relay{up: up, session: s, line: &s.line, times: times, traffic: traffic, tracker: track.NewTracker(0, false)}
	if up == nil {
		r.patience = writeTimeout
	} else {
		r.tracker = track.NewTracker(up.DB(), up.Logins() != nil)
	}
	return r
}

// open connects, if that is not done. The error is for the client, too. When ctx
// ends, what the upstream does not take is not waited for any more.
func (r *relay) open(ctx context.Context) error {
	if err := r.isOver(); err != nil || r.wire != nil && !r.isGone() {
		return err
	}
	term := r.up.Term()
	conn, err := r.up.Connect(ctx)
	if err != nil {
		return err
	}
	if r.carries.now { // of a connection that is gone: it may not go over another one
		_ = conn.Close()
		return r.up.Failure(upstream.ErrGone)
	}
	r.use(conn, term)
	if r.up.Term() != term {
		r.leave()
	}
	r.bringReplies(ctx)
	return nil
}

// led notes that the upstream has sent something that leads elsewhere.
func (r *relay) led(what string) {
	r.session.server.turn(what)
	r.doubtful.Store(r.up.HidesMode())
}

// leave ends a connection to what was the upstream before it failed over, as if that had: the old one may be frozen, or cut off
// from all others, and would never do so. What it has answered is still brought.
func (r *relay) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.wire != nil && !r.gone && r.term != r.up.Term() {
		r.left = true
		r.wire.Abandon()
	}
}

// use takes up a new connection, made in this term of the upstream or a later one.
func (r *relay) use(conn net.Conn, term uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.term, r.left = term, false
	r.gone, r.asked, r.answers, r.spoilt = false, nil, nil, nil
	r.carries.heard, r.carries.blocks, r.carries.unsure, r.carries.watches = false, false, false, false
	r.tracker.Detours.On = r.session.table.LockKeys().Any()
	r.tracker.Begin()
	r.dial = max(1, r.dial+1)
	r.wire = wire.New(conn, &r.loan, &r.session.activity)
	r.wire.Join(r.session.poller, wire.TagOf(r.session.client.ID, r.dial))
}

// bringReplies starts the goroutine that brings the replies.
func (r *relay) bringReplies(ctx context.Context) {
	w := r.wire
	stop := context.AfterFunc(ctx, func() { _ = w.SetWriteDeadline(longAgo) })
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
// connection has ended: of so many that change nothing, and of one that may.
func (r *relay) expect(plain int, also *track.Slot) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.gone {
		return false
	}
	if plain > 0 {
		r.tracker.Awaited.Plain(plain)
	}
	if also != nil {
		r.tracker.Awaited.Add(*also)
		r.stateful = r.stateful || also.Kind != track.Capture
	}
	return true
}

// count counts what expect was told of: commands of the client.
func (r *relay) count(plain int, also *track.Slot) {
	if also != nil {
		plain++
	}
	if plain > 0 { // else these are further bytes of one
		r.traffic.commands.Add(int64(plain))
	}
}

// follow is expect for a command that may change something of the connection.
func (r *relay) follow(s track.Slot) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stateful = true
	if s.N != 0 || s.Kind == track.Subscribe {
		r.tracker.Awaited.Add(s)
	}
	return !r.gone
}

// forgo awaits one reply less: the last command will not be sent to its end.
func (r *relay) forgo() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tracker.Awaited.Forgo()
	r.signal()
}

// unheard is follow for a command that is not answered.
func (r *relay) unheard(s track.Slot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stateful = true
	r.tracker.State.Unheard(s)
}

// teach has something learned that the proxy asked for.
func (r *relay) teach(lesson func(*track.State)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	lesson(&r.tracker.State)
}

// know is a copy of what has been learned.
func (r *relay) know() track.State {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tracker.State
}

// forward connects, if that is not done, and sends frames, the last one maybe in part. It awaits so many replies that change nothing, and one that
// may. goesOn: they begin within a frame, whose beginning was sent; the rest of it would be another command on a new connection. It reports false
// where nothing was sent, because the connection has ended.
func (r *relay) forward(ctx context.Context, frames []byte, plain int, also *track.Slot, goesOn bool) (sent bool, err error) {
	if goesOn && r.isGone() {
		return false, nil
	}
	dial := r.dial
	err = r.open(ctx)
	if goesOn && (r.dial != dial || r.isGone()) { // it ended just now
		return false, nil
	}
	if err != nil || !r.expect(plain, also) {
		return false, err
	}
	r.count(plain, also)
	r.send(frames)
	return true, nil
}

// send forwards bytes. That the upstream does not take them any more is for the
// courier to find and to deal with.
func (r *relay) send(p []byte) {
	if len(p) > 0 {
		n, _ := r.wire.Write(p)
		r.traffic.toUpstream.Add(int64(n))
	}
}

// quiet reports whether the upstream owes nothing and the client is between two
// replies. It is called with mu held.
func (r *relay) quiet() bool {
	return !r.writing && (r.gone || r.tracker.Settled() || r.tracker.State.Stream)
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

// reply gives the client replies of the proxy's own, between two of the
// upstream's, and tells how many bytes its socket took of them. Where the upstream's stream is broken off within a reply, or has no
// replies, there is no such place. Without an upstream the client speaks the protocol that is given.
func (r *relay) reply(out *command.Reply, proto int) (n int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.waitWhileBrought(context.Background(), r.between); err != nil {
		return 0, err
	}
	if r.tracker.Inside() || r.tracker.State.Stream {
		return 0, errOver
	}
	if r.up == nil {
		r.tracker.State.Proto = proto
	}
	r.boundIf(r.tracker.State.Unasked())
	out.Leaves()
	return r.writeReplies(r.patience, out.Bytes)
}

// between reports whether the client is between two replies, or never again. It is called with mu held.
func (r *relay) between() bool {
	return !r.writing && (!r.tracker.Inside() || r.gone || r.tracker.State.Stream)
}

// push gives the client what it is told unasked, between two replies, if it speaks a protocol that has that.
func (r *relay) push(ctx context.Context, p []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.wait(ctx, r.between); err != nil {
		return err
	}
	if r.tracker.Inside() || r.tracker.State.Stream || r.tracker.State.Proto != 3 {
		return nil
	}
	r.boundIf(true)
	_, err := r.line.write(p)
	return err
}

// boundIf limits the time that the client may take for the next write, or does not:
// Redis waits for those who asked for what they get, but not for subscribers. It is
// called with mu held.
func (r *relay) boundIf(limited bool) {
	if limited {
		r.bound(r.times.stall)
		return
	}
	r.bound(0)
}

// halfClose tells the upstream that the client sends no more, and waits until it
// has sent its last reply and closed, as long as it goes on or the client takes it.
func (r *relay) halfClose(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.wire == nil || !r.gone && !r.wire.CloseWrite() {
		return
	}
	r.parting = true
	_ = r.waitWhileBrought(ctx, func() bool { return r.gone && !r.writing })
}

// waitWhileBrought is wait as long as something is brought to the client now and then. It is called with mu held.
func (r *relay) waitWhileBrought(ctx context.Context, until func() bool) error {
	if until() {
		return nil
	}
	for {
		before := r.brought
		soon, cancel := context.WithTimeout(ctx, r.times.stall)
		err := r.wait(soon, until)
		cancel()
		if err == nil || r.brought == before || ctx.Err() != nil {
			return err
		}
	}
}

// sever ends the connection to the upstream, and with it that of the client: whose
// answer the next one is, or what state the connection is in, is not known.
func (r *relay) sever() {
	if r.wire != nil {
		_ = r.wire.Close()
	}
}

// close ends the connection and waits for the courier, which may be writing
// to the client. There is nothing more for that.
func (r *relay) close() {
	_ = r.session.conn.Close()
	if r.wire != nil {
		_ = r.wire.Close()
	}
	r.copying.Wait()
}
