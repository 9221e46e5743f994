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
	switch {
	case state.quitting:
		return io.EOF
	case f.belongsUpstream(cmd, state):
		return f.sendWhole(slot{n: f.count()})
	}
	return f.respond(ctx, cmd, words, state)
}

// respond gives the client the answer to a command of the proxy's own.
func (f *forwarding) respond(ctx context.Context, cmd *commands.Command, words [][]byte, state learned) error {
	before := len(f.out.Bytes)
	if err := f.answer(ctx, cmd, words, state); err != nil {
		return err
	}
	f.afterOwn(before)
	if f.left {
		return errClientLeft
	}
	return nil
}

// belongsUpstream reports whether the upstream must see a command that is the
// proxy's own elsewhere: in a transaction, in a stream that cannot be followed, and
// where a command that asks the upstream would not be answered.
func (f *forwarding) belongsUpstream(cmd *commands.Command, state learned) bool {
	return state.multi || state.stream ||
		cmd.Asks() && (f.relay.silence != speaking || state.restricted() || state.monitoring)
}

// sendWhole forwards the command that is held, on a connection with state.
func (f *forwarding) sendWhole(s slot) error {
	if err := f.flush(); err != nil {
		return err
	}
	if !f.relay.follow(s) {
		return errOver
	}
	f.relay.send(f.in.chunk())
	return nil
}

// answer runs the command, or says why not.
func (f *forwarding) answer(ctx context.Context, cmd *commands.Command, words [][]byte, state learned) error {
	if state.protoUnknown {
		state.proto = f.askProto(ctx)
	}
	f.client.Proto, f.out.Proto = state.proto, state.proto
	switch {
	case state.restricted():
		f.out.Error(fmt.Sprintf(subscribedOnly, cmd.Name))
	case cmd.Guarded() && !f.loggedIn(ctx, state):
		f.out.Error("NOAUTH Authentication required.")
	default:
		return f.run(ctx, cmd, words, state)
	}
	return nil
}

func (f *forwarding) run(ctx context.Context, cmd *commands.Command, words [][]byte, state learned) error {
	frame := f.in.chunk()
	if state.dbUnknown && cmd.Guarded() {
		db, err := f.askDB(ctx)
		if err != nil {
			f.out.Error("ERR the selected database is not known: " + err.Error())
			return nil
		}
		state.db = db
	}
	f.client.DB = state.db
	f.client.Ask = func(ctx context.Context) ([]byte, error) { return f.ask(ctx, frame) }
	f.table.Run(ctx, cmd, &f.client, words, &f.out)
	return nil
}

// afterOwn takes back the reply where the client asked for silence.
func (f *forwarding) afterOwn(before int) {
	if f.relay.silence == speaking {
		return
	}
	f.out.Bytes = f.out.Bytes[:min(before, len(f.out.Bytes))]
	if f.relay.silence == silentOnce {
		f.relay.silence = speaking
		f.relay.send([]byte(greeting)) // the upstream, too, keeps silent once
	}
}

// tooLong deals with a command that is not held whole: one of the proxy's own is
// refused, unless it belongs upstream; another one is forwarded after all.
func (f *forwarding) tooLong(ctx context.Context, cmd *commands.Command, follow string) error {
	f.frame = f.in.start
	if f.mustHold(cmd, follow) {
		return f.refuseLong(ctx)
	}
	if cmd == nil {
		f.passLong(follow)
		return nil
	}
	if err := f.settle(ctx); err != nil {
		return err
	}
	if f.belongsUpstream(cmd, f.relay.know()) {
		f.passOn(f.count())
		return nil
	}
	before := len(f.out.Bytes)
	err := f.discard(tooLong)
	f.frame = f.in.start
	f.afterOwn(before)
	return err
}

// passLong forwards a long command whose answer is learned from. Its first words
// tell enough.
func (f *forwarding) passLong(follow string) {
	chunk := f.in.chunk()
	words := excerptWords(chunk[:min(maxExcerpt, len(chunk))])
	count, _ := headerNumber(chunk)
	s := slotFor(follow, words, count)
	if f.passOn(0); f.count() > 0 {
		f.slot, f.counted = &s, 1
	}
}

// ask sends a command for the proxy itself and gives its whole reply. Nothing else
// may be awaited.
func (f *forwarding) ask(ctx context.Context, command []byte) (answer []byte, err error) {
	if err := f.relay.open(ctx); err != nil {
		return nil, err
	}
	if err := f.relay.request(command); err != nil {
		return nil, err
	}
	err = f.attend(ctx, func(ctx context.Context) (err error) {
		answer, err = f.relay.response(ctx)
		return err
	})
	return answer, err
}

// Commands of the proxy itself.
const (
	clientInfo = "*2\r\n$6\r\nCLIENT\r\n$4\r\nINFO\r\n"
	replyOn    = "*3\r\n$6\r\nCLIENT\r\n$5\r\nREPLY\r\n$2\r\nON\r\n"
	replyOff   = "*3\r\n$6\r\nCLIENT\r\n$5\r\nREPLY\r\n$3\r\nOFF\r\n"
	replySkip  = "*3\r\n$6\r\nCLIENT\r\n$5\r\nREPLY\r\n$4\r\nSKIP\r\n"
	hello      = "*1\r\n$5\r\nHELLO\r\n"
)

// askAloud is ask on a connection that may be told to be silent.
func (f *forwarding) askAloud(ctx context.Context, command string) ([]byte, error) {
	switch f.relay.silence {
	case silentOnce:
		defer func() { f.relay.send([]byte(replySkip)) }()
	case silentFromNow:
		defer func() { f.relay.send([]byte(replyOff)) }()
	}
	if f.relay.silence != speaking {
		if _, err := f.ask(ctx, []byte(replyOn)); err != nil {
			return nil, err
		}
	}
	return f.ask(ctx, []byte(command))
}

// loggedIn reports whether the client has logged in at the upstream, if that is
// demanded there.
func (f *forwarding) loggedIn(ctx context.Context, state learned) bool {
	if state.loggedIn || !f.relay.up.demandsLogin() {
		return true
	}
	answer, err := f.askAloud(ctx, greeting)
	if err != nil || len(answer) == 0 || answer[0] == '-' {
		return false
	}
	f.relay.teach(func(l *learned) { l.loggedIn = true })
	return true
}

// askProto asks which protocol is spoken.
func (f *forwarding) askProto(ctx context.Context) int {
	proto := 2
	answer, err := f.askAloud(ctx, hello)
	if err == nil && answer[0] == '%' {
		proto = 3
	}
	f.relay.teach(func(l *learned) { l.proto, l.protoUnknown = proto, err != nil })
	return proto
}

var dbField = regexp.MustCompile(` db=(\d+) `)

// askDB asks which database is selected.
func (f *forwarding) askDB(ctx context.Context) (int, error) {
	info, err := f.askAloud(ctx, clientInfo)
	if err != nil {
		return 0, err
	}
	found := dbField.FindSubmatch(info)
	if found == nil {
		return 0, errors.New("CLIENT INFO does not tell it")
	}
	db, err := strconv.Atoi(string(found[1]))
	if err == nil {
		f.relay.teach(func(l *learned) { l.db, l.dbUnknown = db, false })
	}
	return db, err
}

// settle waits for the upstream to have answered all that was sent.
func (f *forwarding) settle(ctx context.Context) error {
	if !f.relay.isQuiet() {
		if err := f.attend(ctx, f.relay.settle); err != nil {
			return err
		}
	}
	f.blocking = false
	return f.relay.isOver()
}

// attend waits for the upstream, and no longer when the client leaves. One that
// only sends no more may still be reading, so it is given what comes soon; but not
// while it is blocked, for then Redis takes the end of its stream for its end.
func (f *forwarding) attend(ctx context.Context, wait func(context.Context) error) error {
	watched, stop := f.watch(ctx)
	err := wait(watched)
	stop()
	if !f.left || context.Cause(watched) != errClientLeft || err != nil && f.blocking || !errors.Is(f.in.lookahead(), io.EOF) {
		return err
	}
	f.left = false
	if err == nil {
		return nil
	}
	soon, cancel := context.WithTimeout(ctx, f.relay.up.farewell)
	defer cancel()
	if err := wait(soon); err != nil {
		return errors.Join(errClientLeft, err)
	}
	return nil
}
