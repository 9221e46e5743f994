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

// relayClient is what a relay needs of its client's session, besides the line to it.
type relayClient interface {
	number() int64
	origin() net.Addr
	// end has the session end.
	end()
}

// relay is a session's connection to the upstream. The session's goroutine forwards
// commands; a goroutine of its own, the courier, brings the replies to the client.
type relay struct {
	// Set once.
	up       *upstream.Upstream // nil: there is none, and nothing is ever forwarded
	shared   *shared
	client   relayClient
	activity *wire.Activity // of the client's session
	poller   *wire.Poller   // nil: nothing is parked
	// patience is how long a client may leave the proxy's own replies unread; 0: any time.
	patience time.Duration
	// proto is the protocol that the client speaks, where there is no upstream; of mu.
	proto int

	// The session's goroutine.
	silence track.Silence
	// unnoticed: the last command that was forwarded is not answered.
	unnoticed bool

	// blocking: a command that may block was forwarded since the upstream was quiet. The session's
	// goroutine sets it.
	blocking atomic.Bool

	// doubtful: the upstream led the client elsewhere, and never said whether it is alone.
	doubtful atomic.Bool

	// The courier, from bringReplies to its end.
	loan wire.Loan // what wire reads into

	line *line // to the client; its mu is of what follows, too

	// wire goes to the upstream; nil: not connected. dial is its number. Both are written by the
	// session's goroutine, with mu held, so that this one reads them without.
	wire *wire.Conn
	dial uint16
	term uint64 // of the upstream, as the connection was made
	// left: it was ended because the upstream is another server now.
	left bool
	// tracker knows the connection's state, and what is awaited.
	tracker  *track.Tracker
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

func newRelay(sh *shared, client relayClient, l *line, activity *wire.Activity, poller *wire.Poller) *relay {
	r := &relay{up: sh.opts.Upstream, shared: sh, client: client, line: l, activity: activity, poller: poller}
	if r.up == nil {
		r.patience, r.tracker = writeTimeout, &sh.untracked
		return r
	}
	tracker := track.NewTracker(r.up.DB(), r.up.Logins() != nil)
	r.tracker = &tracker
	return r
}

// led notes that the upstream has sent something that leads elsewhere.
func (r *relay) led(what string) {
	r.shared.turn(what)
	r.doubtful.Store(r.up.HidesMode())
}

func (r *relay) isGone() bool {
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	return r.gone
}

// isOver returns errOver where the client's connection must end.
func (r *relay) isOver() error {
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	if r.over {
		return errOver
	}
	return nil
}

// expect awaits the replies of commands that are about to be sent, unless the
// connection has ended: of so many that change nothing, and of one that may.
func (r *relay) expect(plain int, also *track.Slot) bool {
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
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
		r.shared.traffic.commands.Add(int64(plain))
	}
}

// follow is expect for a command that may change something of the connection.
func (r *relay) follow(s track.Slot) bool {
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	r.stateful = true
	if s.N != 0 || s.Kind == track.Subscribe {
		r.tracker.Awaited.Add(s)
	}
	return !r.gone
}

// forgo awaits one reply less: the last command will not be sent to its end.
func (r *relay) forgo() {
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	r.tracker.Awaited.Forgo()
	r.line.signal()
}

// unheard is follow for a command that is not answered.
func (r *relay) unheard(s track.Slot) {
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	r.stateful = true
	r.tracker.State.Unheard(s)
}

// teach has something learned that the proxy asked for.
func (r *relay) teach(lesson func(*track.State)) {
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	lesson(&r.tracker.State)
}

// know is a copy of what has been learned.
func (r *relay) know() track.State {
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	return r.tracker.State
}

// send forwards bytes. That the upstream does not take them any more is for the
// courier to find and to deal with.
func (r *relay) send(p []byte) {
	if len(p) > 0 {
		n, _ := r.wire.Write(p)
		r.shared.traffic.toUpstream.Add(int64(n))
	}
}

// quiet reports whether the upstream owes nothing and the client is between two
// replies. It is called with mu held.
func (r *relay) quiet() bool {
	return !r.line.writing && (r.gone || r.tracker.Settled() || r.tracker.State.Stream)
}

func (r *relay) isQuiet() bool {
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	return r.quiet()
}

// settle waits until the upstream has answered all that it was asked, or ctx ends.
func (r *relay) settle(ctx context.Context) error {
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	return r.line.wait(ctx, r.quiet)
}

// reply gives the client replies of the proxy's own, between two of the upstream's, and tells how
// many bytes its socket took of them. Where the upstream's stream is broken off within a reply, or
// has no replies, there is no such place. From then on the client speaks the protocol that is
// given, where there is no upstream to say so.
func (r *relay) reply(out *command.Reply, proto int) (n int, err error) {
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	if err := r.waitWhileBrought(context.Background(), r.between); err != nil {
		return 0, err
	}
	if r.tracker.Inside() || r.tracker.State.Stream {
		return 0, errOver
	}
	r.proto = proto
	r.boundIf(r.tracker.State.Unasked())
	out.Leaves()
	return r.line.writeReplies(r.patience, out.Bytes)
}

// between reports whether the client is between two replies, or never again. It is called with mu
// held.
func (r *relay) between() bool {
	return !r.line.writing && (!r.tracker.Inside() || r.gone || r.tracker.State.Stream)
}

// push gives the client what it is told unasked, between two replies, if it speaks a protocol that
// has that.
func (r *relay) push(ctx context.Context, p []byte) error {
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	if err := r.line.wait(ctx, r.between); err != nil {
		return err
	}
	proto := r.tracker.State.Proto
	if r.up == nil {
		proto = r.proto
	}
	if r.tracker.Inside() || r.tracker.State.Stream || proto != 3 {
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
		r.line.bound(r.shared.times.stall)
		return
	}
	r.line.bound(0)
}

// halfClose tells the upstream that the client sends no more, and waits until it
// has sent its last reply and closed, as long as it goes on or the client takes it.
func (r *relay) halfClose(ctx context.Context) {
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	if r.wire == nil || !r.gone && !r.wire.CloseWrite() {
		return
	}
	r.parting = true
	_ = r.waitWhileBrought(ctx, func() bool { return r.gone && !r.line.writing })
}

// waitWhileBrought is wait as long as something is brought to the client now and then. It is called
// with mu held.
func (r *relay) waitWhileBrought(ctx context.Context, until func() bool) error {
	if until() {
		return nil
	}
	for {
		before := r.brought
		soon, cancel := context.WithTimeout(ctx, r.shared.times.stall)
		err := r.line.wait(soon, until)
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
	_ = r.line.conn.Close()
	if r.wire != nil {
		_ = r.wire.Close()
	}
	r.copying.Wait()
}

// carries is what a relay knows of commands on lock keys that it carries to the upstream. It is of
// the relay's mu.
type carries struct {
	// heard: the upstream has answered something on the connection.
	heard bool
	// vouched is the number of the connection over which such commands may go: a majority of the
	// masters told after the upstream had answered on it that the locks are there.
	vouched uint16
	// rested is the number of the connection that was told to be at rest in a move: of a
	// transaction that goes on after that nothing is known.
	rested uint16
	// now: one is about to be sent, or was sent in part. runs: one is carried out on the masters.
	now, runs bool
	// blocks: one that may block was sent. unsure: one was sent that is not answered.
	blocks, unsure bool
	// watches: one was a WATCH.
	watches bool
	// stale: what it watched was moved since. It is written with mu held, and read by the session's
	// goroutine without.
	stale atomic.Bool
}

// address is the proxy's end of the connection to the upstream, if there is one.
func (r *relay) address() string {
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	if r.wire == nil {
		return ""
	}
	return r.wire.LocalAddr()
}

// mayBlock is the proxy's end of the connection to the upstream, if a command may wait there for
// what others do.
func (r *relay) mayBlock() string {
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	if r.wire == nil || r.gone || !r.blocking.Load() || r.tracker.Settled() {
		return ""
	}
	return r.wire.LocalAddr()
}

// parkConn has the poller wait for the connection, if the courier did.
func (r *relay) parkConn() error {
	if !r.paused {
		return nil
	}
	return r.wire.Park()
}

// streamEnded is told by the poller that the upstream sends no more on the
// connection of that number.
func (r *relay) streamEnded(dial uint16) {
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	if r.dial == dial && r.wire != nil {
		r.wire.End()
	}
}
