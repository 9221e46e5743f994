package proxy

import (
	"context"
	"errors"
	"io"
	"time"

	"redlock-proxy/commands"
	"redlock-proxy/commands/command"
	"redlock-proxy/internal/resp"
	"redlock-proxy/proxy/login"
	"redlock-proxy/proxy/sharing"
	"redlock-proxy/proxy/track"
	"redlock-proxy/proxy/upstream"
)

// serveRelay serves a client that has an upstream behind it: what is not the
// proxy's own is forwarded, as the bytes came. A command of the proxy's own is a
// barrier: it runs when the upstream has answered all that was sent before, and
// what follows is sent when it is done, so that a pipeline means the same as on
// one server.
func (s *session) serveRelay(ctx context.Context) error {
	f := forwarding{
		asking: asking{session: s, relay: s.relay}, in: s.in, out: &s.out, client: &s.client, table: s.table,
		routes: s.table.LockKeys().Any(), places: s.server.opts.Places, before: s.server.opts.Before,
	}
	for !s.client.Closing {
		special, err := f.scan(ctx)
		switch {
		case err != nil:
		case f.split != together:
			err = f.apartFrom(ctx)
		case special:
			err = f.command(ctx)
		default:
			err = f.read(ctx)
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

// forwarding is how far a session has come in forwarding what it has scanned. It belongs to
// the session's goroutine.
type forwarding struct {
	asking // with the session, for what that does without an upstream, too: write, watch, throw away
	// The parts of the session that are used here.
	in     *input
	out    *command.Reply
	client *command.Client
	table  *commands.Table

	frame    int         // where the current frame begins in the input's buffer
	plain    int         // commands scanned and not yet sent, whose answers change nothing
	slot     *track.Slot // a command not yet sent whose answer does
	passing  bool        // the current frame is forwarded
	counted  int         // how many answers are awaited for it
	begun    bool        // a frame was sent in part
	rest     int         // where that frame ends in the buffer, if its end was scanned
	dropping bool        // the current frame's beginning could not be sent; the rest is thrown away
	special  bool        // the name of a command was scanned that is not just forwarded, or no request
	bad      error       // why the bytes are no request, or not one that is forwarded
	split    split       // where the current frame turned out to be one that is not shared
	routes   bool        // lock keys are configured
	checked  bool        // it was found out whether the client has logged in, for the current frame
	holding  bool        // that must be found out before more of the frame is read
	keys     keySearch
	// places tell where the locks are; nil: they are on the masters. before is the table for as long as they are at the upstream.
	places Places
	before *commands.Table
	// carries: the current frame is a command on lock keys that is sent in parts.
	carries bool
	came    time.Time // when the command came that is run again; zero: it is not
}

// scan forwards what has been read, up to the name of a command that is special or
// to where the bytes are no request. It never reads.
func (f *forwarding) scan(ctx context.Context) (special bool, err error) {
	if f.special {
		return true, nil
	}
	for {
		switch decided, err := f.seek(ctx); {
		case err != nil:
			f.bad = err
			return true, nil
		case !decided && f.mustCheckLogin():
			f.holding = true
			return true, nil
		case !decided:
			return false, f.pass(ctx, f.frame)
		case f.keys.lock || f.split != together:
			return true, nil
		}
		ev, err := f.event()
		switch {
		case err != nil:
			f.bad = err
			return true, nil
		case ev == resp.FrameName && f.isSpecial():
			return true, nil
		case ev == resp.FrameName:
			if f.sees(ctx); f.split != together {
				return true, nil
			}
		case ev == resp.FrameEnd && !f.isWhole():
			f.split = atEnd
			return true, nil
		case ev == resp.FrameEnd:
			f.endFrame()
		case ev == resp.FrameEmpty && f.relay.shared():
			f.split = atNothing
			return true, nil
		case ev == resp.FrameEmpty:
			f.frame = f.in.scanned
		case f.passing && f.relay.shared() && f.in.end-f.frame < sharing.MaxFrame:
			return false, f.passWhole(ctx)
		case f.passing && f.relay.shared():
			f.split = within
			return true, nil
		case f.passing:
			f.keepSent()
			return false, f.pass(ctx, f.in.scanned)
		default:
			return false, f.pass(ctx, f.frame)
		}
	}
}

// sees looks at a command that is forwarded, whose name was just scanned.
func (f *forwarding) sees(ctx context.Context) {
	f.rejoinPool(ctx)
	switch {
	case f.mustPart():
		f.split = atName
	case f.relay.shared() && f.relay.isFull(f.plain):
		f.split = atWindow
	}
	f.suspect()
	if !f.keyed() { // else its keys decide, in seek
		f.passOn(f.count())
	}
}

// isSpecial reports whether the command whose name was just scanned is one of the
// proxy's own, or one whose answer must be learned from.
func (f *forwarding) isSpecial() bool {
	name, long := f.in.scanner.Name()
	f.session.who.Gate.Renew(f.session.server.settings().ClientPassword)
	if f.client.Transaction.Open || f.session.who.Closed() || f.relay.doubtful.Load() {
		return true
	}
	if long || f.table.Lookup(name) == nil && track.Name(name) == "" {
		f.relay.blocking = f.relay.blocking || track.MayBlock(name)
		return false
	}
	return true
}

// count says how many answers are awaited for one more command: none, where the
// client wants none.
func (f *forwarding) count() int {
	f.client.Tracking.Used()
	f.relay.unnoticed = f.relay.silence != track.Speaking
	switch f.relay.silence {
	case track.Speaking:
		return 1
	case track.SilentOnce:
		f.relay.silence = track.Speaking
	}
	return 0
}

// passOn has the current frame forwarded, for so many answers.
func (f *forwarding) passOn(answers int) {
	f.passing, f.counted = true, answers
	f.plain += answers
}

func (f *forwarding) endFrame() {
	f.sawWhole()
	if f.carries {
		f.carries = false
		f.relay.carried()
	}
	switch {
	case f.dropping:
		f.in.skip()
	case f.begun:
		f.rest = f.in.scanned
	}
	f.passing, f.dropping, f.counted = false, false, 0
	f.forgetFrame()
	f.frame = f.in.scanned
}

// broken ends the session of a client whose bytes are no request: with the answers
// to what came before. Of the frame that is broken no more is sent.
func (f *forwarding) broken(ctx context.Context, cause error) error {
	switch {
	case f.counted == 0:
	case f.begun && f.rest == 0:
		f.relay.forgo()
	case f.slot != nil:
		f.slot = nil
	default:
		f.plain--
	}
	return errors.Join(f.pass(ctx, max(f.frame, f.in.start)), f.settle(ctx), cause)
}

// read flushes the replies of the proxy's own, and forwards what comes until
// something special does.
func (f *forwarding) read(ctx context.Context) error {
	if err := f.session.flush(); err != nil {
		return err
	}
	if err := f.makeRoom(); err != nil {
		return err
	}
	var failed error
	err := f.in.wire.Pump(func(n int) bool {
		f.in.end += n
		if f.special, failed = f.scan(ctx); failed == nil {
			failed = f.session.flush()
		}
		if failed != nil || f.special {
			return false
		}
		failed = f.makeRoom()
		return failed == nil
	})
	if failed != nil {
		return failed
	}
	return f.session.endOfInput(err)
}

func (f *forwarding) makeRoom() error {
	inFrame := f.in.scanned - f.frame
	err := f.in.makeRoom()
	f.frame = f.in.scanned - inFrame
	return err
}

// command deals with a command that is special.
func (f *forwarding) command(ctx context.Context) error {
	f.special = false
	switch {
	case f.bad != nil:
		return f.broken(ctx, f.bad)
	case f.holding:
		f.holding = false
		return f.limitHeld(ctx)
	}
	if f.session.who.Own != nil && f.session.who.Own.Ended() {
		return errOver
	}
	name, _ := f.in.scanner.Name()
	cmd, follow := f.table.Lookup(name), track.Name(name)
	if err := f.pass(ctx, f.frame); err != nil {
		return err
	}
	if f.session.who.Closed() && !login.MayCome(cmd, follow) {
		return f.turnAway(ctx)
	}
	whole, err := f.keys.whole, error(nil)
	if !whole {
		whole, err = f.collect(ctx)
	}
	if err == nil && !whole && f.session.who.Closed() {
		return f.turnAway(ctx)
	}
	if err == nil && !whole {
		return f.tooLong(ctx, cmd, follow)
	}
	var words [][]byte
	if err == nil {
		words, err = f.in.words()
	}
	gated := false
	switch {
	case err != nil:
	case f.session.who.Own != nil:
		gated, err = f.checkUser(ctx, follow, words)
	case f.session.who.Gate.Guards(follow):
		gated, err = f.checkGate(ctx, cmd, follow, words)
	}
	var protocol *resp.RequestError
	switch {
	case errors.As(err, &protocol):
		return errors.Join(f.settle(ctx), err)
	case err != nil:
		return err
	case gated:
	default:
		if err = f.askMode(ctx); err == nil {
			err = f.route(ctx, cmd, follow, words)
		}
	}
	f.in.skip()
	f.frame = f.in.scanned
	f.forgetFrame()
	if err == nil && len(f.out.Bytes) > maxPending {
		err = f.session.flush()
	}
	return err
}

// pass sends the bytes up to a place in the buffer. Where there is no upstream,
// the commands in them are answered with the reason.
func (f *forwarding) pass(ctx context.Context, upTo int) error {
	from, plain, slot := f.in.start, f.plain, f.slot
	f.in.start, f.plain, f.slot = upTo, 0, nil
	for from < upTo && !f.dropping {
		if f.begun && f.relay.isGone() {
			from = f.abandon(upTo)
			continue
		}
		if f.relay.shared() {
			return f.passTogether(ctx, f.in.buf[from:upTo], plain)
		}
		dial := f.relay.dial
		err := f.relay.open(ctx)
		if f.begun && (f.relay.dial != dial || f.relay.isGone()) { // it ended just now: the rest of a frame would be another command on the next one
			from = f.abandon(upTo)
			continue
		}
		if err != nil {
			if slot != nil {
				plain++
			}
			return f.refuse(ctx, f.in.buf[from:upTo], plain, err)
		}
		if err := f.session.flush(); err != nil {
			return err
		}
		if f.relay.expect(plain, slot) {
			f.relay.count(plain, slot)
			f.relay.send(f.in.buf[from:upTo])
			f.begun, f.rest = f.passing, 0
			return nil
		}
	}
	return nil
}

// abandon skips what remains of a frame that was sent in part, since the connection
// it went to has ended, and with that it was answered.
func (f *forwarding) abandon(upTo int) (from int) {
	f.begun = false
	if f.rest == 0 {
		f.dropping = true
		return upTo
	}
	return f.rest
}

// refuse answers n commands with the reason why they cannot be forwarded, but one that frees a busy upstream with what that answers.
func (f *forwarding) refuse(ctx context.Context, commands []byte, n int, reason error) error {
	if n == 1 {
		if answer, done := f.freeUp(ctx, commands, reason); done {
			f.out.Raw(answer)
			return nil
		}
	}
	var failed *upstream.Error
	if !errors.As(reason, &failed) {
		return reason
	}
	for range n {
		f.out.Error(failed.Reply())
	}
	f.dropping = f.passing
	return nil
}

// partFromUpstream waits for what the client, which sends no more, still is to get.
func (s *session) partFromUpstream(ctx context.Context, err error) {
	switch {
	case s.ending.Load():
		_ = s.relay.settle(ctx)
	case errors.Is(err, io.EOF):
		s.relay.halfClose(ctx)
	}
}
