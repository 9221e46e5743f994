package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"

	"redlock-proxy/commands"
)

// serveRelay serves a client that has an upstream behind it: what is not the
// proxy's own is forwarded, as the bytes came. A command of the proxy's own is a
// barrier: it runs when the upstream has answered all that was sent before, and
// what follows is sent when it is done, so that a pipeline means the same as on
// one server.
func (s *session) serveRelay(ctx context.Context) error {
	f := forwarding{session: s}
	for !s.client.Closing {
		ev, err := s.in.event()
		switch {
		case err != nil:
			err = errors.Join(f.pass(ctx, f.frame), s.relay.settle(ctx), err)
		case ev == frameName:
			err = f.command(ctx)
		case ev == frameEnd:
			f.passing, f.dropping = false, false
			f.frame = s.in.scanned
		case ev == frameEmpty:
			f.frame = s.in.scanned
		case ev == frameMore:
			err = f.more(ctx)
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

// forwarding is how far a session has come in forwarding what it has scanned.
type forwarding struct {
	*session
	frame    int  // where the current frame begins in the input's buffer
	plain    int  // commands scanned and not yet sent, whose answers change nothing
	passing  bool // the current frame is forwarded
	dropping bool // its beginning could not be; the rest is thrown away
}

// command decides what becomes of the command whose name was just scanned.
func (f *forwarding) command(ctx context.Context) error {
	name, long := f.in.scanner.name()
	cmd := f.table.Lookup(name)
	follow := followedName(name)
	if long || cmd == nil && follow == "" {
		f.count()
		f.passing = true
		return nil
	}
	if err := f.pass(ctx, f.frame); err != nil {
		return err
	}
	whole, err := f.collect()
	if err != nil {
		return err
	}
	if !whole {
		return f.tooLong(ctx, cmd)
	}
	words, err := f.in.words()
	if err != nil {
		return errors.Join(f.relay.settle(ctx), err)
	}
	if cmd != nil {
		err = f.own(ctx, cmd, words)
	} else {
		err = f.follow(ctx, follow, words)
	}
	f.in.skip()
	f.frame = f.in.scanned
	return err
}

// count awaits the answer of one more command, unless the client wants none.
func (f *forwarding) count() {
	switch f.relay.silence {
	case speaking:
		f.plain++
	case silentOnce:
		f.relay.silence = speaking
	}
}

// tooLong deals with a command that is not held whole: one of the proxy's own is
// refused, another one is forwarded after all.
func (f *forwarding) tooLong(ctx context.Context, cmd *commands.Command) error {
	f.frame = f.in.start
	if cmd == nil {
		f.count()
		f.passing = true
		return nil
	}
	if err := f.relay.settle(ctx); err != nil {
		return err
	}
	err := f.discard(tooLong)
	f.frame = f.in.start
	return err
}

// more sends on what is scanned, and reads.
func (f *forwarding) more(ctx context.Context) error {
	upTo := f.frame
	if f.passing {
		upTo = f.in.scanned
	}
	if err := f.pass(ctx, upTo); err != nil {
		return err
	}
	inFrame := f.in.scanned - f.frame
	err := f.session.more()
	f.frame = f.in.scanned - inFrame
	return err
}

// pass sends the bytes up to a place in the buffer. Where there is no upstream,
// the commands in them are answered with the reason.
func (f *forwarding) pass(ctx context.Context, upTo int) error {
	p := f.in.buf[f.in.start:upTo]
	f.in.start = upTo
	plain := f.plain
	f.plain = 0
	if len(p) == 0 || f.dropping {
		return nil
	}
	if err := f.relay.open(ctx); err != nil {
		return f.refuse(ctx, plain, err)
	}
	if err := f.flush(); err != nil {
		return err
	}
	f.relay.expect(plain)
	f.relay.send(p)
	return nil
}

// refuse answers n commands with the reason why they cannot be forwarded.
func (f *forwarding) refuse(ctx context.Context, n int, reason error) error {
	var failed *upstreamError
	if !errors.As(reason, &failed) {
		return reason
	}
	for range n {
		f.out.Error(failed.reply())
	}
	f.dropping = f.passing
	return nil
}

// follow forwards a command whose answer is learned from.
func (f *forwarding) follow(ctx context.Context, name string, words [][]byte) error {
	if err := f.relay.open(ctx); err != nil {
		return f.refuse(ctx, 1, err)
	}
	if err := f.flush(); err != nil {
		return err
	}
	f.relay.stateful = true
	mode, silences := hush(words)
	if silences && mode != speaking {
		return f.silence(ctx, mode)
	}
	if silences {
		f.relay.silence = speaking
	}
	switch f.relay.silence {
	case speaking:
		f.relay.expect(0, slotFor(name, words))
	case silentOnce:
		f.relay.silence = speaking
	}
	f.relay.send(f.in.chunk())
	return nil
}

// silence forwards a CLIENT REPLY OFF or SKIP, which is not answered; but in a
// transaction it is queued, and that is.
func (f *forwarding) silence(ctx context.Context, mode replySilence) error {
	if err := f.settle(ctx); err != nil {
		return err
	}
	switch {
	case f.relay.know().multi:
		f.relay.expect(0, slot{kind: slotOdd, n: 1})
	case f.relay.silence != silentFromNow:
		f.relay.silence = mode
	}
	f.relay.send(f.in.chunk())
	return nil
}

// subscribedOnly is Redis' refusal of a command on a RESP2 connection that takes
// messages.
const subscribedOnly = "ERR Can't execute '%s': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context"

// own runs a command of the proxy's own, when its turn has come. In a transaction
// it goes to the upstream, whose refusal aborts the transaction, as it must.
func (f *forwarding) own(ctx context.Context, cmd *commands.Command, words [][]byte) error {
	if err := f.settle(ctx); err != nil {
		return err
	}
	state := f.relay.know()
	if state.multi || state.stream {
		f.count()
		plain := f.plain
		f.plain = 0
		f.relay.expect(plain)
		f.relay.send(f.in.chunk())
		return nil
	}
	before := len(f.out.Bytes)
	f.client.Proto, f.out.Proto = state.proto, state.proto
	switch {
	case state.proto == 2 && state.listening():
		f.out.Error(fmt.Sprintf(subscribedOnly, cmd.Name))
	case cmd.Guarded() && f.relay.up.demandsLogin() && !state.loggedIn:
		f.out.Error("NOAUTH Authentication required.")
	default:
		if err := f.run(ctx, cmd, words, state); err != nil {
			return err
		}
	}
	f.afterOwn(before)
	if f.left {
		return errClientLeft
	}
	return nil
}

func (f *forwarding) run(ctx context.Context, cmd *commands.Command, words [][]byte, state learned) error {
	frame := f.in.chunk()
	if state.dbUnknown {
		db, err := f.askDB(ctx)
		if err != nil {
			f.out.Error("ERR the selected database is not known: " + err.Error())
			return nil
		}
		state.db = db
	}
	f.client.DB = state.db
	f.client.Ask = func(ctx context.Context) ([]byte, error) { return f.relay.ask(ctx, frame) }
	f.table.Run(ctx, cmd, &f.client, words, &f.out)
	return nil
}

// afterOwn takes back the reply where the client asked for silence.
func (f *forwarding) afterOwn(before int) {
	switch f.relay.silence {
	case silentOnce:
		f.relay.silence = speaking
		f.relay.send([]byte(greeting)) // the upstream, too, keeps silent once
		f.out.Bytes = f.out.Bytes[:before]
	case silentFromNow:
		f.out.Bytes = f.out.Bytes[:before]
	}
}

// settle waits for the upstream to have answered, and notices if the client
// leaves meanwhile.
func (f *forwarding) settle(ctx context.Context) error {
	if f.relay.isQuiet() {
		return nil
	}
	watched, stop := f.watch(ctx)
	err := f.relay.settle(watched)
	stop()
	return err
}

var dbField = regexp.MustCompile(` db=(\d+) `)

// askDB asks the upstream which database is selected.
func (f *forwarding) askDB(ctx context.Context) (int, error) {
	info, err := f.relay.ask(ctx, []byte("*2\r\n$6\r\nCLIENT\r\n$4\r\nINFO\r\n"))
	if err != nil {
		return 0, err
	}
	found := dbField.FindSubmatch(info)
	if found == nil {
		return 0, errors.New("CLIENT INFO does not tell it")
	}
	db, err := strconv.Atoi(string(found[1]))
	if err == nil {
		f.relay.mu.Lock()
		f.relay.learned.db, f.relay.learned.dbUnknown = db, false
		f.relay.mu.Unlock()
	}
	return db, err
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
