package proxy

import (
	"context"
	"errors"
	"io"
	"runtime/debug"
	"time"

	"redlock-proxy/commands"
	"redlock-proxy/commands/lockkeys/tracking"
	"redlock-proxy/internal/resp"
	"redlock-proxy/proxy/login"
	"redlock-proxy/proxy/track"
)

// run serves the client until it disconnects, fails or is parked, or ctx ends. A panic costs this
// client its connection, and no other client.
func (s *session) run(ctx context.Context) (parked bool) {
	defer func() {
		if !parked {
			s.close()
		}
	}()
	defer func() {
		if p := recover(); p != nil {
			s.shared.opts.Logger.Error("session failed", "client", s.client.Addr,
				"panic", p, "stack", string(debug.Stack()))
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
	own, end := context.WithCancelCause(ctx) // a context that no other session waits on: each wait locks its channel
	defer end(nil)
	err := s.serve(own)
	for errors.Is(err, errIdle) {
		if s.park(ctx) {
			return true
		}
		err = s.serve(own)
	}
	if protocol, ok := errors.AsType[*resp.RequestError](err); ok {
		s.client.Refuse("ERR "+protocol.Error(), &s.out)
	}
	if errors.Is(err, resp.ErrTLS) {
		s.shared.clientLog.warn(time.Now(), "client turned away: it speaks TLS, but this port does not (tls-cert)",
			"client", s.client.Addr.String())
	}
	if !errors.Is(err, errClientLeft) {
		_ = s.flush()
	}
	s.out.Undelivered()
	s.finishUpstream(ctx, err)
	return false
}

// serve serves a client until it disconnects, and then returns io.EOF. It forwards commands that
// are not the proxy's own as the bytes arrive; without an upstream it refuses them. A command of
// the proxy's own is a barrier, so that a pipeline means the same as on one server. It runs when
// the upstream has answered all earlier commands, and later commands are sent when it is done.
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

// finishUpstream waits for the replies that the client, which sends no more, is still to get.
func (s *session) finishUpstream(ctx context.Context, err error) {
	switch {
	case s.relay.up == nil:
	case s.ending.Load():
		_ = s.relay.waitSettled(ctx)
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

// scan forwards the bytes that were read, up to the next command that needs a decision. It never
// reads.
func (d *dispatcher) scan(ctx context.Context) error {
	for !d.special {
		ev := resp.FrameMore
		found, err := d.keys.seek(ctx)
		if found == noDecision && err == nil {
			ev, err = d.keys.event()
		}
		switch {
		case err != nil:
			d.requestErr, d.special = err, true
		case found == needsMore && d.auth.mustCheckLogin():
			d.checkingLogin, d.special = true, true
		case found == needsMore:
			return d.sender.pass(ctx, d.in.frame)
		case found == notForwardable, ev == resp.FrameName && d.isSpecial():
			d.special = true
		case found == forwardable:
			if d.sender.forwardFrame(d.sender.countReply()); d.keys.search.whole {
				d.endFrame()
			}
		case ev == resp.FrameName:
			d.startForward()
		case ev == resp.FrameEmpty && d.isLockServer():
			d.in.skip()
		case ev == resp.FrameEnd, ev == resp.FrameEmpty:
			d.endFrame()
		case d.sender.forwarding:
			d.keys.keepSent()
			return d.sender.pass(ctx, d.in.scanned)
		default:
			return d.sender.pass(ctx, d.in.frame)
		}
	}
	return nil
}

// startForward handles a command that may be forwarded, whose name was just scanned.
func (d *dispatcher) startForward() {
	d.keys.markSuspect()
	if !d.keys.start() { // else seek decides by its keys
		d.sender.forwardFrame(d.sender.countReply())
	}
}

// isSpecial reports whether the command whose name was just scanned is one of the proxy's own, or
// one whose reply may change the connection's state.
func (d *dispatcher) isSpecial() bool {
	if d.isLockServer() {
		return true
	}
	name, long := d.in.scanner.Name()
	d.session.login.Gate.Renew(d.session.shared.settings().ClientPassword)
	if d.client.Transaction.Open || d.session.login.Closed() || d.relay.modeUnverified.Load() {
		return true
	}
	if long || d.table.Lookup(name) == nil && track.FollowedName(name) == "" {
		if track.MayBlock(name) {
			d.relay.blocking.Store(true)
		}
		return false
	}
	return true
}

func (d *dispatcher) endFrame() {
	d.keys.inspect()
	if d.sendingLockCommand {
		d.sendingLockCommand = false
		d.relay.lockCommandSent()
	}
	d.sender.endFrame()
	d.forgetFrame()
}

// read flushes the proxy's own replies, and forwards what arrives until a special command does. At
// a lock server it runs brief commands as they arrive. That saves asking the system each time
// whether more bytes have arrived: see netconn.Conn.Pump.
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
				done, failed = d.runBrief(ctx)
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

// runBrief runs the command whose name was scanned, at a lock server, if it is brief and was read
// whole.
func (d *dispatcher) runBrief(ctx context.Context) (done bool, err error) {
	if !d.special || d.requestErr != nil || !d.canRunBrief() || ctx.Err() != nil {
		return false, nil
	}
	name, _ := d.in.scanner.Name()
	cmd := d.table.Lookup(name)
	if cmd == nil || cmd.RunsWithoutClient == nil {
		return false, nil
	}
	ev, err := d.in.eventWithin(maxFrame)
	if d.keys.search.whole = ev == resp.FrameEnd; err != nil || !d.keys.search.whole {
		return false, err
	}
	words, err := d.in.words()
	if err != nil || !cmd.RunsWithoutClient(words) {
		return false, err
	}
	d.special = false
	err = d.runAlone(ctx, cmd, words)
	d.in.skip()
	d.forgetFrame()
	return true, err
}

// canRunBrief reports whether a command can run without further checks.
func (d *dispatcher) canRunBrief() bool {
	return d.isLockServer() && d.session.login.Own == nil &&
		!d.client.Transaction.Open && len(d.out.Bytes) <= maxPending
}

// command handles a special command.
func (d *dispatcher) command(ctx context.Context) error {
	d.special = false
	switch {
	case d.requestErr != nil:
		return d.endBadRequest(ctx, d.requestErr)
	case d.checkingLogin:
		d.checkingLogin = false
		return d.auth.limitHeld(ctx)
	case d.session.login.Own != nil && d.session.login.Own.Ended():
		return errStateLost
	}
	name, long := d.in.scanner.Name()
	cmd, follow := d.table.Lookup(name), track.FollowedName(name)
	if err := d.sender.pass(ctx, d.in.frame); err != nil {
		return err
	}
	if d.session.login.Closed() && !login.IsAllowedBeforeLogin(cmd, follow) {
		return d.turnAway(ctx)
	}
	if d.isLockServer() && cmd == nil && (long || d.table.Keyed(name) == nil) {
		d.client.Transaction.Abort()
		return d.sender.discard(func(words [][]byte) { d.client.Refuse(commands.UnknownCommand(words), d.out) })
	}
	whole, err := d.keys.search.whole, error(nil)
	if !whole {
		whole, err = d.auth.collect(ctx)
	}
	var words [][]byte
	switch {
	case err != nil:
	case !whole && d.session.login.Closed():
		return d.turnAway(ctx)
	case !whole:
		return d.tooLong(ctx, cmd, follow)
	default:
		words, err = d.in.words()
	}
	if _, ok := errors.AsType[*resp.RequestError](err); ok {
		return errors.Join(d.asker.waitUpstream(ctx), err)
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

// turnAway discards a frame of a client that has not logged in.
func (d *dispatcher) turnAway(ctx context.Context) error {
	if err := d.asker.waitUpstream(ctx); err != nil {
		return err
	}
	d.keys.search = search{}
	return d.sender.discard(func([][]byte) { d.client.Refuse(login.NoAuth, d.out) })
}

// endBadRequest ends the session of a client whose bytes are no valid request, after the replies to
// earlier commands. It sends no more of the broken frame.
func (d *dispatcher) endBadRequest(ctx context.Context, cause error) error {
	d.sender.cancelLast()
	return errors.Join(d.sender.pass(ctx, d.in.frame), d.asker.waitUpstream(ctx), cause)
}
