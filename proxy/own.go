package proxy

import (
	"context"
	"fmt"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/command"
	"redlock-proxy/commands/lockkeys/tracking"
	"redlock-proxy/commands/server"
	"redlock-proxy/proxy/track"
)

// respond gives the client the answer to a command of the proxy's own.
func (d *dispatcher) respond(ctx context.Context, cmd *command.Command, words [][]byte, state track.State) error {
	before, tx := len(d.out.Bytes), d.client.Transaction
	if err := d.answer(ctx, cmd, words, state); err != nil {
		return err
	}
	if d.out.Elsewhere {
		d.out.Elsewhere = false
		d.out.TakeBack(before)
		if cmd.Name != "exec" {
			return errElsewhere
		}
		d.endElsewhere(ctx, tx)
	}
	d.sender.afterOwn(before)
	if err := d.hasten(); err != nil {
		return err
	}
	d.useCaching(ctx)
	return nil
}

// runAlone is respond at a lock server, where a command depends on nothing but the client.
func (d *dispatcher) runAlone(ctx context.Context, cmd *command.Command, words [][]byte) error {
	if err := d.carryOut(cmd, command.Call{Ctx: ctx, Client: d.client, Args: words, Out: d.out}); err != nil {
		return err
	}
	if cmd.Name != "client" && !d.client.Transaction.Open {
		tracking.Of(d.client).Used()
	}
	return d.hasten()
}

// hasten sends a reply with a validity: that counts from when it leaves, so that leaves before the
// next command is begun.
func (d *dispatcher) hasten() error {
	switch {
	case d.session.left:
		return errClientLeft
	case d.out.IsUrgent():
		return d.session.flush()
	}
	return nil
}

// endElsewhere answers the EXEC of a transaction on lock keys that are elsewhere by now: as if what
// the client watches had changed, or as the upstream does.
func (d *dispatcher) endElsewhere(ctx context.Context, tx command.Transaction) {
	d.client.Transaction.End()
	if tx.Watching() {
		d.out.NullArray()
		return
	}
	switch answer, sent, err := d.locks.execUpstream(ctx, tx.Queued); {
	case err == nil:
		d.out.Raw(answer)
	case sent:
		d.out.Error("ERR " + err.Error() + ": the transaction may or may not have been done")
	default:
		d.out.Error("EXECABORT Transaction discarded because the locks were moved: " + err.Error())
	}
}

// answer runs the command, or says why not.
func (d *dispatcher) answer(ctx context.Context, cmd *command.Command, words [][]byte, state track.State) error {
	if state.ProtoUnknown {
		state.Proto = d.asker.askProto(ctx)
	}
	d.client.Proto, d.out.Proto = state.Proto, state.Proto
	refused := ""
	switch {
	case state.Restricted() && syntax.Fits(cmd.Arity, len(words)): // how many words there are is looked at before, as in Redis
		refused = fmt.Sprintf(subscribedOnly, cmd.Name)
	case cmd.Guarded && !server.IsOpen(words):
		refused = d.asker.mayUse(ctx, state)
	}
	if refused != "" {
		d.out.Error(refused)
		return nil
	}
	return d.run(ctx, cmd, words, state)
}

func (d *dispatcher) run(ctx context.Context, cmd *command.Command, words [][]byte, state track.State) error {
	frame := d.in.chunk()
	if state.DBUnknown && cmd.Guarded {
		db, err := d.asker.askDB(ctx)
		if err != nil {
			d.out.Error("ERR the selected database is not known: " + err.Error())
			return nil
		}
		state.DB = db
	}
	d.client.DB = state.DB
	d.client.Ask = func(ctx context.Context) ([]byte, error) { return d.askFor(ctx, cmd, frame) }
	return d.carryOut(cmd, command.Call{Ctx: ctx, Client: d.client, Args: words, Out: d.out, Came: d.locks.came})
}

// askFor has the upstream carry out a command that is run here, for the client to see the answer,
// also where it wants none.
func (d *dispatcher) askFor(ctx context.Context, cmd *command.Command, frame []byte) (answer []byte, err error) {
	limit := d.relay.up.Timeout()
	if cmd.Patient {
		limit = 0
	}
	err = d.asker.inquire(ctx, d.relay.know(), func(ctx context.Context) error {
		answer, err = d.asker.askWithin(ctx, limit, frame)
		return err
	})
	if err == nil {
		return d.forClient(answer), nil
	}
	if freed, done := freeUp(ctx, d.relay.up, &d.session.who, frame, err); done {
		return freed, nil
	}
	return nil, err
}

// carryOut runs a command of the proxy's own, at once, but for a client that sends no more.
func (d *dispatcher) carryOut(cmd *command.Command, call command.Call) error {
	if d.in.wire.HasEnded() {
		all := &d.session.shared.leavers
		if err := all.queue(call.Ctx, d.session.flush, d.in.wire.IsReset); err != nil {
			return err
		}
		defer all.done()
	}
	d.table.Run(cmd, call)
	return nil
}

// useCaching is told that a command was answered here. A CLIENT CACHING before it was about it, and
// the upstream has to learn that it is used.
func (d *dispatcher) useCaching(ctx context.Context) {
	if !tracking.Of(d.client).Said() || d.client.Transaction.Open {
		return
	}
	tracking.Of(d.client).Used()
	_, _ = d.asker.askAloud(ctx, "PING") // or the connection is lost, and what is tracked with it
}
