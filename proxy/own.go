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

// respond answers one of the proxy's own commands.
func (d *dispatcher) respond(ctx context.Context, cmd *command.Command, words [][]byte, state track.State) error {
	before, tx := len(d.out.Bytes), d.client.Transaction
	if err := d.answer(ctx, cmd, words, state); err != nil {
		return err
	}
	if d.out.LocksMoved {
		d.out.LocksMoved = false
		d.out.TakeBack(before)
		if cmd.Name != "exec" {
			return errLocksMoved
		}
		d.execElsewhere(ctx, tx)
	}
	d.sender.applyReplyMode(before)
	if err := d.flushUrgent(); err != nil {
		return err
	}
	d.useCaching(ctx)
	return nil
}

// runAlone is respond at a lock server, where a command depends only on the client.
func (d *dispatcher) runAlone(ctx context.Context, cmd *command.Command, words [][]byte) error {
	if err := d.runCommand(cmd, command.Call{Ctx: ctx, Client: d.client, Args: words, Out: d.out}); err != nil {
		return err
	}
	if cmd.Name != "client" && !d.client.Transaction.Open {
		tracking.Of(d.client).ClearCaching()
	}
	return d.flushUrgent()
}

// flushUrgent sends a reply that contains a validity at once, before the next command begins: the
// validity counts from the moment of sending.
func (d *dispatcher) flushUrgent() error {
	switch {
	case d.session.left:
		return errClientLeft
	case d.out.IsUrgent():
		return d.session.flush()
	}
	return nil
}

// execElsewhere answers the EXEC of a transaction whose lock keys have moved to the upstream: with
// nil if the client watches keys, else with the upstream's reply.
func (d *dispatcher) execElsewhere(ctx context.Context, tx command.Transaction) {
	d.client.Transaction.End()
	if tx.Watching() {
		d.out.NullArray()
		return
	}
	switch answer, sent, err := d.locks.execUpstream(ctx, tx.Queued); {
	case err == nil:
		d.out.Raw(answer)
	case sent:
		d.out.Error("ERR " + err.Error() + ": the transaction may or may not have taken effect")
	default:
		d.out.Error("EXECABORT Transaction discarded because the locks were moved: " + err.Error())
	}
}

// answer runs the command, or replies why it may not run.
func (d *dispatcher) answer(ctx context.Context, cmd *command.Command, words [][]byte, state track.State) error {
	if state.ProtoUnknown {
		state.Proto = d.asker.askProto(ctx)
	}
	d.client.Proto, d.out.Proto = state.Proto, state.Proto
	refused := ""
	switch {
	case state.Restricted() && syntax.Fits(cmd.Arity, len(words)): // as in Redis, the number of words is checked first
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
			d.out.Error("ERR cannot find out the selected database: " + err.Error())
			return nil
		}
		state.DB = db
	}
	d.client.DB = state.DB
	d.client.Ask = func(ctx context.Context) ([]byte, error) { return d.askFor(ctx, cmd, frame) }
	return d.runCommand(cmd, command.Call{Ctx: ctx, Client: d.client, Args: words, Out: d.out, Came: d.locks.arrived})
}

// askFor makes the upstream run a command that the proxy also runs, and returns its reply for the
// client, even if the client has turned replies off.
func (d *dispatcher) askFor(ctx context.Context, cmd *command.Command, frame []byte) (answer []byte, err error) {
	limit := d.relay.up.Timeout()
	if cmd.Unlimited {
		limit = 0
	}
	err = d.asker.inquire(ctx, d.relay.state(), func(ctx context.Context) error {
		answer, err = d.asker.askWithin(ctx, limit, frame)
		return err
	})
	if err == nil {
		return d.forClient(answer), nil
	}
	if freed, done := runOnBusy(ctx, d.relay.up, &d.session.login, frame, err); done {
		return freed, nil
	}
	return nil, err
}

// runCommand runs one of the proxy's own commands. A client that sends no more waits for its turn.
func (d *dispatcher) runCommand(cmd *command.Command, call command.Call) error {
	if d.in.wire.HasEnded() {
		all := &d.session.shared.halfClosed
		if err := all.queue(call.Ctx, d.session.flush, d.in.wire.IsReset); err != nil {
			return err
		}
		defer all.done()
	}
	d.table.Run(cmd, call)
	return nil
}

// useCaching is called after the proxy has answered a command. A CLIENT CACHING before it applied
// to that command, so the upstream must learn that it is used up.
func (d *dispatcher) useCaching(ctx context.Context) {
	if !tracking.Of(d.client).CachingRequested() || d.client.Transaction.Open {
		return
	}
	tracking.Of(d.client).ClearCaching()
	_, _ = d.asker.askWithReplies(ctx, "PING") // on an error the connection is lost, and its tracking with it
}
