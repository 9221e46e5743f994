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
	"redlock-proxy/quorum/place"
)

// route carries out what is decided about a command that is special. own and follow say what it is.
func (d *dispatcher) route(ctx context.Context, own *command.Command, follow string, words [][]byte) error {
	if d.isLockServer() {
		return d.runAlone(ctx, d.table.Route(d.situation(), words).Command, words)
	}
	d.locks.came = time.Time{}
	for d.locks.places != nil {
		began := time.Now()
		at, err := d.locks.placeFor(ctx, own, words)
		switch {
		case err != nil:
			return d.orRefuse(ctx, err)
		case at == place.Masters:
			var doomed bool
			switch doomed, err = d.locks.leaveStale(ctx, own, follow); {
			case err != nil:
			case doomed:
				err = d.forward(ctx, commands.Situation{Upstream: d.connection()}, nil, follow, words)
			default:
				err = d.onMasters(ctx, own, follow, words)
			}
		default:
			d.relay.stayed(d.locks.places)
			err = d.routeUpstream(ctx, own, follow, words)
		}
		if !errors.Is(err, errElsewhere) {
			return err
		}
		if d.locks.came.IsZero() {
			d.locks.came = began
		}
	}
	return d.routeBy(ctx, d.table, own, follow, words)
}

// routeUpstream is routeBy while the locks are at the upstream.
func (d *dispatcher) routeUpstream(ctx context.Context, own *command.Command, follow string, words [][]byte) error {
	tx := &d.client.Transaction
	if tx.Watching() { // of what was on the masters
		tx.Watched.Changed = true
	}
	if tx.Open || tx.Watching() && (follow == "multi" || syntax.Lower(words[0]) == "unwatch") {
		return d.routeBy(ctx, d.table, own, follow, words)
	}
	before := d.locks.unmoved.Lookup(words[0])
	if before != nil || !d.locks.touches(own, words) {
		return d.routeBy(ctx, d.locks.unmoved, before, follow, words)
	}
	if err := d.locks.carry(ctx, words); err != nil {
		return d.orRefuse(ctx, err)
	}
	defer d.relay.carried()
	at := d.situation()
	at.Upstream.Settled = follow == ""
	return d.forward(ctx, at, nil, follow, words)
}

// onMasters is routeBy while the locks are on the masters. What waits there for others is not
// waited for when they leave.
func (d *dispatcher) onMasters(ctx context.Context, own *command.Command, follow string, words [][]byte) error {
	waits := track.MayBlock(words[0]) || own != nil && own.MayWait(words)
	if waits || own != nil && !own.Keyed() { // PROXY MOVE among them
		return d.routeBy(ctx, d.table, own, follow, words)
	}
	if !d.relay.run(d.locks.places) && d.locks.touches(own, words) {
		return errElsewhere
	}
	defer d.relay.ran()
	return d.routeBy(ctx, d.table, own, follow, words)
}

// orRefuse answers with an error, unless that ends the session, or has the command be tried
// elsewhere.
func (d *dispatcher) orRefuse(ctx context.Context, err error) error {
	if errors.Is(err, errElsewhere) || errors.Is(err, errOver) || errors.Is(err, errClientLeft) || d.session.left || ctx.Err() != nil {
		return err
	}
	return d.sender.refuseHeld(ctx, failureOf(err))
}

// routeBy carries out what a table decides about a command.
func (d *dispatcher) routeBy(ctx context.Context, table *commands.Table, own *command.Command, follow string, words [][]byte) error {
	at := d.situation()
	for to := table.Route(at, words); ; {
		switch to.Verb {
		case commands.Settle:
			if err := errors.Join(d.asker.settle(ctx), d.asker.catchUp(ctx)); err != nil {
				return err
			}
			at.Upstream = d.connection()
		case commands.Connect:
			at.Connected, at.Down = true, d.whyDown(ctx)
		case commands.TakeOver:
			if err := d.takeOver(ctx, &at); err != nil {
				return err
			}
		case commands.Learn:
			if !at.Upstream.Multi && !d.asker.loggedIn(ctx, d.relay.know()) {
				return d.respond(ctx, to.Command, words, d.relay.know()) // with NOAUTH
			}
			to = table.Learn(ctx, at, words)
			continue
		case commands.Forward:
			return d.forward(ctx, at, own, follow, words)
		default:
			return d.conclude(ctx, at, to, words)
		}
		to = table.Route(at, words)
	}
}

// whyDown is why the upstream cannot be reached, if it cannot.
func (d *dispatcher) whyDown(ctx context.Context) string {
	var down *upstream.Error
	if errors.As(d.relay.open(ctx), &down) {
		return down.Reply()
	}
	return ""
}

// conclude does what ends here.
func (d *dispatcher) conclude(ctx context.Context, at commands.Situation, to commands.Decision, words [][]byte) error {
	switch to.Verb {
	case commands.Run, commands.Refuse, commands.Abort:
		err := d.respond(ctx, to.Command, words, d.relay.know())
		if at.Connected { // and in vain: the transaction is the proxy's own for this reason
			d.client.Transaction.Down = at.Down
		}
		return err
	case commands.Spoil:
		if err := d.asker.spoilMulti(ctx); err != nil {
			return err
		}
		before := len(d.out.Bytes)
		d.client.Refuse(to.Text, d.out)
		d.sender.afterOwn(before)
		return nil
	case commands.NoScript:
		return d.sender.sendFrame(track.Slot{N: d.sender.count()}, []byte(unknownScript))
	case commands.Quit:
		return io.EOF
	}
	d.session.shared.turned.warn(time.Now(), "client disconnected: lock command in an unknown state, after CLIENT REPLY with MULTI or SUBSCRIBE, or after SYNC",
		"client", d.client.Addr.String())
	return errOver
}

// forward has a command go to the upstream.
func (d *dispatcher) forward(ctx context.Context, at commands.Situation, own *command.Command, follow string, words [][]byte) error {
	if text := d.session.who.DeniedReason(words); text != "" {
		return d.sender.refuseHeld(ctx, text)
	}
	switch {
	case own != nil:
		d.table.Observe(words)
		return d.sender.sendWhole(track.Slot{N: d.sender.count()})
	case at.Upstream.Settled && follow == "watch": // in a transaction, which refuses it
		return d.sender.sendWhole(track.Slot{Kind: track.Watch, N: d.sender.count()})
	case at.Upstream.Settled:
		d.sender.plain += d.sender.count()
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

// unknownScript is answered with NOSCRIPT, in a transaction when that is done.
const unknownScript = "*3\r\n$7\r\nEVALSHA\r\n$40\r\nffffffffffffffffffffffffffffffffffffffff\r\n$1\r\n0\r\n"

// takeOver has the upstream's transaction become one of the proxy's own. Where the upstream does
// not let it go, it counts as one with other commands in it.
func (d *dispatcher) takeOver(ctx context.Context, at *commands.Situation) error {
	answer, err := d.asker.askInMulti(ctx, discard)
	switch {
	case err != nil:
		return err
	case answer[0] != '+':
		at.Upstream.Queued = true
		return nil
	}
	d.relay.teach((*track.State).EndMulti)
	d.client.Transaction.Begin()
	*at = d.situation()
	at.Upstream = d.connection()
	return nil
}
