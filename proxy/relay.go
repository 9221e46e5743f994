package proxy

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"redlock-proxy/commands/command"
	"redlock-proxy/proxy/netconn"
	"redlock-proxy/proxy/track"
	"redlock-proxy/proxy/upstream"
)

// relayClient is the part of a client's session that a relay needs in addition to the line.
type relayClient interface {
	number() int64
	origin() net.Addr
	// end makes the session end.
	end()
}

// relay is a session's connection to the upstream. The session's goroutine forwards commands. Its
// own goroutine, the reply copier, brings the replies to the client.
type relay struct {
	// Set once.
	up       *upstream.Upstream // nil: there is none, and nothing is ever forwarded
	shared   *shared
	client   relayClient
	activity *netconn.Activity // of the client's session
	poller   *netconn.Poller   // nil: nothing is parked
	// patience is how long a client may leave the proxy's own replies unread; 0: no limit.
	patience time.Duration
	// proto is the protocol that the client speaks, without an upstream. line.mu guards it.
	proto int

	// These fields belong to the session's goroutine. CLIENT REPLY sets replyMode.
	replyMode track.ReplyMode
	// lastUnanswered is set if the last command that was forwarded gets no reply.
	lastUnanswered bool

	// blocking is set if a command that may block was forwarded since the upstream last had no
	// reply pending. The session's goroutine sets it.
	blocking atomic.Bool

	// modeUnverified is set if the upstream sent a redirect while its mode was unknown.
	modeUnverified atomic.Bool

	// loan belongs to the reply copier, from startCopier until the copier ends.
	loan netconn.PooledBuffer // wire reads into it

	line *line // to the client; its mu guards the following fields, too

	// wire is the connection to the upstream; nil: not connected. dial is its number. The session's
	// goroutine writes both with mu held, so that it may read them without.
	wire *netconn.Conn
	dial uint16
	term uint64 // of the upstream, when the connection was made
	// outdated is set if the connection was ended because the upstream is another server now.
	outdated bool
	// tracker knows the connection's state, and the replies that are expected.
	tracker       *track.Tracker
	stateful      bool     // the client has changed state of its connection
	deliveries    uint64   // counts writes of replies to the client
	partialAnswer []byte   // the part that has arrived of a reply to the proxy's own command
	answers       [][]byte // whole replies to the proxy's own commands
	// answerErr is the reason why these replies cannot be used. closedUnanswered is set if the
	// proxy closed the connection because a reply did not come.
	answerErr        error
	closedUnanswered bool
	// lockTraffic tracks commands on lock keys, while the locks are at the upstream.
	lockTraffic lockTraffic
	// halfClosed is set if the client sends no more, and the upstream was notified.
	halfClosed bool
	// gone is set if the upstream's connection has ended, and end has run.
	gone bool
	// mustEnd is set if the client's connection must end, too.
	mustEnd bool
	// pausing is set if the reply copier is asked to end, paused if it has, to be restarted.
	pausing, paused bool

	copying sync.WaitGroup // the reply copier; the session's goroutine starts it and waits for it
}

// errStateLost ends a session whose client has lost state with the upstream's connection.
var errStateLost = errors.New("the client's connection to the upstream is lost")

func newRelay(sh *shared, client relayClient, l *line, activity *netconn.Activity, poller *netconn.Poller) *relay {
	r := &relay{up: sh.opts.Upstream, shared: sh, client: client, line: l, activity: activity, poller: poller}
	if r.up == nil {
		r.patience, r.tracker = writeTimeout, &sh.untracked
		return r
	}
	tracker := track.NewTracker(r.up.DB(), r.up.Logins() != nil)
	r.tracker = &tracker
	return r
}

// noteRedirect records that the upstream has sent a redirect.
func (r *relay) noteRedirect(what string) {
	r.shared.countRedirect(what)
	r.modeUnverified.Store(r.up.ModeUnknown())
}

func (r *relay) isGone() bool {
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	return r.gone
}

// lostErr returns errStateLost if the client's connection must end.
func (r *relay) lostErr() error {
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	if r.mustEnd {
		return errStateLost
	}
	return nil
}

// expect records the replies that commands about to be sent will get: plain replies that change no
// state and, if also is not nil, one that may. It reports false if the connection has ended.
func (r *relay) expect(plain int, also *track.Expected) bool {
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
		r.stateful = r.stateful || also.Kind != track.OwnCommand
	}
	return true
}

// count adds the commands that were passed to expect to the metrics.
func (r *relay) count(plain int, also *track.Expected) {
	if also != nil {
		plain++
	}
	if plain > 0 { // else the bytes continue a frame
		r.shared.traffic.commands.Add(int64(plain))
	}
}

// follow is expect for a command that may change state of the connection.
func (r *relay) follow(s track.Expected) bool {
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	r.stateful = true
	if s.N != 0 || s.Kind == track.Subscribe {
		r.tracker.Awaited.Add(s)
	}
	return !r.gone
}

// cancelLast expects one reply fewer: the last command will not be sent to its end.
func (r *relay) cancelLast() {
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	r.tracker.Awaited.CancelLast()
	r.line.signal()
}

// followUnanswered is follow for a command that gets no reply.
func (r *relay) followUnanswered(s track.Expected) {
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	r.stateful = true
	r.tracker.State.Unanswered(s)
}

// updateState changes the connection's state by what the proxy's own command has found out.
func (r *relay) updateState(update func(*track.State)) {
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	update(&r.tracker.State)
}

// state returns a copy of the connection's state.
func (r *relay) state() track.State {
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	return r.tracker.State
}

// send forwards bytes. If the upstream no longer takes them, the reply copier notices and handles
// that.
func (r *relay) send(p []byte) {
	if len(p) > 0 {
		n, _ := r.wire.Write(p)
		r.shared.traffic.toUpstream.Add(int64(n))
	}
}

// settled reports whether no reply is pending or being written. It is called with mu held.
func (r *relay) settled() bool {
	return !r.line.writing && (r.gone || r.tracker.Settled() || r.tracker.State.Stream)
}

func (r *relay) isSettled() bool {
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	return r.settled()
}

// waitSettled waits until the upstream has answered everything, or ctx ends.
func (r *relay) waitSettled(ctx context.Context) error {
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	return r.line.wait(ctx, r.settled)
}

// reply writes the proxy's own replies to the client, between two replies of the upstream, and
// returns how many bytes the client's socket took. It returns errStateLost if the upstream's stream
// ended within a reply, or carries no replies. Without an upstream, the client speaks protocol
// proto from now on.
func (r *relay) reply(out *command.Reply, proto int) (n int, err error) {
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	if err := r.waitWhileDelivering(context.Background(), r.isBetweenReplies); err != nil {
		return 0, err
	}
	if r.tracker.Inside() || r.tracker.State.Stream {
		return 0, errStateLost
	}
	r.proto = proto
	r.limitWriteIf(r.tracker.State.GetsUnsolicited())
	out.UpdateValidity()
	return r.line.writeReplies(r.patience, out.Bytes)
}

// isBetweenReplies reports whether the client is between two replies, or will get no more. It is
// called with mu held.
func (r *relay) isBetweenReplies() bool {
	return !r.line.writing && (!r.tracker.Inside() || r.gone || r.tracker.State.Stream)
}

// push writes an out-of-band message to the client, between two replies. It does nothing if the
// client speaks RESP2.
func (r *relay) push(ctx context.Context, p []byte) error {
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	if err := r.line.wait(ctx, r.isBetweenReplies); err != nil {
		return err
	}
	proto := r.tracker.State.Proto
	if r.up == nil {
		proto = r.proto
	}
	if r.tracker.Inside() || r.tracker.State.Stream || proto != 3 {
		return nil
	}
	r.limitWriteIf(true)
	_, err := r.line.write(p)
	return err
}

// limitWriteIf limits the time that the client may take for the next write, if limited is set.
// Redis waits for clients that asked for their replies, but not for subscribers. It is called with
// mu held.
func (r *relay) limitWriteIf(limited bool) {
	if limited {
		r.line.limitWrite(r.shared.times.stall)
		return
	}
	r.line.limitWrite(0)
}

// halfClose notifies the upstream that the client sends no more. It waits until the upstream has
// sent its last reply and closed, as long as the upstream sends or the client reads.
func (r *relay) halfClose(ctx context.Context) {
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	if r.wire == nil || !r.gone && !r.wire.CloseWrite() {
		return
	}
	r.halfClosed = true
	_ = r.waitWhileDelivering(ctx, func() bool { return r.gone && !r.line.writing })
}

// waitWhileDelivering is line.wait that continues as long as replies are written to the client at
// least every stall time. It is called with mu held.
func (r *relay) waitWhileDelivering(ctx context.Context, until func() bool) error {
	if until() {
		return nil
	}
	for {
		before := r.deliveries
		soon, cancel := context.WithTimeout(ctx, r.shared.times.stall)
		err := r.line.wait(soon, until)
		cancel()
		if err == nil || r.deliveries == before || ctx.Err() != nil {
			return err
		}
	}
}

// sever ends the connection to the upstream, and with it the client's connection. It is called if
// the proxy no longer knows the connection's state, or which command the next reply answers.
func (r *relay) sever() {
	if r.wire != nil {
		_ = r.wire.Close()
	}
}

// close ends the connection, and waits for the reply copier, which may be writing to the client.
func (r *relay) close() {
	_ = r.line.conn.Close()
	if r.wire != nil {
		_ = r.wire.Close()
	}
	r.copying.Wait()
}

// lockTraffic tracks the commands on lock keys that a relay sends to the upstream. The relay's mu
// guards it.
type lockTraffic struct {
	// answered is set if the upstream has answered a command on the connection.
	answered bool
	// confirmedDial is the number of the connection over which such commands may go. After the
	// upstream had answered on it, a majority of the masters reported the locks at the upstream.
	confirmedDial uint16
	// restedDial is the number of the connection that was reported to be at rest in a move. After
	// that, nothing is known of a transaction that continues on it.
	restedDial uint16
	// sending is set if a command is about to be sent, or was sent in part. onMasters is set while
	// a command runs on the masters.
	sending, onMasters bool
	// mayBlock is set if a command that may block was sent, unanswered if a command that gets no
	// reply was sent.
	mayBlock, unanswered bool
	// watching is set if a WATCH was sent.
	watching bool
	// watchMoved is set if the watched keys have moved since. It is written with mu held, and read
	// by the session's goroutine without.
	watchMoved atomic.Bool
}

// address returns the local address of the connection to the upstream, if there is one.
func (r *relay) address() string {
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	if r.wire == nil {
		return ""
	}
	return r.wire.LocalAddr()
}

// waitingAddr returns the local address of the connection to the upstream, if a command on it may
// wait for other clients.
func (r *relay) waitingAddr() string {
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	if r.wire == nil || r.gone || !r.blocking.Load() || r.tracker.Settled() {
		return ""
	}
	return r.wire.LocalAddr()
}

// parkConn makes the poller wait for the connection, if the reply copier has paused.
func (r *relay) parkConn() error {
	if !r.paused {
		return nil
	}
	return r.wire.Park()
}

// streamEnded is called by the poller when the upstream has ended its stream on connection dial.
func (r *relay) streamEnded(dial uint16) {
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	if r.dial == dial && r.wire != nil {
		r.wire.End()
	}
}
