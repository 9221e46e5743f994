package proxy

import (
	"context"
	"fmt"

	"redlock-proxy/commands"
	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/command"
	"redlock-proxy/commands/server"
	"redlock-proxy/internal/resp"
	"redlock-proxy/proxy/detour"
	"redlock-proxy/proxy/track"
)

// subscribedOnly is Redis' refusal of a command on a RESP2 connection that takes
// messages.
const subscribedOnly = "ERR Can't execute '%s': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context"

// respond gives the client the answer to a command of the proxy's own.
func (f *forwarding) respond(ctx context.Context, cmd *command.Command, words [][]byte, state track.State) error {
	before, tx := len(f.out.Bytes), f.client.Transaction
	if err := f.answer(ctx, cmd, words, state); err != nil {
		return err
	}
	if f.out.Elsewhere {
		f.out.Elsewhere = false
		f.out.TakeBack(before)
		if cmd.Name != "exec" {
			return errElsewhere
		}
		f.endElsewhere(ctx, tx)
	}
	f.sending.afterOwn(before)
	if err := f.hasten(); err != nil {
		return err
	}
	f.useCaching(ctx)
	return nil
}

// runAlone is respond at a lock server, where a command depends on nothing but the client.
func (f *forwarding) runAlone(ctx context.Context, cmd *command.Command, words [][]byte) error {
	if err := f.session.carryOut(cmd, command.Call{Ctx: ctx, Client: f.client, Args: words, Out: f.out}); err != nil {
		return err
	}
	if cmd.Name != "client" && !f.client.Transaction.Open {
		f.client.Tracking.Used()
	}
	return f.hasten()
}

// hasten sends a reply with a validity: that counts from when it leaves, so that leaves before the next command is begun.
func (f *forwarding) hasten() error {
	switch {
	case f.session.left:
		return errClientLeft
	case f.out.IsUrgent():
		return f.session.flush()
	}
	return nil
}

// endElsewhere answers the EXEC of a transaction on lock keys that are elsewhere by now: as if what the client watches had changed, or as the
// upstream does.
func (f *forwarding) endElsewhere(ctx context.Context, tx command.Transaction) {
	f.client.Transaction.End()
	if tx.Watching() {
		f.out.NullArray()
		return
	}
	switch answer, sent, err := f.locks.execUpstream(ctx, tx.Queued); {
	case err == nil:
		f.out.Raw(answer)
	case sent:
		f.out.Error("ERR " + err.Error() + ": the transaction may or may not have been done")
	default:
		f.out.Error("EXECABORT Transaction discarded because the locks were moved: " + err.Error())
	}
}

// answer runs the command, or says why not.
func (f *forwarding) answer(ctx context.Context, cmd *command.Command, words [][]byte, state track.State) error {
	if state.ProtoUnknown {
		state.Proto = f.asking.askProto(ctx)
	}
	f.client.Proto, f.out.Proto = state.Proto, state.Proto
	refused := ""
	switch {
	case state.Restricted() && syntax.Fits(cmd.Arity, len(words)): // how many words there are is looked at before, as in Redis
		refused = fmt.Sprintf(subscribedOnly, cmd.Name)
	case cmd.Guarded && !server.IsOpen(words):
		refused = f.asking.mayUse(ctx, state)
	}
	if refused != "" {
		f.out.Error(refused)
		return nil
	}
	return f.run(ctx, cmd, words, state)
}

func (f *forwarding) run(ctx context.Context, cmd *command.Command, words [][]byte, state track.State) error {
	frame := f.in.chunk()
	if state.DBUnknown && cmd.Guarded {
		db, err := f.asking.askDB(ctx)
		if err != nil {
			f.out.Error("ERR the selected database is not known: " + err.Error())
			return nil
		}
		state.DB = db
	}
	f.client.DB = state.DB
	f.client.Ask = func(ctx context.Context) ([]byte, error) { return f.askFor(ctx, cmd, frame) }
	return f.session.carryOut(cmd, command.Call{Ctx: ctx, Client: f.client, Args: words, Out: f.out, Came: f.locks.came})
}

// tooLong deals with a command that is not held whole: one of the proxy's own is
// refused, unless it belongs upstream; another one is forwarded after all.
func (f *forwarding) tooLong(ctx context.Context, cmd *command.Command, follow string) error {
	if f.isLockServer() {
		return f.refuseLong(ctx, f.session.refuseTooLong)
	}
	if text := f.login.tooLongFor(cmd, follow); text != "" {
		return f.refuseLong(ctx, func([][]byte) { f.client.Refuse(text, f.out) })
	}
	if f.keys.lock {
		if done, err := f.carryLong(ctx, follow); done || err != nil {
			return err
		}
	}
	if f.mustHold(cmd, follow) {
		return f.refuseLong(ctx, f.session.refuseTooLong)
	}
	if cmd == nil {
		f.passLong(follow)
		return nil
	}
	if err := f.asking.settle(ctx); err != nil {
		return err
	}
	at := f.situation()
	at.Upstream = f.connection()
	switch f.table.Route(at, [][]byte{[]byte(cmd.Name)}).Verb {
	case commands.Forward, commands.Spoil: // the upstream refuses it, if need be
		f.sending.passOn(f.sending.count())
		return nil
	}
	err := f.sending.discard(f.session.refuseTooLong)
	f.forgetFrame()
	return err
}

// passLong forwards a long command whose answer is learned from. Its first words
// tell enough.
func (f *forwarding) passLong(follow string) {
	chunk := f.in.chunk()
	words, count := resp.Excerpt(chunk[:min(maxExcerpt, len(chunk))])
	s := track.SlotFor(follow, words, count)
	if f.sending.passOn(0); f.sending.count() > 0 {
		f.sending.slot, f.sending.counted = &s, 1
	}
}

// askFor has the upstream carry out a command that is run here, for the client to see the answer, also where it wants none.
func (f *forwarding) askFor(ctx context.Context, cmd *command.Command, frame []byte) (answer []byte, err error) {
	limit := f.relay.up.Timeout()
	if cmd.Patient {
		limit = 0
	}
	err = f.asking.inquire(ctx, f.relay.know(), func(ctx context.Context) error {
		answer, err = f.asking.askWithin(ctx, limit, frame)
		return err
	})
	if err == nil {
		return f.forClient(answer), nil
	}
	if freed, done := f.sending.freeUp(ctx, frame, err); done {
		return freed, nil
	}
	return nil, err
}

// forClient is a whole answer as the client may have it: where there are lock keys it is led nowhere else.
func (f *forwarding) forClient(answer []byte) []byte {
	if !f.keys.routes {
		return answer
	}
	instead, turned := detour.Turn(answer)
	if turned != "" {
		f.relay.led(turned)
	}
	return instead
}
