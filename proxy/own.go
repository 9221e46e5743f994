package proxy

import (
	"context"
	"errors"
	"time"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/command"
	"redlock-proxy/commands/lockkeys/tracking"
	"redlock-proxy/commands/pubsub"
	"redlock-proxy/commands/server"
	"redlock-proxy/proxy/track"
	"redlock-proxy/proxy/upstream"
)

// respond answers one of the proxy's own commands.
func (d *dispatcher) respond(ctx context.Context, cmd *command.Command, words [][]byte, state track.State) error {
	replyStart, tx := len(d.out.Bytes), d.client.Transaction
	if err := d.answer(ctx, cmd, words, state); err != nil {
		return err
	}
	if d.nodeLost { // a closed connection tells the client that the node is lost
		d.out.Truncate(replyStart)
		return errStateLost
	}
	if d.out.LocksMoved {
		d.out.LocksMoved = false
		d.out.Truncate(replyStart)
		if cmd.Name != "exec" {
			return errLocksMoved
		}
		d.execMovedTx(ctx, tx)
	}
	d.sender.applyReplyMode(replyStart)
	if err := d.flushUrgent(); err != nil {
		return err
	}
	d.endCaching(ctx)
	return nil
}

// runAtLockServer answers a command at a lock server, where no upstream's state matters.
func (d *dispatcher) runAtLockServer(ctx context.Context, cmd *command.Command, words [][]byte) error {
	if err := d.runCommand(cmd, command.Call{Ctx: ctx, Client: d.client, Args: words, Out: d.out}); err != nil {
		return err
	}
	if cmd.Name != "client" && !d.client.Transaction.Open {
		tracking.Of(d.client).ClearCaching()
	}
	return d.flushUrgent()
}

// flushUrgent sends the replies before the next command begins, if a reply contains a validity or
// the command was slow. A validity counts from the moment of sending.
func (d *dispatcher) flushUrgent() error {
	switch {
	case d.session.clientDisconnected:
		return errClientDisconnected
	case d.out.IsUrgent(), d.wasSlow:
		d.wasSlow = false
		return d.session.flush()
	}
	return nil
}

// execMovedTx answers the EXEC of a transaction whose lock keys have moved to the upstream. The
// reply is null if the client watches keys, otherwise the upstream's reply or an error.
func (d *dispatcher) execMovedTx(ctx context.Context, tx command.Transaction) {
	d.client.Transaction.End()
	if tx.HasWatchedKeys() {
		d.out.WriteNullArray()
		return
	}
	switch answer, sent, err := d.router.execAtUpstream(ctx, tx.QueuedCommands); {
	case err == nil:
		d.out.WriteRaw(answer)
	case sent:
		d.out.WriteError("ERR " + err.Error() + "; the transaction may or may not have taken effect")
	default:
		d.out.WriteError("EXECABORT Transaction discarded because the locks were moved: " + err.Error())
	}
}

// answer runs the command, or replies with the reason why the client may not run it.
func (d *dispatcher) answer(ctx context.Context, cmd *command.Command, words [][]byte, state track.State) error {
	if state.ProtoUnknown {
		state.Proto = d.asker.askProto(ctx)
	}
	d.client.Proto, d.out.Proto = state.Proto, state.Proto
	refusal := ""
	switch {
	// Redis also checks the number of words first.
	case state.Restricted() && syntax.FitsArity(cmd.Arity, len(words)):
		refusal = pubsub.RestrictedError(words)
	case cmd.RequiresLogin && !server.NeedsNoLogin(words):
		refusal = d.asker.useRefusal(ctx, state)
	}
	if refusal != "" {
		d.out.WriteError(refusal)
		return nil
	}
	return d.run(ctx, cmd, words, state)
}

func (d *dispatcher) run(ctx context.Context, cmd *command.Command, words [][]byte, state track.State) error {
	frame := d.in.chunk()
	if state.DBUnknown && cmd.RequiresLogin {
		db, err := d.asker.askDB(ctx)
		if err != nil {
			d.out.WriteError("ERR cannot find out the selected database: " + err.Error())
			return nil
		}
		state.DB = db
	}
	d.client.DB = state.DB
	d.client.Ask = func(ctx context.Context) ([]byte, error) { return d.askUpstream(ctx, cmd, frame, words) }
	return d.runCommand(cmd, command.Call{Ctx: ctx, Client: d.client, Args: words, Out: d.out, FirstArrival: d.router.arrivedAt})
}

// askUpstream makes the upstream run a command that the proxy also runs, and returns its reply for
// the client, even if the client has turned replies off. words are the command's words.
func (d *dispatcher) askUpstream(
	ctx context.Context, cmd *command.Command, frame []byte, words [][]byte,
) (answer []byte, err error) {
	limit := d.relay.upstream.Timeout()
	if cmd.Unlimited {
		limit = 0
	}
	err = d.asker.runWithReplies(ctx, d.relay.state(), func(ctx context.Context) error {
		answer, err = d.asker.askWithin(ctx, limit, frame)
		return err
	})
	switch {
	case err == nil && d.relay.nodes != nil:
		return d.relay.nodes.translateReply(ctx, words, d.withoutRedirect(answer)), nil
	case err == nil:
		return d.withoutRedirect(answer), nil
	}
	if busyAnswer, handled := runOnBusyUpstream(ctx, d.relay.upstream, &d.session.login, frame, err); handled {
		return busyAnswer, nil
	}
	if _, isDown := errors.AsType[*upstream.Error](err); isDown && d.relay.nodes != nil {
		d.nodeLost = true
	}
	return nil, err
}

// runCommand runs one of the proxy's own commands. A half-closed client first waits for its turn.
func (d *dispatcher) runCommand(cmd *command.Command, call command.Call) error {
	if d.in.conn.HasEnded() {
		queue := &d.session.serverState.proxyState.halfClosed
		if err := queue.beginTurn(call.Ctx, d.session.flush, d.in.conn.IsReset); err != nil {
			return err
		}
		defer queue.endTurn()
	}
	start := time.Now()
	d.table.Run(cmd, call)
	d.wasSlow = time.Since(start) > slowCommandTime
	return nil
}

// slowCommandTime is the duration above which the proxy sends a command's reply before it begins
// the next command. If the proxy has not read all bytes of a client, only a failed write shows that
// the client has left.
const slowCommandTime = 50 * time.Millisecond

// endCaching ends a CLIENT CACHING, also at the upstream, after the proxy itself has answered the
// command to which the CLIENT CACHING applied.
func (d *dispatcher) endCaching(ctx context.Context) {
	if !tracking.Of(d.client).CachingRequested() || d.client.Transaction.Open {
		return
	}
	tracking.Of(d.client).ClearCaching()
	// On an error the connection is lost, and its tracking with it.
	_, _ = d.asker.askWithReplies(ctx, "PING")
}
