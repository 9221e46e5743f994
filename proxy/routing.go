package proxy

import (
	"context"
	"errors"
	"io"
	"time"

	"redlock-proxy/commands"
	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/command"
	"redlock-proxy/internal/resp"
	"redlock-proxy/proxy/track"
	"redlock-proxy/proxy/upstream"
	"redlock-proxy/quorum/place"
)

// route carries out what is decided about a command that is special. own and follow say what it is.
func (f *forwarding) route(ctx context.Context, own *command.Command, follow string, words [][]byte) error {
	if f.isLockServer() {
		return f.runAlone(ctx, f.table.Route(f.situation(), words).Command, words)
	}
	f.locks.came = time.Time{}
	for f.locks.places != nil {
		began := time.Now()
		at, err := f.locks.placeFor(ctx, own, words)
		switch {
		case err != nil:
			return f.orRefuse(ctx, err)
		case at == place.Masters:
			var doomed bool
			switch doomed, err = f.locks.leaveStale(ctx, own, follow); {
			case err != nil:
			case doomed:
				err = f.forward(ctx, commands.Situation{Upstream: f.connection()}, nil, follow, words)
			default:
				err = f.onMasters(ctx, own, follow, words)
			}
		default:
			f.relay.stayed(f.locks.places)
			err = f.routeUpstream(ctx, own, follow, words)
		}
		if !errors.Is(err, errElsewhere) {
			return err
		}
		if f.locks.came.IsZero() {
			f.locks.came = began
		}
	}
	return f.routeBy(ctx, f.table, own, follow, words)
}

// routeUpstream is routeBy while the locks are at the upstream.
func (f *forwarding) routeUpstream(ctx context.Context, own *command.Command, follow string, words [][]byte) error {
	tx := &f.client.Transaction
	if tx.Watching() { // of what was on the masters
		tx.Watched.Changed = true
	}
	if tx.Open || tx.Watching() && (follow == "multi" || syntax.Lower(words[0]) == "unwatch") {
		return f.routeBy(ctx, f.table, own, follow, words)
	}
	before := f.locks.unmoved.Lookup(words[0])
	if before != nil || !f.locks.touches(own, words) {
		return f.routeBy(ctx, f.locks.unmoved, before, follow, words)
	}
	if err := f.locks.carry(ctx, words); err != nil {
		return f.orRefuse(ctx, err)
	}
	defer f.relay.carried()
	at := f.situation()
	at.Upstream.Settled = follow == ""
	return f.forward(ctx, at, nil, follow, words)
}

// onMasters is routeBy while the locks are on the masters. What waits there for others is not waited for when they leave.
func (f *forwarding) onMasters(ctx context.Context, own *command.Command, follow string, words [][]byte) error {
	waits := track.MayBlock(words[0]) || own != nil && own.MayWait(words)
	if waits || own != nil && !own.Keyed() { // PROXY MOVE among them
		return f.routeBy(ctx, f.table, own, follow, words)
	}
	if !f.relay.run(f.locks.places) && f.locks.touches(own, words) {
		return errElsewhere
	}
	defer f.relay.ran()
	return f.routeBy(ctx, f.table, own, follow, words)
}

// orRefuse answers with an error, unless that ends the session, or has the command be tried elsewhere.
func (f *forwarding) orRefuse(ctx context.Context, err error) error {
	if errors.Is(err, errElsewhere) || errors.Is(err, errOver) || errors.Is(err, errClientLeft) || f.session.left || ctx.Err() != nil {
		return err
	}
	return f.sending.refuseHeld(ctx, failureOf(err))
}

// routeBy carries out what a table decides about a command.
func (f *forwarding) routeBy(ctx context.Context, table *commands.Table, own *command.Command, follow string, words [][]byte) error {
	at := f.situation()
	for d := table.Route(at, words); ; {
		switch d.Verb {
		case commands.Settle:
			if err := errors.Join(f.asking.settle(ctx), f.asking.catchUp(ctx)); err != nil {
				return err
			}
			at.Upstream = f.connection()
		case commands.Connect:
			at.Connected, at.Down = true, f.whyDown(ctx)
		case commands.TakeOver:
			if err := f.takeOver(ctx, &at); err != nil {
				return err
			}
		case commands.Learn:
			if !at.Upstream.Multi && !f.asking.loggedIn(ctx, f.relay.know()) {
				return f.respond(ctx, d.Command, words, f.relay.know()) // with NOAUTH
			}
			d = table.Learn(ctx, at, words)
			continue
		case commands.Forward:
			return f.forward(ctx, at, own, follow, words)
		default:
			return f.carryOut(ctx, at, d, words)
		}
		d = table.Route(at, words)
	}
}

// situation is what is known of the client before the upstream has answered what was sent.
func (f *forwarding) situation() commands.Situation {
	tx := &f.client.Transaction
	return commands.Situation{InMulti: tx.Open, Watching: tx.Watching(), Down: tx.Down}
}

// connection is what is known of the client's connection, where the upstream has answered all.
func (f *forwarding) connection() commands.Connection {
	state := f.relay.know()
	return commands.Connection{
		Settled: true, Quitting: state.Quitting, Stream: state.Stream, Multi: state.Multi, Queued: state.Queued, Watching: state.Watching,
		Restricted: state.Restricted(), Unsure: state.ProtoUnknown, Monitoring: state.Monitoring, Silent: f.relay.silence != track.Speaking,
	}
}

// whyDown is why the upstream cannot be reached, if it cannot.
func (f *forwarding) whyDown(ctx context.Context) string {
	var down *upstream.Error
	if errors.As(f.relay.open(ctx), &down) {
		return down.Reply()
	}
	return ""
}

// carryOut does what ends here.
func (f *forwarding) carryOut(ctx context.Context, at commands.Situation, d commands.Decision, words [][]byte) error {
	switch d.Verb {
	case commands.Run, commands.Refuse, commands.Abort:
		err := f.respond(ctx, d.Command, words, f.relay.know())
		if at.Connected { // and in vain: the transaction is the proxy's own for this reason
			f.client.Transaction.Down = at.Down
		}
		return err
	case commands.Spoil:
		if err := f.asking.spoilMulti(ctx); err != nil {
			return err
		}
		before := len(f.out.Bytes)
		f.client.Refuse(d.Text, f.out)
		f.sending.afterOwn(before)
		return nil
	case commands.NoScript:
		return f.sending.sendFrame(track.Slot{N: f.sending.count()}, []byte(unknownScript))
	case commands.Quit:
		return io.EOF
	}
	f.session.server.turned.warn(time.Now(), "client disconnected: lock command in an unknown state, after CLIENT REPLY with MULTI or SUBSCRIBE, or after SYNC",
		"client", f.client.Addr.String())
	return errOver
}

// forward has a command go to the upstream.
func (f *forwarding) forward(ctx context.Context, at commands.Situation, own *command.Command, follow string, words [][]byte) error {
	if text := f.session.who.DeniedReason(words); text != "" {
		return f.sending.refuseHeld(ctx, text)
	}
	switch {
	case own != nil:
		f.table.Observe(words)
		return f.sending.sendWhole(track.Slot{N: f.sending.count()})
	case at.Upstream.Settled && follow == "watch": // in a transaction, which refuses it
		return f.sending.sendWhole(track.Slot{Kind: track.Watch, N: f.sending.count()})
	case at.Upstream.Settled:
		f.sending.plain += f.sending.count()
		return f.sending.pass(ctx, f.in.scanned)
	case follow == "reset" && len(words) == 1 && f.relay.open(ctx) == nil:
		f.client.Transaction.End()
	case follow == "exec" && len(words) > 1: // which ends a watch, too
		f.client.Transaction.Unwatch()
	}
	if err := f.follow(ctx, follow, words); err != nil || follow != "reset" || len(words) > 1 {
		return err
	}
	return f.login.afterReset(ctx)
}

// unknownScript is answered with NOSCRIPT, in a transaction when that is done.
const unknownScript = "*3\r\n$7\r\nEVALSHA\r\n$40\r\nffffffffffffffffffffffffffffffffffffffff\r\n$1\r\n0\r\n"

// takeOver has the upstream's transaction become one of the proxy's own. Where the upstream does not let
// it go, it counts as one with other commands in it.
func (f *forwarding) takeOver(ctx context.Context, at *commands.Situation) error {
	answer, err := f.asking.askInMulti(ctx, discard)
	switch {
	case err != nil:
		return err
	case answer[0] != '+':
		at.Upstream.Queued = true
		return nil
	}
	f.relay.teach((*track.State).EndMulti)
	f.client.Transaction.Begin()
	*at = f.situation()
	at.Upstream = f.connection()
	return nil
}

// mustHold reports whether a command that is too long to be held cannot be forwarded
// all the same.
func (f *forwarding) mustHold(own *command.Command, follow string) bool {
	return f.keys.lock || f.client.Transaction.Open || f.keys.routes && own == nil && (follow == "watch" || follow == "client")
}

// refuseLong refuses such a command, by what answers its first words.
func (f *forwarding) refuseLong(ctx context.Context, answer func(words [][]byte)) error {
	if err := f.asking.spoil(ctx); err != nil {
		return err
	}
	err := f.sending.discard(answer)
	f.client.Transaction.Abort()
	f.forgetFrame()
	return err
}

// carryLong is routeUpstream of a command that is too long to be held; it reports false where the locks are not at the upstream.
func (f *forwarding) carryLong(ctx context.Context, follow string) (bool, error) {
	if f.locks.places == nil || f.client.Transaction.Open {
		return false, nil
	}
	words, _ := resp.Excerpt(f.in.chunk()[:min(maxExcerpt, f.in.size())])
	at, known := f.locks.places.Placed()
	if !known || at.Place != place.Upstream || len(words) == 0 {
		return false, nil
	}
	if err := f.locks.carry(ctx, words); err != nil {
		if errors.Is(err, errElsewhere) {
			return false, nil
		}
		return true, f.refuseLong(ctx, func([][]byte) { f.client.Refuse(failureOf(err), f.out) })
	}
	f.carries = true
	f.passLong(follow)
	return true, nil
}
