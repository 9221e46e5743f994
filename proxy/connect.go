package proxy

import (
	"context"
	"net"

	"redlock-proxy/proxy/netconn"
	"redlock-proxy/proxy/track"
	"redlock-proxy/proxy/upstream"
)

// open connects to the upstream, unless the relay is connected. The caller may send the error to
// the client. If ctx ends, later writes to the upstream fail immediately.
func (r *relay) open(ctx context.Context) error {
	if err := r.lostErr(); err != nil || r.conn != nil && !r.isDisconnected() {
		return err
	}
	term := r.upstream.Term()
	conn, err := r.upstream.Connect(ctx)
	if err != nil {
		return err
	}
	if r.lockTraffic.sending { // the connection that the command needs has ended
		_ = conn.Close()
		return r.upstream.Failure(upstream.ErrDisconnected)
	}
	r.adoptConn(conn, term)
	if r.upstream.Term() != term {
		r.dropOutdatedConn()
	}
	r.startCopier(ctx)
	return nil
}

// adoptConn makes conn the relay's connection. upstreamTerm is the upstream's term shortly before
// conn was made.
func (r *relay) adoptConn(conn net.Conn, upstreamTerm uint64) {
	r.writer.mu.Lock()
	defer r.writer.mu.Unlock()
	r.term, r.outdated = upstreamTerm, false
	r.disconnected, r.partialAnswer, r.answers, r.answerErr = false, nil, nil, nil
	r.lockTraffic.answered, r.lockTraffic.mayBlock = false, false
	r.lockTraffic.replyless, r.lockTraffic.watching = false, false
	r.tracker.Redirects.Enabled = r.serverState.opts.Table.LockKeys().HasPatterns() || r.nodes != nil
	if r.nodes != nil {
		r.tracker.Redirects.Nodes = r.nodes
	}
	r.tracker.Begin()
	r.connID = max(1, r.connID+1)
	r.conn = netconn.New(conn, &r.readBuf, r.activity)
	r.conn.Join(r.poller, netconn.TagOf(r.client.clientID(), r.connID))
}

// dropOutdatedConn ends a connection to a server that is no longer the upstream, as if that server
// had closed it. A frozen or isolated server would never close it. The client still gets the
// replies that have arrived.
func (r *relay) dropOutdatedConn() {
	r.writer.mu.Lock()
	defer r.writer.mu.Unlock()
	if r.conn != nil && !r.disconnected && r.term != r.upstream.Term() {
		r.outdated = true
		r.conn.EndReads()
	}
}

// forward connects if necessary, and sends frames, the last one possibly in part. It expects
// plainCount replies that change no state and, if stateReply is not nil, a reply that may change
// it. If continues is set, the first bytes continue a frame whose beginning was sent; on a new
// connection they would be another command. sent is false if the connection has ended.
func (r *relay) forward(
	ctx context.Context, frames []byte, plainCount int, stateReply *track.ExpectedReply, continues bool,
) (sent bool, err error) {
	if continues && r.isDisconnected() {
		return false, nil
	}
	connID := r.connID
	err = r.open(ctx)
	if continues && (r.connID != connID || r.isDisconnected()) { // the connection ended just now
		return false, nil
	}
	if err != nil || !r.expect(plainCount, stateReply) {
		return false, err
	}
	r.count(plainCount, stateReply)
	r.send(frames)
	return true, nil
}
