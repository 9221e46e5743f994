package proxy

import (
	"context"
	"errors"
	"io"
	"time"

	"redlock-proxy/commands"
	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/command"
	"redlock-proxy/proxy/track"
	"redlock-proxy/proxy/upstream"
	"redlock-proxy/quorum/location"
)

// route runs or forwards a command that requires a decision. ownCmd is the command's table entry,
// if it is one of the proxy's own commands. stateCmd is the command's name, if its reply may change
// the connection's state.
func (d *dispatcher) route(ctx context.Context, ownCmd *command.Command, stateCmd string, words [][]byte) error {
	if d.isLockServer() {
		return d.runAtLockServer(ctx, d.table.Route(d.situation(), words).Command, words)
	}
	if d.relay.hasTooManyAwaited() {
		if err := d.asker.waitUpstream(ctx); err != nil {
			return err
		}
	}
	d.router.arrivedAt = time.Time{}
	for d.router.lockLocation != nil {
		began := time.Now()
		at, err := d.router.locationFor(ctx, ownCmd, words)
		if err != nil {
			return d.refuseOrReturn(ctx, err)
		}
		d.relay.revalidateWatch(d.router.lockLocation)
		switch queueOnly, dropErr := d.router.dropMovedWatch(ctx, ownCmd, stateCmd); {
		case dropErr != nil:
			err = dropErr
		case queueOnly:
			err = d.forward(ctx, commands.Situation{Upstream: d.connection()}, nil, stateCmd, words)
		case at == location.Masters:
			err = d.routeMasters(ctx, ownCmd, stateCmd, words)
		default:
			err = d.routeUpstream(ctx, ownCmd, stateCmd, words)
		}
		if !errors.Is(err, errLocksMoved) {
			return err
		}
		if d.router.arrivedAt.IsZero() {
			d.router.arrivedAt = began
		}
	}
	return d.routeByTable(ctx, d.table, ownCmd, stateCmd, words)
}

// routeUpstream routes a command while the locks are at the upstream.
func (d *dispatcher) routeUpstream(ctx context.Context, ownCmd *command.Command, stateCmd string, words [][]byte) error {
	tx := &d.client.Transaction
	if tx.HasWatchedKeys() { // the watched keys were on the masters
		tx.Watched.Changed = true
	}
	neverForwards := ownCmd != nil && ownCmd.NeverForwardsCall(words)
	if tx.Open || neverForwards || tx.HasWatchedKeys() && (stateCmd == "multi" || syntax.Lower(words[0]) == "unwatch") {
		return d.routeByTable(ctx, d.table, ownCmd, stateCmd, words)
	}
	upstreamCmd := d.router.upstreamTable.Lookup(words[0])
	if upstreamCmd != nil || !d.router.touchesLockKeys(ownCmd, words) {
		return d.routeByTable(ctx, d.router.upstreamTable, upstreamCmd, stateCmd, words)
	}
	if err := d.router.prepareUpstream(ctx, words); err != nil {
		return d.refuseOrReturn(ctx, err)
	}
	defer d.relay.markLockCommandSent()
	at := d.situation()
	at.Upstream.Settled = stateCmd == ""
	return d.forward(ctx, at, nil, stateCmd, words)
}

// routeMasters routes a command while the locks are on the masters. A move does not wait for
// commands that may wait for other clients.
func (d *dispatcher) routeMasters(ctx context.Context, ownCmd *command.Command, stateCmd string, words [][]byte) error {
	mayWait := track.MayBlock(words[0]) || ownCmd != nil && ownCmd.MayWait(words)
	if mayWait || ownCmd != nil && !ownCmd.HasKeys() { // such as PROXY MOVE
		return d.routeByTable(ctx, d.table, ownCmd, stateCmd, words)
	}
	if !d.relay.beginOnMasters(d.router.lockLocation) && d.router.touchesLockKeys(ownCmd, words) {
		return errLocksMoved
	}
	defer d.relay.endOnMasters()
	return d.routeByTable(ctx, d.table, ownCmd, stateCmd, words)
}

// refuseOrReturn answers the command with err. It returns err instead if that error ends the
// session, or makes the command run again.
func (d *dispatcher) refuseOrReturn(ctx context.Context, err error) error {
	if errors.Is(err, errLocksMoved) || errors.Is(err, errStateLost) ||
		errors.Is(err, errClientDisconnected) || d.session.clientDisconnected || ctx.Err() != nil {
		return err
	}
	return d.sender.refuseUnsent(ctx, errorReply(err))
}

// routeByTable carries out a table's decisions about a command.
func (d *dispatcher) routeByTable(
	ctx context.Context, table *commands.Table, ownCmd *command.Command, stateCmd string, words [][]byte,
) error {
	at := d.situation()
	for decision := table.Route(at, words); ; {
		switch decision.Action {
		case commands.WaitUpstream:
			if err := errors.Join(d.asker.waitUpstream(ctx), d.asker.awaitReplylessCommands(ctx)); err != nil {
				return err
			}
			at.Upstream = d.connection()
		case commands.Connect:
			at.Connected, at.UpstreamError = true, d.downReason(ctx)
		case commands.AdoptTx:
			if err := d.adoptTx(ctx, &at); err != nil {
				return err
			}
		case commands.Resolve:
			if !at.Upstream.Multi && !d.asker.loggedIn(ctx, d.relay.state()) {
				return d.respond(ctx, decision.Command, words, d.relay.state()) // replies NOAUTH
			}
			decision = table.ResolveScript(ctx, d.client, at, words)
			continue
		case commands.Forward:
			return d.forward(ctx, at, ownCmd, stateCmd, words)
		default:
			return d.finish(ctx, at, decision, words)
		}
		decision = table.Route(at, words)
	}
}

// downReason returns the reason why the upstream cannot be reached; empty if it can be reached.
func (d *dispatcher) downReason(ctx context.Context) string {
	var upErr *upstream.Error
	if errors.As(d.relay.open(ctx), &upErr) {
		return upErr.Reply()
	}
	return ""
}

// finish carries out a decision that ends the command.
func (d *dispatcher) finish(ctx context.Context, at commands.Situation, decision commands.Decision, words [][]byte) error {
	switch decision.Action {
	case commands.Run, commands.Refuse, commands.Abort:
		err := d.respond(ctx, decision.Command, words, d.relay.state())
		if at.Connected { // connecting failed, so the transaction is the proxy's own
			d.client.Transaction.UpstreamError = at.UpstreamError
		}
		return err
	case commands.AbortUpstreamTx:
		if err := d.asker.abortUpstreamTx(ctx); err != nil {
			return err
		}
		replyStart := len(d.out.Bytes)
		d.client.Refuse(decision.Text, d.out)
		d.sender.applyReplyMode(replyStart)
		return nil
	case commands.NoScript:
		return d.sender.sendFrame(track.ExpectedReply{N: d.sender.countReply()}, []byte(unknownScript))
	case commands.Quit:
		return io.EOF
	}
	d.session.serverState.proxyState.clientLog.Warn(time.Now(),
		"client disconnected: lock command in an unknown state, after CLIENT REPLY with MULTI or SUBSCRIBE, or after SYNC",
		"client", d.client.Addr.String())
	return errStateLost
}

// forward sends a command to the upstream.
func (d *dispatcher) forward(
	ctx context.Context, at commands.Situation, ownCmd *command.Command, stateCmd string, words [][]byte,
) error {
	if text := d.session.login.DeniedReason(words); text != "" {
		return d.sender.refuseUnsent(ctx, text)
	}
	switch {
	case ownCmd != nil:
		d.table.Observe(words)
		return d.sender.sendCommand(track.ExpectedReply{N: d.sender.countReply()})
	// A transaction at the upstream refuses WATCH.
	case at.Upstream.Settled && stateCmd == "watch":
		return d.sender.sendCommand(track.ExpectedReply{Kind: track.Watch, N: d.sender.countReply()})
	case at.Upstream.Settled:
		d.sender.plainCount += d.sender.countReply()
		return d.sender.sendUpTo(ctx, d.in.scanEnd)
	case stateCmd == "reset" && len(words) == 1 && d.relay.open(ctx) == nil:
		d.client.Transaction.End()
	case stateCmd == "exec" && len(words) > 1: // a refused EXEC ends a watch, too
		d.client.Transaction.Unwatch()
	}
	if err := d.forwardStateCommand(ctx, stateCmd, words); err != nil || stateCmd != "reset" || len(words) > 1 {
		return err
	}
	return d.auth.logOutAfterReset(ctx)
}

// unknownScript makes the upstream reply NOSCRIPT, in a transaction as part of EXEC's reply.
const unknownScript = "*3\r\n$7\r\nEVALSHA\r\n$40\r\nffffffffffffffffffffffffffffffffffffffff\r\n$1\r\n0\r\n"

// adoptTx makes the upstream discard its empty transaction, and begins a transaction at the proxy.
// If the upstream refuses that, the upstream's transaction counts as a transaction with queued
// commands.
func (d *dispatcher) adoptTx(ctx context.Context, at *commands.Situation) error {
	answer, err := d.asker.askInMulti(ctx, discard)
	switch {
	case err != nil:
		return err
	case answer[0] != '+':
		at.Upstream.Queued = true
		return nil
	}
	d.relay.updateState((*track.State).EndMulti)
	d.client.Transaction.Begin()
	*at = d.situation()
	at.Upstream = d.connection()
	return nil
}
