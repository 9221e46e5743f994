package proxy

import (
	"context"
	"errors"
	"io"
	"runtime/debug"
	"time"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/lockkeys/tracking"
	"redlock-proxy/internal/resp"
	"redlock-proxy/proxy/login"
	"redlock-proxy/proxy/track"
)

// run serves the client until it leaves, errs, or ctx ends, or until it is parked. A
// panic costs this client its connection, and no other.
func (s *session) run(ctx context.Context) (parked bool) {
	defer func() {
		if !parked {
			s.close()
		}
	}()
	defer func() {
		if p := recover(); p != nil {
			s.shared.opts.Logger.Error("a session failed", "client", s.client.Addr, "panic", p, "stack", string(debug.Stack()))
			s.out.Undelivered()
		}
	}()
	if !s.entered {
		if s.enter(ctx) != nil {
			return false
		}
		s.entered, s.acceptedWith = true, nil
	}
	s.resume(ctx)
	own, end := context.WithCancelCause(ctx) // one that no other session waits on: each wait locks its channel
	defer end(nil)
	err := s.serve(own)
	for errors.Is(err, errAtRest) {
		if s.park(ctx) {
			return true
		}
		err = s.serve(own)
	}
	if protocol, ok := errors.AsType[*resp.RequestError](err); ok {
		s.client.Refuse("ERR "+protocol.Error(), &s.out)
	}
	if errors.Is(err, resp.ErrTLS) {
		s.shared.turned.warn(time.Now(), "a client speaks TLS, which this port does not (tls-cert)", "client", s.client.Addr.String())
	}
	if !errors.Is(err, errClientLeft) {
		_ = s.flush()
	}
	s.out.Undelivered()
	s.partFromUpstream(ctx, err)
	return false
}

// serve serves a client: what is not the proxy's own is forwarded, as the bytes came, or, without
// an upstream, refused. A command of the proxy's own is a barrier: it runs when the upstream has
// answered all that was sent before, and what follows is sent when it is done, so that a pipeline
// means the same as on one server. It returns io.EOF when the client has left.
func (s *session) serve(ctx context.Context) error {
	d := newDispatcher(s)
	for !s.client.Closing {
		err := d.scan(ctx)
		switch {
		case err != nil:
		case d.special:
			err = d.command(ctx)
		default:
			err = d.read(ctx)
		}
		if err == nil && len(d.out.Bytes) > maxPending {
			err = s.flush()
		}
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

// partFromUpstream waits for what the client, which sends no more, still is to get.
func (s *session) partFromUpstream(ctx context.Context, err error) {
	switch {
	case s.relay.up == nil:
	case s.ending.Load():
		_ = s.relay.settle(ctx)
	case errors.Is(err, io.EOF):
		s.relay.halfClose(ctx)
	}
}

func (s *session) close() {
	s.relay.close()
	tracking.Of(&s.client).Close()
	s.subscriber.Load().Close()
	s.in.close()
}

// scan forwards what has been read, up to the next command that is not just forwarded. It never
// reads.
func (d *dispatcher) scan(ctx context.Context) error {
	for !d.special {
		ev := resp.FrameMore
		found, err := d.keys.seek(ctx)
		if found == nothing && err == nil {
			ev, err = d.keys.event()
		}
		switch {
		case err != nil:
			d.bad, d.special = err, true
		case found == undecided && d.auth.mustCheck():
			d.holding, d.special = true, true
		case found == undecided:
			return d.sender.pass(ctx, d.in.frame)
		case found == stays, ev == resp.FrameName && d.isSpecial():
			d.special = true
		case found == passes:
			if d.sender.passOn(d.sender.count()); d.keys.search.whole {
				d.endFrame()
			}
		case ev == resp.FrameName:
			d.sees()
		case ev == resp.FrameEmpty && d.isLockServer():
			d.in.skip()
		case ev == resp.FrameEnd, ev == resp.FrameEmpty:
			d.endFrame()
		case d.sender.passing:
			d.keys.keepSent()
			return d.sender.pass(ctx, d.in.scanned)
		default:
			return d.sender.pass(ctx, d.in.frame)
		}
	}
	return nil
}

// sees looks at a command that is forwarded, whose name was just scanned.
func (d *dispatcher) sees() {
	d.keys.suspects()
	if !d.keys.begins() { // else its keys decide, in seek
		d.sender.passOn(d.sender.count())
	}
}

// isSpecial reports whether the command whose name was just scanned is one of the
// proxy's own, or one whose answer must be learned from.
func (d *dispatcher) isSpecial() bool {
	if d.isLockServer() {
		return true
	}
	name, long := d.in.scanner.Name()
	d.session.who.Gate.Renew(d.session.shared.settings().ClientPassword)
	if d.client.Transaction.Open || d.session.who.Closed() || d.relay.doubtful.Load() {
		return true
	}
	if long || d.table.Lookup(name) == nil && track.Name(name) == "" {
		if track.MayBlock(name) {
			d.relay.blocking.Store(true)
		}
		return false
	}
	return true
}

func (d *dispatcher) endFrame() {
	d.keys.sawWhole()
	if d.carries {
		d.carries = false
		d.relay.carried()
	}
	d.sender.endFrame()
	d.forgetFrame()
}

// read flushes the replies of the proxy's own, and forwards what comes until
// something special does. At a lock server what is brief is carried out as it comes, so that the
// system need not be asked each time whether there is more: see wire.Conn.Pump.
func (d *dispatcher) read(ctx context.Context) error {
	if err := d.session.flush(); err != nil {
		return err
	}
	if err := d.in.makeRoom(); err != nil {
		return err
	}
	var failed error
	err := d.in.wire.Pump(func(n int) bool {
		d.in.end += n
		for done := true; done && failed == nil; {
			if failed = d.scan(ctx); failed == nil {
				done, failed = d.briefly(ctx)
			}
		}
		if failed == nil {
			failed = d.session.flush()
		}
		if failed != nil || d.special {
			return false
		}
		failed = d.in.makeRoom()
		return failed == nil
	})
	if failed != nil {
		return failed
	}
	return d.session.endOfInput(err)
}

// briefly carries out the command whose name was scanned, at a lock server, if it is brief and was
// read whole.
func (d *dispatcher) briefly(ctx context.Context) (done bool, err error) {
	if !d.special || d.bad != nil || !d.mayHurry() || ctx.Err() != nil {
		return false, nil
	}
	name, _ := d.in.scanner.Name()
	cmd := d.table.Lookup(name)
	if cmd == nil || cmd.Brief == nil {
		return false, nil
	}
	ev, err := d.in.eventWithin(maxFrame)
	if d.keys.search.whole = ev == resp.FrameEnd; err != nil || !d.keys.search.whole {
		return false, err
	}
	words, err := d.in.words()
	if err != nil || !cmd.Brief(words) {
		return false, err
	}
	d.special = false
	err = d.runAlone(ctx, cmd, words)
	d.in.skip()
	d.forgetFrame()
	return true, err
}

// mayHurry reports whether nothing is to be looked at before a command is carried out.
func (d *dispatcher) mayHurry() bool {
	return d.isLockServer() && d.session.who.Own == nil && !d.client.Transaction.Open && len(d.out.Bytes) <= maxPending
}

// command deals with a command that is special.
func (d *dispatcher) command(ctx context.Context) error {
	d.special = false
	switch {
	case d.bad != nil:
		return d.broken(ctx, d.bad)
	case d.holding:
		d.holding = false
		return d.auth.limitHeld(ctx)
	case d.session.who.Own != nil && d.session.who.Own.Ended():
		return errOver
	}
	name, long := d.in.scanner.Name()
	cmd, follow := d.table.Lookup(name), track.Name(name)
	if err := d.sender.pass(ctx, d.in.frame); err != nil {
		return err
	}
	if d.session.who.Closed() && !login.MayCome(cmd, follow) {
		return d.turnAway(ctx)
	}
	if d.isLockServer() && cmd == nil && (long || d.table.Keyed(name) == nil) {
		d.client.Transaction.Abort()
		return d.sender.discard(func(words [][]byte) { d.client.Refuse(syntax.UnknownCommand(words), d.out) })
	}
	whole, err := d.keys.search.whole, error(nil)
	if !whole {
		whole, err = d.auth.collect(ctx)
	}
	var words [][]byte
	switch {
	case err != nil:
	case !whole && d.session.who.Closed():
		return d.turnAway(ctx)
	case !whole:
		return d.tooLong(ctx, cmd, follow)
	default:
		words, err = d.in.words()
	}
	if _, ok := errors.AsType[*resp.RequestError](err); ok {
		return errors.Join(d.asker.settle(ctx), err)
	}
	if err != nil {
		return err
	}
	left, err := d.auth.check(ctx, cmd, follow, words)
	if left != nil && err == nil {
		err = d.asker.askMode(ctx)
	}
	if left != nil && err == nil {
		err = d.route(ctx, cmd, follow, left)
	}
	d.in.skip()
	d.forgetFrame()
	return err
}

// turnAway throws a frame away that a client sent which has still to log in.
func (d *dispatcher) turnAway(ctx context.Context) error {
	if err := d.asker.settle(ctx); err != nil {
		return err
	}
	d.keys.search = search{}
	return d.sender.discard(func([][]byte) { d.client.Refuse(login.NoAuth, d.out) })
}

// broken ends the session of a client whose bytes are no request: with the answers
// to what came before. Of the frame that is broken no more is sent.
func (d *dispatcher) broken(ctx context.Context, cause error) error {
	d.sender.forgo()
	return errors.Join(d.sender.pass(ctx, d.in.frame), d.asker.settle(ctx), cause)
}
