package proxy

import (
	"context"
	"errors"
	"io"

	"redlock-proxy/commands"
	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/command"
	"redlock-proxy/internal/resp"
	"redlock-proxy/proxy/login"
	"redlock-proxy/proxy/track"
)

// serve serves a client: what is not the proxy's own is forwarded, as the bytes came, or, without an upstream, refused. A command of the
// proxy's own is a barrier: it runs when the upstream has answered all that was sent before, and
// what follows is sent when it is done, so that a pipeline means the same as on
// one server. It returns io.EOF when the client has left.
func (s *session) serve(ctx context.Context) error {
	f := newForwarding(s)
	for !s.client.Closing {
		err := f.scan(ctx)
		switch {
		case err != nil:
		case f.special:
			err = f.command(ctx)
		default:
			err = f.read(ctx)
		}
		if err == nil && len(f.out.Bytes) > maxPending {
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

// forwarding is how far a session has come in forwarding what it has scanned, and what becomes of commands that are not just forwarded. It belongs to
// the session's goroutine.
type forwarding struct {
	session *session
	relay   *relay
	in      *input
	out     *command.Reply
	client  *command.Client
	table   *commands.Table

	asking  asking
	sending sending
	keys    keySearch
	login   checking
	locks   carrying

	special bool  // the name of a command was scanned that is not just forwarded, or no request
	bad     error // why the bytes are no request, or not one that is forwarded
	holding bool  // whether the client has logged in must be found out before more of the frame is read
	carries bool  // the current frame is a command on lock keys that is sent in parts
}

func newForwarding(s *session) *forwarding {
	f := &forwarding{session: s, relay: s.relay, in: s.in, out: &s.out, client: &s.client, table: s.table, asking: asking{session: s, relay: s.relay}}
	f.sending = sending{session: s, relay: s.relay, asking: &f.asking, in: s.in, out: &s.out, client: &s.client}
	f.keys = keySearch{in: s.in, table: s.table, who: &s.who, routes: s.table.LockKeys().Any()}
	f.login = checking{session: s, relay: s.relay, asking: &f.asking, sending: &f.sending, in: s.in, client: &s.client}
	f.locks = carrying{relay: s.relay, asking: &f.asking, client: &s.client, table: s.table}
	if !f.isLockServer() { // there the masters alone say where the locks are
		f.locks.places, f.locks.unmoved = s.server.opts.Places, s.server.opts.Unmoved
	}
	return f
}

// isLockServer reports whether there is no upstream: what is not carried out here is an error.
func (f *forwarding) isLockServer() bool { return f.relay.up == nil }

// scan forwards what has been read, up to the next command that is not just forwarded. It never reads.
func (f *forwarding) scan(ctx context.Context) error {
	for !f.special {
		ev := resp.FrameMore
		found, err := f.keys.seek(ctx)
		if found == nothing && err == nil {
			ev, err = f.keys.event()
		}
		switch {
		case err != nil:
			f.bad, f.special = err, true
		case found == undecided && f.login.mustCheck():
			f.holding, f.special = true, true
		case found == undecided:
			return f.sending.pass(ctx, f.in.frame)
		case found == stays, ev == resp.FrameName && f.isSpecial():
			f.special = true
		case found == passes:
			if f.sending.passOn(f.sending.count()); f.keys.whole {
				f.endFrame()
			}
		case ev == resp.FrameName:
			f.sees()
		case ev == resp.FrameEmpty && f.isLockServer():
			f.in.skip()
		case ev == resp.FrameEnd, ev == resp.FrameEmpty:
			f.endFrame()
		case f.sending.passing:
			f.keys.keepSent()
			return f.sending.pass(ctx, f.in.scanned)
		default:
			return f.sending.pass(ctx, f.in.frame)
		}
	}
	return nil
}

// sees looks at a command that is forwarded, whose name was just scanned.
func (f *forwarding) sees() {
	f.keys.suspects()
	if !f.keys.begins() { // else its keys decide, in seek
		f.sending.passOn(f.sending.count())
	}
}

// isSpecial reports whether the command whose name was just scanned is one of the
// proxy's own, or one whose answer must be learned from.
func (f *forwarding) isSpecial() bool {
	if f.isLockServer() {
		return true
	}
	name, long := f.in.scanner.Name()
	f.session.who.Gate.Renew(f.session.server.settings().ClientPassword)
	if f.client.Transaction.Open || f.session.who.Closed() || f.relay.doubtful.Load() {
		return true
	}
	if long || f.table.Lookup(name) == nil && track.Name(name) == "" {
		if track.MayBlock(name) {
			f.relay.blocking.Store(true)
		}
		return false
	}
	return true
}

func (f *forwarding) endFrame() {
	f.keys.sawWhole()
	if f.carries {
		f.carries = false
		f.relay.carried()
	}
	f.sending.endFrame()
	f.forgetFrame()
}

// forgetFrame ends what holds for one frame.
func (f *forwarding) forgetFrame() {
	f.in.frame = f.in.scanned
	f.keys.search = search{}
	f.login.forget()
}

// broken ends the session of a client whose bytes are no request: with the answers
// to what came before. Of the frame that is broken no more is sent.
func (f *forwarding) broken(ctx context.Context, cause error) error {
	f.sending.forgo()
	return errors.Join(f.sending.pass(ctx, f.in.frame), f.asking.settle(ctx), cause)
}

// read flushes the replies of the proxy's own, and forwards what comes until
// something special does. At a lock server what is brief is carried out as it comes, so that the
// system need not be asked each time whether there is more: see wire.Conn.Pump.
func (f *forwarding) read(ctx context.Context) error {
	if err := f.session.flush(); err != nil {
		return err
	}
	if err := f.in.makeRoom(); err != nil {
		return err
	}
	var failed error
	err := f.in.wire.Pump(func(n int) bool {
		f.in.end += n
		for done := true; done && failed == nil; {
			if failed = f.scan(ctx); failed == nil {
				done, failed = f.briefly(ctx)
			}
		}
		if failed == nil {
			failed = f.session.flush()
		}
		if failed != nil || f.special {
			return false
		}
		failed = f.in.makeRoom()
		return failed == nil
	})
	if failed != nil {
		return failed
	}
	return f.session.endOfInput(err)
}

// briefly carries out the command whose name was scanned, at a lock server, if it is brief and was read whole.
func (f *forwarding) briefly(ctx context.Context) (done bool, err error) {
	if !f.special || f.bad != nil || !f.isLockServer() || f.session.who.Own != nil || f.client.Transaction.Open || len(f.out.Bytes) > maxPending || ctx.Err() != nil {
		return false, nil
	}
	name, _ := f.in.scanner.Name()
	cmd := f.table.Lookup(name)
	if cmd == nil || cmd.Brief == nil {
		return false, nil
	}
	ev, err := f.in.eventWithin(maxFrame)
	if f.keys.whole = ev == resp.FrameEnd; err != nil || !f.keys.whole {
		return false, err
	}
	words, err := f.in.words()
	if err != nil || !cmd.Brief(words) {
		return false, err
	}
	f.special = false
	err = f.runAlone(ctx, cmd, words)
	f.in.skip()
	f.forgetFrame()
	return true, err
}

// command deals with a command that is special.
func (f *forwarding) command(ctx context.Context) error {
	f.special = false
	switch {
	case f.bad != nil:
		return f.broken(ctx, f.bad)
	case f.holding:
		f.holding = false
		return f.login.limitHeld(ctx)
	case f.session.who.Own != nil && f.session.who.Own.Ended():
		return errOver
	}
	name, long := f.in.scanner.Name()
	cmd, follow := f.table.Lookup(name), track.Name(name)
	if err := f.sending.pass(ctx, f.in.frame); err != nil {
		return err
	}
	if f.session.who.Closed() && !login.MayCome(cmd, follow) {
		return f.turnAway(ctx)
	}
	if f.isLockServer() && cmd == nil && (long || f.table.Keyed(name) == nil) {
		f.client.Transaction.Abort()
		return f.sending.discard(func(words [][]byte) { f.client.Refuse(syntax.UnknownCommand(words), f.out) })
	}
	whole, err := f.keys.whole, error(nil)
	if !whole {
		whole, err = f.login.collect(ctx)
	}
	var words [][]byte
	switch {
	case err != nil:
	case !whole && f.session.who.Closed():
		return f.turnAway(ctx)
	case !whole:
		return f.tooLong(ctx, cmd, follow)
	default:
		words, err = f.in.words()
	}
	if _, ok := errors.AsType[*resp.RequestError](err); ok {
		return errors.Join(f.asking.settle(ctx), err)
	}
	if err != nil {
		return err
	}
	left, err := f.login.check(ctx, cmd, follow, words)
	if left != nil && err == nil {
		err = f.asking.askMode(ctx)
	}
	if left != nil && err == nil {
		err = f.route(ctx, cmd, follow, left)
	}
	f.in.skip()
	f.forgetFrame()
	return err
}

// turnAway throws a frame away that a client sent which has still to log in.
func (f *forwarding) turnAway(ctx context.Context) error {
	if err := f.asking.settle(ctx); err != nil {
		return err
	}
	f.keys.search = search{}
	return f.sending.discard(func([][]byte) { f.client.Refuse(login.NoAuth, f.out) })
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
