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
	"redlock-proxy/proxy/redirect"
	"redlock-proxy/proxy/track"
	"redlock-proxy/proxy/upstream"
)

// relayClient is the part of a client's session that a relay needs in addition to the clientWriter.
type relayClient interface {
	clientID() int64
	clientAddr() net.Addr
	// end makes the session end. disconnect ends the client's connection immediately.
	end()
	disconnect()
}

// relay holds a session's connection to the upstream. The session's goroutine forwards commands.
// The relay's goroutine, the reply copier, writes the replies to the client.
type relay struct {
	// These fields are set once.
	upstream    *upstream.Upstream // nil at a lock server
	serverState *serverState
	client      relayClient
	activity    *netconn.Activity // of the session
	poller      *netconn.Poller   // nil if sessions are never parked
	// writeLimit is the longest time that a client may leave the proxy's own replies unread; 0: no
	// limit.
	writeLimit time.Duration
	// proto is the protocol, 2 or 3, of the last reply to a lock server's client. writer.mu guards
	// it.
	proto int

	// These fields belong to the session's goroutine. CLIENT REPLY sets replyMode.
	replyMode track.ReplyMode
	// lastReplyless is set if the last command that was forwarded gets no reply.
	lastReplyless bool

	// mayBlock is set if a command that may block was forwarded since the upstream last had no
	// reply pending. The session's goroutine sets it.
	mayBlock atomic.Bool

	// modeUnverified is set if the upstream sent a redirect while its mode was unknown.
	modeUnverified atomic.Bool

	// readBuf belongs to the reply copier, from startCopier until the copier ends.
	readBuf netconn.PooledBuffer // conn reads into it

	// nodes translates the addresses of a cluster's nodes; nil if the upstream is no cluster.
	nodes *nodeAddresses

	writer *clientWriter // to the client; its mu guards the following fields, too

	// conn is the connection to the upstream, nil if it was never made; connID is its number. Only
	// the session's goroutine writes them, with writer.mu held, so it may read them without the
	// lock.
	conn   *netconn.Conn
	connID uint16
	term   uint64 // the upstream's term when the connection was made
	// outdated is set if the connection was ended because the upstream is another server now.
	outdated bool
	// tracker knows the connection's state, and the replies that are expected.
	tracker       *track.Tracker
	stateful      bool     // the client may have changed the state of its connection
	deliveries    uint64   // counts writes of replies to the client
	partialAnswer []byte   // the part that has arrived of a reply to an internal command
	answers       [][]byte // whole replies to internal commands
	// answerErr is the reason why replies to internal commands cannot be used. internalReplyFailed
	// is set if the proxy closed the connection because such a reply did not come in time, or could
	// not be used.
	answerErr           error
	internalReplyFailed bool
	// lockTraffic tracks commands on lock keys, while the locks are at the upstream.
	lockTraffic lockTraffic
	// halfClosed is set if the client has half-closed, and the proxy has half-closed the connection
	// to the upstream.
	halfClosed bool
	// disconnected is set if the upstream's connection has ended, and end has run.
	disconnected bool
	// mustEnd is set if the client's connection must end, too.
	mustEnd bool
	// pauseRequested is set while the reply copier is asked to pause. paused is set from the
	// copier's end until resume restarts the copier.
	pauseRequested, paused bool

	copier sync.WaitGroup // the reply copier; the session's goroutine starts it and waits for it
}

// errStateLost ends a session whose client has lost state with the upstream's connection.
var errStateLost = errors.New("the client's connection to the upstream is lost")

func newRelay(
	shared *serverState, client relayClient, writer *clientWriter, activity *netconn.Activity, poller *netconn.Poller,
	nodes *nodeAddresses,
) *relay {
	r := &relay{
		upstream: shared.opts.Upstream, serverState: shared, client: client, writer: writer, activity: activity, poller: poller,
		nodes: nodes,
	}
	if r.upstream == nil {
		r.writeLimit, r.tracker = writeTimeout, &shared.lockServerTracker
		return r
	}
	tracker := track.NewTracker(r.upstream.DB(), r.upstream.LoginCommand() != nil)
	r.tracker = &tracker
	return r
}

// noteRedirect records that the upstream has sent a redirect.
func (r *relay) noteRedirect(kind string) {
	r.serverState.countRedirect(kind)
	r.modeUnverified.Store(r.upstream.ModeUnknown())
}

// withoutRedirect replaces or translates a redirect in a whole reply.
func (r *relay) withoutRedirect(answer []byte) []byte {
	var translator redirect.Nodes
	if r.nodes != nil {
		translator = r.nodes
	}
	replacement, kind := redirect.Replace(answer, translator)
	if kind != "" {
		r.noteRedirect(kind)
	}
	return replacement
}

func (r *relay) isDisconnected() bool {
	r.writer.mu.Lock()
	defer r.writer.mu.Unlock()
	return r.disconnected
}

// lostErr returns errStateLost if the client's connection must end.
func (r *relay) lostErr() error {
	r.writer.mu.Lock()
	defer r.writer.mu.Unlock()
	if r.mustEnd {
		return errStateLost
	}
	return nil
}

// expect records the expected replies to commands about to be sent: plainCount replies that change
// no state and, if stateReply is not nil, a reply that may change it. It returns false if the
// connection has ended.
func (r *relay) expect(plainCount int, stateReply *track.ExpectedReply) bool {
	r.writer.mu.Lock()
	defer r.writer.mu.Unlock()
	if r.disconnected {
		return false
	}
	if plainCount > 0 {
		r.tracker.ExpectPlain(plainCount)
	}
	if stateReply != nil {
		r.tracker.Expect(*stateReply)
		r.stateful = r.stateful || stateReply.Kind != track.InternalCommand
	}
	return true
}

// maxAwaited limits the entries for pending replies to commands that require a decision, because the
// proxy holds these entries in memory even if the client reads no replies.
const maxAwaited = 1 << 14

// hasTooManyAwaited reports whether so many replies are pending that the client must wait for them.
func (r *relay) hasTooManyAwaited() bool {
	r.writer.mu.Lock()
	defer r.writer.mu.Unlock()
	return r.tracker.AwaitedReplies.EntryCount() >= maxAwaited
}

// count counts, for the metrics, the commands whose replies were passed to expect.
func (r *relay) count(plainCount int, stateReply *track.ExpectedReply) {
	if stateReply != nil {
		plainCount++
	}
	if plainCount > 0 { // otherwise the bytes continue a frame
		r.serverState.proxyState.traffic.commands.Add(int64(plainCount))
	}
}

// expectStateChange records the expected reply to a command that may change the connection's state.
// It returns false if the connection has ended.
func (r *relay) expectStateChange(s track.ExpectedReply) bool {
	r.writer.mu.Lock()
	defer r.writer.mu.Unlock()
	r.stateful = true
	if s.N != 0 || s.Kind == track.Subscribe {
		r.tracker.Expect(s)
	}
	return !r.disconnected
}

// cancelLast expects one reply fewer: the proxy will not send the rest of the last command.
func (r *relay) cancelLast() {
	r.writer.mu.Lock()
	defer r.writer.mu.Unlock()
	r.tracker.AwaitedReplies.CancelLast()
	r.writer.signal()
}

// recordReplyless updates the state for a command that may change it, but gets no reply.
func (r *relay) recordReplyless(s track.ExpectedReply) {
	r.writer.mu.Lock()
	defer r.writer.mu.Unlock()
	r.stateful = true
	r.tracker.State.RecordReplyless(s)
}

// updateState updates the connection's state after an internal command.
func (r *relay) updateState(update func(*track.State)) {
	r.writer.mu.Lock()
	defer r.writer.mu.Unlock()
	update(&r.tracker.State)
}

// state returns a copy of the connection's state.
func (r *relay) state() track.State {
	r.writer.mu.Lock()
	defer r.writer.mu.Unlock()
	return r.tracker.State
}

// send forwards bytes. If that fails, the reply copier handles the end of the connection.
func (r *relay) send(p []byte) {
	if len(p) > 0 {
		n, _ := r.conn.Write(p)
		r.serverState.proxyState.traffic.bytesToUpstream.Add(int64(n))
	}
}

// settled reports whether no reply is pending or being written. The caller must hold writer.mu.
func (r *relay) settled() bool {
	return !r.writer.writing && (r.disconnected || r.tracker.Settled() || r.tracker.State.Stream)
}

func (r *relay) isSettled() bool {
	r.writer.mu.Lock()
	defer r.writer.mu.Unlock()
	return r.settled()
}

// waitSettled waits until the upstream has answered everything, or ctx ends.
func (r *relay) waitSettled(ctx context.Context) error {
	r.writer.mu.Lock()
	defer r.writer.mu.Unlock()
	return r.writer.wait(ctx, r.settled)
}

// writeOwnReplies writes the proxy's own replies to the client, between two replies of the
// upstream, and returns the number of bytes that the client's socket accepted. It returns
// errStateLost if the upstream's stream ended within a reply, or carries no replies. Without an
// upstream, the client speaks protocol proto from now on.
func (r *relay) writeOwnReplies(out *command.Reply, proto int) (n int, err error) {
	r.writer.mu.Lock()
	defer r.writer.mu.Unlock()
	if err := r.waitWhileDelivering(context.Background(), r.isBetweenReplies); err != nil {
		return 0, err
	}
	if r.tracker.InsideReply() || r.tracker.State.Stream {
		return 0, errStateLost
	}
	r.proto = proto
	r.limitWriteIf(r.tracker.State.GetsMessages())
	out.UpdateValidity()
	return r.writer.writeReplies(r.writeLimit, out.Bytes)
}

// isBetweenReplies reports whether the client is between two replies, or will get no further reply.
// The caller must hold writer.mu.
func (r *relay) isBetweenReplies() bool {
	return !r.writer.writing && (!r.tracker.InsideReply() || r.disconnected || r.tracker.State.Stream)
}

// takesPushes reports whether the client speaks RESP3, and gets replies.
func (r *relay) takesPushes() bool {
	r.writer.mu.Lock()
	defer r.writer.mu.Unlock()
	return r.speaksRESP3() && !r.tracker.State.Stream
}

// speaksRESP3 reports whether the client speaks RESP3. The caller must hold writer.mu.
func (r *relay) speaksRESP3() bool {
	if r.upstream == nil {
		return r.proto == 3
	}
	return r.tracker.State.Proto == 3
}

// push writes an out-of-band message to the client, between two replies. take returns the message
// when it can be written. push does nothing if the client speaks RESP2.
func (r *relay) push(ctx context.Context, take func() []byte) error {
	r.writer.mu.Lock()
	defer r.writer.mu.Unlock()
	if err := r.writer.wait(ctx, r.isBetweenReplies); err != nil {
		return err
	}
	if r.tracker.InsideReply() || r.tracker.State.Stream || !r.speaksRESP3() {
		return nil
	}
	message := take()
	if len(message) == 0 {
		return nil
	}
	r.limitWriteIf(true)
	_, err := r.writer.write(message)
	return err
}

// limitWriteIf limits the time that the client may take for the next write, if limited is set.
// Redis waits for clients that asked for their replies, but not for subscribers. The caller must
// hold writer.mu.
func (r *relay) limitWriteIf(limited bool) {
	if limited {
		r.writer.limitWrite(r.serverState.times.stall)
		return
	}
	r.writer.limitWrite(0)
}

// halfClose half-closes the connection to the upstream, as the client has done. It waits until the
// upstream has sent its last reply and closed, as long as the upstream sends or the client reads.
func (r *relay) halfClose(ctx context.Context) {
	r.writer.mu.Lock()
	defer r.writer.mu.Unlock()
	if r.conn == nil || !r.disconnected && !r.conn.CloseWrite() {
		return
	}
	r.halfClosed = true
	_ = r.waitWhileDelivering(ctx, func() bool { return r.disconnected && !r.writer.writing })
}

// waitWhileDelivering waits like clientWriter.wait. It gives up if no reply was written to the
// client for the stall time. The caller must hold writer.mu.
func (r *relay) waitWhileDelivering(ctx context.Context, condition func() bool) error {
	if condition() {
		return nil
	}
	for {
		delivered := r.deliveries
		timeoutCtx, cancel := context.WithTimeout(ctx, r.serverState.times.stall)
		err := r.writer.wait(timeoutCtx, condition)
		cancel()
		if err == nil || r.deliveries == delivered || ctx.Err() != nil {
			return err
		}
	}
}

// closeUpstreamConn ends the connection to the upstream, and with it the client's connection. The
// proxy calls it when it no longer knows the connection's state, or the command to which the next
// reply belongs. For a plain socket it waits until the reply copier no longer writes, and disconnects
// a client that does not read for the stall time.
func (r *relay) closeUpstreamConn() {
	if r.conn == nil {
		return
	}
	unread := time.AfterFunc(r.serverState.times.stall, r.client.disconnect)
	defer unread.Stop()
	_ = r.conn.Close()
}

// close ends both connections, and waits for the reply copier, which may be writing to the client.
func (r *relay) close() {
	_ = r.writer.rawConn.Close()
	if r.conn != nil {
		_ = r.conn.Close()
	}
	r.copier.Wait()
}

// lockTraffic tracks the commands on lock keys that a relay sends to the upstream. The relay's
// writer.mu guards it.
type lockTraffic struct {
	// answered is set if the upstream has answered a command on the connection.
	answered bool
	// confirmedConn is the number of the connection over which such commands may go. After the
	// upstream had answered on it, a majority of the masters reported the locks at the upstream.
	confirmedConn uint16
	// reportedIdleConn is the number of the connection that was reported to be at rest in a move. A
	// transaction on it may continue, but gets no command on a lock key while the locks move.
	reportedIdleConn uint16
	// sending is set if a command is about to be sent, or was sent in part. onMasters is set while
	// a command runs on the masters.
	sending, onMasters bool
	// mayBlock is set if a command that may block was sent, replyless if a command that gets no
	// reply was sent, or one whose reply cannot be matched with it.
	mayBlock, replyless bool
	// watching is set if a WATCH was sent.
	watching bool
	// watchMoved is set if the locks may have moved since the WATCH; movingEra is the era in which
	// that move began. Goroutines write watchMoved with writer.mu held. The session's goroutine
	// reads it without this lock.
	watchMoved atomic.Bool
	movingEra  int
}

// address returns the local address of the connection to the upstream, if there is one.
func (r *relay) address() string {
	r.writer.mu.Lock()
	defer r.writer.mu.Unlock()
	if r.conn == nil {
		return ""
	}
	return r.conn.LocalAddr()
}

// waitingAddr returns the local address of the connection to the upstream, if a command on it may
// wait for other clients.
func (r *relay) waitingAddr() string {
	r.writer.mu.Lock()
	defer r.writer.mu.Unlock()
	if r.conn == nil || r.disconnected || !r.mayBlock.Load() || r.tracker.Settled() {
		return ""
	}
	return r.conn.LocalAddr()
}

// parkConn makes the poller wait for events of the upstream's connection, if the reply copier has
// paused.
func (r *relay) parkConn() error {
	if !r.paused {
		return nil
	}
	return r.conn.Park()
}

// handleStreamEnd handles the end of the upstream's stream on connection connID, which the poller
// reports.
func (r *relay) handleStreamEnd(connID uint16) {
	r.writer.mu.Lock()
	defer r.writer.mu.Unlock()
	if r.connID == connID && r.conn != nil {
		r.conn.End()
	}
}
