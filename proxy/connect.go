package proxy

import (
	"context"
	"net"

	"redlock-proxy/proxy/track"
	"redlock-proxy/proxy/upstream"
	"redlock-proxy/proxy/wire"
)

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

// use takes up a new connection, made in this term of the upstream or a later one.
func (r *relay) use(conn net.Conn, term uint64) {
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	r.term, r.left = term, false
	r.gone, r.asked, r.answers, r.spoilt = false, nil, nil, nil
	r.carries.heard, r.carries.blocks, r.carries.unsure, r.carries.watches = false, false, false, false
	r.tracker.Detours.On = r.shared.opts.Table.LockKeys().Any()
	r.tracker.Begin()
	r.dial = max(1, r.dial+1)
	r.wire = wire.New(conn, &r.loan, r.activity)
	r.wire.Join(r.poller, wire.TagOf(r.client.number(), r.dial))
}

// leave ends a connection to what was the upstream before it failed over, as if that had: the old
// one may be frozen, or cut off from all others, and would never do so. What it has answered is
// still brought.
func (r *relay) leave() {
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	if r.wire != nil && !r.gone && r.term != r.up.Term() {
		r.left = true
		r.wire.Abandon()
	}
}

// forward connects, if that is not done, and sends frames, the last one maybe in part. It awaits so
// many replies that change nothing, and one that may. goesOn: they begin within a frame, whose
// beginning was sent; the rest of it would be another command on a new connection. It reports false
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
