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

// route runs or forwards a special command. own is its table entry, if it is one of the proxy's own
// commands. follow is its name, if its reply may change the connection's state.
func (d *dispatcher) route(ctx context.Context, own *command.Command, follow string, words [][]byte) error {
	if d.isLockServer() {
		return d.runAlone(ctx, d.table.Route(d.situation(), words).Command, words)
	}
	d.locks.arrived = time.Time{}
	for d.locks.places != nil {
		began := time.Now()
		at, err := d.locks.placeFor(ctx, own, words)
		switch {
		case err != nil:
			return d.refuseOrReturn(ctx, err)
		case at == location.Masters:
			var queueOnly bool
			switch queueOnly, err = d.locks.dropMovedWatch(ctx, own, follow); {
			case err != nil:
			case queueOnly:
				err = d.forward(ctx, commands.Situation{Upstream: d.connection()}, nil, follow, words)
			default:
				err = d.routeMasters(ctx, own, follow, words)
			}
		default:
			d.relay.revalidateWatch(d.locks.places)
			err = d.routeUpstream(ctx, own, follow, words)
		}
		if !errors.Is(err, errLocksMoved) {
			return err
		}
		if d.locks.arrived.IsZero() {
			d.locks.arrived = began
		}
	}
	return d.routeBy(ctx, d.table, own, follow, words)
}

// routeUpstream is routeBy while the locks are at the upstream.
func (d *dispatcher) routeUpstream(ctx context.Context, own *command.Command, follow string, words [][]byte) error {
	tx := &d.client.Transaction
	if tx.Watching() { // keys that were on the masters
		tx.Watched.Changed = true
	}
	if tx.Open || tx.Watching() && (follow == "multi" || syntax.Lower(words[0]) == "unwatch") {
		return d.routeBy(ctx, d.table, own, follow, words)
	}
	before := d.locks.unmoved.Lookup(words[0])
	if before != nil || !d.locks.touchesLockKeys(own, words) {
		return d.routeBy(ctx, d.locks.unmoved, before, follow, words)
	}
	if err := d.locks.prepareUpstream(ctx, words); err != nil {
		return d.refuseOrReturn(ctx, err)
	}
	defer d.relay.lockCommandSent()
	at := d.situation()
	at.Upstream.Settled = follow == ""
	return d.forward(ctx, at, nil, follow, words)
}

// routeMasters is routeBy while the locks are on the masters. A move does not wait for commands
// that may wait for other clients.
func (d *dispatcher) routeMasters(ctx context.Context, own *command.Command, follow string, words [][]byte) error {
	waits := track.MayBlock(words[0]) || own != nil && own.MayWait(words)
	if waits || own != nil && !own.Keyed() { // such as PROXY MOVE
		return d.routeBy(ctx, d.table, own, follow, words)
	}
	if !d.relay.beginOnMasters(d.locks.places) && d.locks.touchesLockKeys(own, words) {
		return errLocksMoved
	}
	defer d.relay.endOnMasters()
	return d.routeBy(ctx, d.table, own, follow, words)
}

// refuseOrReturn answers the command with an error. It returns the error instead if the error ends
// the session or makes the command run again.
func (d *dispatcher) refuseOrReturn(ctx context.Context, err error) error {
	if errors.Is(err, errLocksMoved) || errors.Is(err, errStateLost) ||
		errors.Is(err, errClientLeft) || d.session.left || ctx.Err() != nil {
		return err
	}
	return d.sender.refuseHeld(ctx, errorReply(err))
}

// routeBy carries out a table's decisions about a command.
func (d *dispatcher) routeBy(
	ctx context.Context, table *commands.Table, own *command.Command, follow string, words [][]byte,
) error {
	at := d.situation()
	for to := table.Route(at, words); ; {
		switch to.Verb {
		case commands.WaitUpstream:
			if err := errors.Join(d.asker.waitUpstream(ctx), d.asker.awaitUnanswered(ctx)); err != nil {
				return err
			}
			at.Upstream = d.connection()
		case commands.Connect:
			at.Connected, at.Down = true, d.downReason(ctx)
		case commands.AdoptTx:
			if err := d.adoptTx(ctx, &at); err != nil {
				return err
			}
		case commands.Learn:
			if !at.Upstream.Multi && !d.asker.loggedIn(ctx, d.relay.state()) {
				return d.respond(ctx, to.Command, words, d.relay.state()) // with NOAUTH
			}
			to = table.ResolveScript(ctx, at, words)
			continue
		case commands.Forward:
			return d.forward(ctx, at, own, follow, words)
		default:
			return d.finish(ctx, at, to, words)
		}
		to = table.Route(at, words)
	}
}

// downReason returns why the upstream cannot be reached; empty if it can.
func (d *dispatcher) downReason(ctx context.Context) string {
	var down *upstream.Error
	if errors.As(d.relay.open(ctx), &down) {
		return down.Reply()
	}
	return ""
}

// finish carries out a decision that ends the command.
func (d *dispatcher) finish(ctx context.Context, at commands.Situation, to commands.Decision, words [][]byte) error {
	switch to.Verb {
	case commands.Run, commands.Refuse, commands.Abort:
		err := d.respond(ctx, to.Command, words, d.relay.state())
		if at.Connected { // connecting failed, so the transaction is the proxy's own
			d.client.Transaction.Down = at.Down
		}
		return err
	case commands.AbortUpstreamTx:
		if err := d.asker.abortUpstreamTx(ctx); err != nil {
			return err
		}
		before := len(d.out.Bytes)
		d.client.Refuse(to.Text, d.out)
		d.sender.applyReplyMode(before)
		return nil
	case commands.NoScript:
		return d.sender.sendFrame(track.Expected{N: d.sender.countReply()}, []byte(unknownScript))
	case commands.Quit:
		return io.EOF
	}
	d.session.shared.clientLog.warn(time.Now(),
		"client disconnected: lock command in an unknown state, after CLIENT REPLY with MULTI or SUBSCRIBE, or after SYNC",
		"client", d.client.Addr.String())
	return errStateLost
}

// forward sends a command to the upstream.
func (d *dispatcher) forward(
	ctx context.Context, at commands.Situation, own *command.Command, follow string, words [][]byte,
) error {
	if text := d.session.login.DeniedReason(words); text != "" {
		return d.sender.refuseHeld(ctx, text)
	}
	switch {
	case own != nil:
		d.table.Observe(words)
		return d.sender.sendWhole(track.Expected{N: d.sender.countReply()})
	case at.Upstream.Settled && follow == "watch": // within a transaction, which refuses it
		return d.sender.sendWhole(track.Expected{Kind: track.Watch, N: d.sender.countReply()})
	case at.Upstream.Settled:
		d.sender.plainCount += d.sender.countReply()
		return d.sender.pass(ctx, d.in.scanned)
	case follow == "reset" && len(words) == 1 && d.relay.open(ctx) == nil:
		d.client.Transaction.End()
	case follow == "exec" && len(words) > 1: // which ends a watch, too
		d.client.Transaction.Unwatch()
	}
	if err := d.follow(ctx, follow, words); err != nil || follow != "reset" || len(words) > 1 {
		return err
	}
	return d.auth.afterReset(ctx)
}

// unknownScript makes the upstream reply NOSCRIPT, in a transaction as part of EXEC's reply.
const unknownScript = "*3\r\n$7\r\nEVALSHA\r\n$40\r\nffffffffffffffffffffffffffffffffffffffff\r\n$1\r\n0\r\n"

// adoptTx turns the upstream's transaction into one of the proxy's own. If the upstream refuses to
// discard it, it counts as one that contains other commands.
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
