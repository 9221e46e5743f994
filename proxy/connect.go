package proxy

import (
	"context"
	"net"

	"redlock-proxy/proxy/netconn"
	"redlock-proxy/proxy/track"
	"redlock-proxy/proxy/upstream"
)

// open connects to the upstream, unless the relay is connected. The client gets the error, too. If
// ctx ends, later writes to the upstream fail at once.
func (r *relay) open(ctx context.Context) error {
	if err := r.lostErr(); err != nil || r.wire != nil && !r.isGone() {
		return err
	}
	term := r.up.Term()
	conn, err := r.up.Connect(ctx)
	if err != nil {
		return err
	}
	if r.lockTraffic.sending { // set for a connection that is gone; the command may not go over another one
		_ = conn.Close()
		return r.up.Failure(upstream.ErrGone)
	}
	r.adoptConn(conn, term)
	if r.up.Term() != term {
		r.dropOutdated()
	}
	r.startCopier(ctx)
	return nil
}

// adoptConn makes conn, made in this term of the upstream or a later one, the relay's connection.
func (r *relay) adoptConn(conn net.Conn, term uint64) {
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	r.term, r.outdated = term, false
	r.gone, r.partialAnswer, r.answers, r.answerErr = false, nil, nil, nil
	r.lockTraffic.answered, r.lockTraffic.mayBlock = false, false
	r.lockTraffic.unanswered, r.lockTraffic.watching = false, false
	r.tracker.Redirects.On = r.shared.opts.Table.LockKeys().Any()
	r.tracker.Begin()
	r.dial = max(1, r.dial+1)
	r.wire = netconn.New(conn, &r.loan, r.activity)
	r.wire.Join(r.poller, netconn.TagOf(r.client.number(), r.dial))
}

// dropOutdated ends a connection to a server that is no longer the upstream, as if the server had
// closed it. The old server may be frozen or isolated, and would never close it. The client still
// gets the replies that have arrived.
func (r *relay) dropOutdated() {
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	if r.wire != nil && !r.gone && r.term != r.up.Term() {
		r.outdated = true
		r.wire.Abandon()
	}
}

// forward connects if necessary, and sends frames, the last one possibly in part. It expects plain
// replies that change no state and, if also is not nil, one that may. If continues is set, the
// first bytes continue a frame whose beginning was sent; on a new connection they would be another
// command. forward returns false if it sent nothing because the connection has ended.
func (r *relay) forward(
	ctx context.Context, frames []byte, plain int, also *track.Expected, continues bool,
) (sent bool, err error) {
	if continues && r.isGone() {
		return false, nil
	}
	dial := r.dial
	err = r.open(ctx)
	if continues && (r.dial != dial || r.isGone()) { // the connection ended just now
		return false, nil
	}
	if err != nil || !r.expect(plain, also) {
		return false, err
	}
	r.count(plain, also)
	r.send(frames)
	return true, nil
}
