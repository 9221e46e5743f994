package proxy

import (
	"context"
	"errors"
	"io"
	"runtime/debug"
	"time"

	"redlock-proxy/commands"
	"redlock-proxy/commands/lockkeys/tracking"
	"redlock-proxy/commands/locks/keepalive"
	"redlock-proxy/internal/resp"
	"redlock-proxy/proxy/login"
	"redlock-proxy/proxy/track"
)

// run serves the client until it disconnects, fails or is parked, or ctx ends. A panic ends only
// this client's connection.
func (s *session) run(ctx context.Context) (parked bool) {
	defer func() {
		if !parked {
			s.close()
		}
	}()
	defer func() {
		if p := recover(); p != nil {
			s.serverState.opts.Logger.Error("internal error in a session; report this line", "client", s.client.Addr,
				"panic", p, "stack", string(debug.Stack()))
			s.out.UndoUndelivered()
		}
	}()
	if !s.admitted {
		if s.admit(ctx) != nil {
			return false
		}
		s.admitted, s.acceptSettings = true, nil
	}
	s.resume(ctx)
	// Each session has its own context: a wait locks the context's channel, so sessions that share
	// a context would delay each other.
	sessionCtx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	err := s.serve(sessionCtx)
	for errors.Is(err, errIdle) {
		if s.park(ctx) {
			return true
		}
		err = s.serve(sessionCtx)
	}
	s.stopRenewal()
	if requestErr, ok := errors.AsType[*resp.RequestError](err); ok {
		s.client.Refuse("ERR "+requestErr.Error(), &s.out)
	}
	if errors.Is(err, resp.ErrTLS) {
		s.serverState.proxyState.clientLog.Warn(time.Now(), "client turned away: it speaks TLS, but this port does not (tls-cert)",
			"client", s.client.Addr.String())
	}
	if !errors.Is(err, errClientDisconnected) {
		_ = s.flush()
	}
	s.out.UndoUndelivered()
	s.finishUpstream(ctx, err)
	return false
}

// serve serves a client until it disconnects, and then returns io.EOF. It runs the proxy's own
// commands, and forwards all other commands as their bytes arrive. Without an upstream, it refuses
// those other commands. Each of the proxy's own commands is a barrier, so that a pipeline means the
// same as on one server. The command runs when the upstream has answered all earlier commands. The
// proxy sends later commands when that command is done.
func (s *session) serve(ctx context.Context) error {
	d := newDispatcher(s)
	for !s.client.Closing {
		err := d.scan(ctx)
		switch {
		case err != nil:
		case d.needsDecision:
			err = d.handleCommand(ctx)
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

// finishUpstream waits for the upstream's pending replies, if the session must end or the client
// has half-closed.
func (s *session) finishUpstream(ctx context.Context, err error) {
	switch {
	case s.relay.upstream == nil:
	case s.ending.Load():
		_ = s.relay.waitSettled(ctx)
	case errors.Is(err, io.EOF):
		s.relay.halfClose(ctx)
	}
}

func (s *session) close() {
	s.relay.close()
	tracking.Of(&s.client).Close()
	keepalive.Of(&s.client).Close()
	s.subscriber.Load().Close()
	s.in.close()
}

// scan forwards the bytes that were read, up to the next command that needs a decision. It never
// reads from the client.
func (d *dispatcher) scan(ctx context.Context) error {
	for !d.needsDecision {
		ev := resp.FrameMore
		result, err := d.keySearch.seek(ctx)
		if result == noDecision && err == nil {
			ev, err = d.keySearch.nextEvent()
		}
		switch {
		case err != nil:
			d.requestErr, d.needsDecision = err, true
		case result == needsMore && d.auth.mustCheckLogin():
			d.checkingLogin, d.needsDecision = true, true
		case result == needsMore:
			return d.sender.sendUpTo(ctx, d.in.frameStart)
		case result == notForwardable, ev == resp.FrameName && d.requiresDecision():
			d.needsDecision = true
		case result == forwardable:
			if d.sender.markForwarded(d.sender.countReply()); d.keySearch.search.whole {
				d.endFrame()
			}
		case ev == resp.FrameName:
			d.startForward()
		case ev == resp.FrameEmpty && d.isLockServer():
			d.in.skip()
		case ev == resp.FrameEnd, ev == resp.FrameEmpty:
			d.endFrame()
		case d.sender.forwarding:
			d.keySearch.keepSentPart()
			return d.sender.sendUpTo(ctx, d.in.scanEnd)
		default:
			return d.sender.sendUpTo(ctx, d.in.frameStart)
		}
	}
	return nil
}

// startForward handles a command that may be forwarded, whose name was just scanned.
func (d *dispatcher) startForward() {
	d.keySearch.markLockCandidate()
	if !d.keySearch.start() { // otherwise seek decides by the command's keys
		d.sender.markForwarded(d.sender.countReply())
	}
}

// requiresDecision reports whether the command whose name was just scanned needs more than
// forwarding. Such commands are the proxy's own, and commands whose replies may change the
// connection's state. In some states, such as a transaction at the proxy, each command requires a
// decision.
func (d *dispatcher) requiresDecision() bool {
	if d.isLockServer() {
		return true
	}
	name, nameTooLong := d.in.scanner.Name()
	d.session.login.PasswordLogin.SetPassword(d.session.serverState.settings().ClientPassword)
	if d.client.Transaction.Open || d.session.login.MustLogIn() || d.relay.modeUnverified.Load() {
		return true
	}
	if nameTooLong || d.table.Lookup(name) == nil && track.StateCommandName(name) == "" {
		if track.MayBlock(name) {
			d.relay.mayBlock.Store(true)
		}
		return false
	}
	return true
}

func (d *dispatcher) endFrame() {
	d.keySearch.inspect()
	if d.sendingLockCommand {
		d.sendingLockCommand = false
		d.relay.markLockCommandSent()
	}
	d.sender.endFrame()
	d.resetFrame()
}

// read flushes the proxy's own replies, and forwards bytes until a command that requires a decision
// arrives. At a lock server it also runs commands that do not wait, which saves system calls
// (netconn.Conn.ForEachRead).
func (d *dispatcher) read(ctx context.Context) error {
	if err := d.session.flush(); err != nil {
		return err
	}
	if err := d.in.makeRoom(); err != nil {
		return err
	}
	var runErr error
	err := d.in.conn.ForEachRead(func(n int) bool {
		d.in.readEnd += n
		for handled := true; handled && runErr == nil; {
			if runErr = d.scan(ctx); runErr == nil {
				handled, runErr = d.runImmediate(ctx)
			}
		}
		if runErr == nil {
			runErr = d.session.flush()
		}
		if runErr != nil || d.needsDecision {
			return false
		}
		runErr = d.in.makeRoom()
		return runErr == nil
	})
	if runErr != nil {
		return runErr
	}
	return d.session.endOfInput(err)
}

// runImmediate runs the command whose name was scanned, if the proxy is a lock server, and the
// command was read whole and does not wait.
func (d *dispatcher) runImmediate(ctx context.Context) (handled bool, err error) {
	if !d.needsDecision || d.requestErr != nil || !d.canRunImmediate() || ctx.Err() != nil {
		return false, nil
	}
	name, _ := d.in.scanner.Name()
	cmd := d.table.Lookup(name)
	if cmd == nil || cmd.RunsWithoutClient == nil {
		return false, nil
	}
	ev, err := d.in.nextEventWithin(maxFrame)
	if d.keySearch.search.whole = ev == resp.FrameEnd; err != nil || !d.keySearch.search.whole {
		return false, err
	}
	words, err := d.in.words()
	if err != nil || !cmd.RunsWithoutClient(words) {
		return false, err
	}
	d.needsDecision = false
	err = d.runAtLockServer(ctx, cmd, words)
	d.in.skip()
	d.resetFrame()
	return true, err
}

// canRunImmediate reports whether runImmediate can run a command without further checks.
func (d *dispatcher) canRunImmediate() bool {
	return d.isLockServer() && d.session.login.UserLogin == nil &&
		!d.client.Transaction.Open && len(d.out.Bytes) <= maxPending
}

// handleCommand handles a command that requires a decision.
func (d *dispatcher) handleCommand(ctx context.Context) error {
	d.needsDecision = false
	switch {
	case d.requestErr != nil:
		return d.endBadRequest(ctx, d.requestErr)
	case d.checkingLogin:
		d.checkingLogin = false
		return d.auth.limitUnauthenticated(ctx)
	case d.session.login.UserLogin != nil && d.session.login.UserLogin.HasEnded():
		return errStateLost
	}
	name, nameTooLong := d.in.scanner.Name()
	cmd, stateCmd := d.table.Lookup(name), track.StateCommandName(name)
	if err := d.sender.sendUpTo(ctx, d.in.frameStart); err != nil {
		return err
	}
	if d.session.login.MustLogIn() && !login.IsAllowedBeforeLogin(cmd, stateCmd) {
		return d.refuseNoAuth(ctx)
	}
	if d.isLockServer() && cmd == nil && (nameTooLong || d.table.KeyRule(name) == nil) {
		d.client.Transaction.Abort()
		return d.sender.discard(func(words [][]byte) { d.client.Refuse(commands.UnknownCommand(words), d.out) })
	}
	whole, err := d.keySearch.search.whole, error(nil)
	if !whole {
		whole, err = d.auth.collect(ctx)
	}
	var words [][]byte
	switch {
	case err != nil:
	case !whole && d.session.login.MustLogIn():
		return d.refuseNoAuth(ctx)
	case !whole:
		return d.handleTooLong(ctx, cmd, stateCmd)
	default:
		words, err = d.in.words()
	}
	if _, ok := errors.AsType[*resp.RequestError](err); ok {
		return errors.Join(d.asker.waitUpstream(ctx), err)
	}
	if err != nil {
		return err
	}
	rest, err := d.auth.check(ctx, cmd, stateCmd, words)
	if rest != nil && err == nil {
		err = d.asker.askMode(ctx)
	}
	if rest != nil && err == nil {
		err = d.route(ctx, cmd, stateCmd, rest)
	}
	d.in.skip()
	d.resetFrame()
	return err
}

// refuseNoAuth discards a frame of a client that has not logged in, and replies NOAUTH.
func (d *dispatcher) refuseNoAuth(ctx context.Context) error {
	if err := d.asker.waitUpstream(ctx); err != nil {
		return err
	}
	d.keySearch.search = search{}
	return d.sender.discard(func([][]byte) { d.client.Refuse(login.NoAuth, d.out) })
}

// endBadRequest ends the session of a client that sent invalid bytes, after the replies to earlier
// commands. It does not send the rest of the invalid frame.
func (d *dispatcher) endBadRequest(ctx context.Context, cause error) error {
	d.sender.cancelLast()
	return errors.Join(d.sender.sendUpTo(ctx, d.in.frameStart), d.asker.waitUpstream(ctx), cause)
}
