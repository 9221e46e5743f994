package proxy

import (
	"context"
	"errors"
	"io"
	"time"

	"redlock-proxy/commands"
	"redlock-proxy/commands/command"
	"redlock-proxy/proxy/track"
	"redlock-proxy/proxy/upstream"
	"redlock-proxy/quorum/place"
)

// route carries out what is decided about a command that is special. own and follow say what it is.
func (f *forwarding) route(ctx context.Context, own *command.Command, follow string, words [][]byte) error {
	f.came = time.Time{}
	for f.places != nil {
		began := time.Now()
		at, err := f.placeFor(ctx, own, words)
		switch {
		case err != nil:
			return f.orRefuse(ctx, err)
		case at == place.Masters:
			var doomed bool
			switch doomed, err = f.leaveStale(ctx, own, follow); {
			case err != nil:
			case doomed:
				err = f.forward(ctx, commands.Situation{Upstream: f.connection()}, nil, follow, words)
			default:
				err = f.onMasters(ctx, own, follow, words)
			}
		default:
			f.relay.stayed(f.places)
			err = f.routeUpstream(ctx, own, follow, words)
		}
		if !errors.Is(err, errElsewhere) {
			return err
		}
		if f.came.IsZero() {
			f.came = began
		}
	}
	return f.routeBy(ctx, f.table, own, follow, words)
}

// routeBy carries out what a table decides about a command.
func (f *forwarding) routeBy(ctx context.Context, table *commands.Table, own *command.Command, follow string, words [][]byte) error {
	at := f.situation()
	for d := table.Route(at, words); ; {
		switch d.Verb {
		case commands.Settle:
			if err := errors.Join(f.settle(ctx), f.catchUp(ctx)); err != nil {
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
			if !at.Upstream.Multi && !f.loggedIn(ctx, f.relay.know()) {
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
	tx := f.client.Transaction
	return commands.Situation{InMulti: tx.Open, Watching: tx.Watching(), Down: tx.Down}
}

// connection is what is known of the client's connection, where the upstream has answered all.
func (f *forwarding) connection() commands.Connection {
	state := f.relay.know()
	return commands.Connection{
		Settled: true, Quitting: state.Quitting, Stream: state.Stream, Multi: state.Multi, Queued: state.Queued, Watching: state.Watching,
		Restricted: state.Restricted() && !state.ProtoUnknown, Monitoring: state.Monitoring, Silent: f.relay.silence != track.Speaking,
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
		if err := f.spoilMulti(ctx); err != nil {
			return err
		}
		before := len(f.out.Bytes)
		f.client.Refuse(d.Text, f.out)
		f.afterOwn(before)
		return nil
	case commands.NoScript:
		return f.sendInstead(unknownScript)
	case commands.Quit:
		return io.EOF
	}
	return errOver
}

// forward has a command go to the upstream.
func (f *forwarding) forward(ctx context.Context, at commands.Situation, own *command.Command, follow string, words [][]byte) error {
	if text := f.session.who.DeniedReason(words); text != "" {
		return f.refuseByUser(ctx, text)
	}
	switch {
	case follow == "quit" && f.relay.shared():
		return f.quitTogether(ctx)
	case own != nil:
		f.table.Observe(words)
		return f.sendWhole(track.Slot{N: f.count()})
	case at.Upstream.Settled && follow == "watch": // in a transaction, which refuses it
		return f.sendWhole(track.Slot{Kind: track.Watch, N: f.count()})
	case at.Upstream.Settled:
		if err := f.part(ctx); err != nil {
			return err
		}
		f.plain += f.count()
		return f.pass(ctx, f.in.scanned)
	case follow == "reset" && len(words) == 1 && f.relay.open(ctx) == nil:
		f.client.Transaction.End()
	case follow == "exec" && len(words) > 1: // which ends a watch, too
		f.client.Transaction.Unwatch()
	}
	if err := f.follow(ctx, follow, words); err != nil || follow != "reset" || len(words) > 1 {
		return err
	}
	return f.afterReset(ctx)
}

// unknownScript is answered with NOSCRIPT, in a transaction when that is done.
const unknownScript = "*3\r\n$7\r\nEVALSHA\r\n$40\r\nffffffffffffffffffffffffffffffffffffffff\r\n$1\r\n0\r\n"

// takeOver has the upstream's transaction become one of the proxy's own. Where the upstream does not let
// it go, it counts as one with other commands in it.
func (f *forwarding) takeOver(ctx context.Context, at *commands.Situation) error {
	answer, err := f.askInMulti(ctx, discard)
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
	return f.keys.lock || f.client.Transaction.Open || f.routes && own == nil && (follow == "watch" || follow == "client")
}

// refuseLong refuses such a command, by what answers its first words.
func (f *forwarding) refuseLong(ctx context.Context, answer func(words [][]byte)) error {
	if err := f.settle(ctx); err != nil {
		return err
	}
	state := f.relay.know()
	switch {
	case state.Quitting:
		return io.EOF
	case state.Stream:
		return errOver
	case state.Multi:
		if err := f.spoilMulti(ctx); err != nil {
			return err
		}
	}
	before := len(f.out.Bytes)
	err := f.session.discard(answer)
	f.client.Transaction.Abort()
	f.frame = f.in.start
	f.forgetFrame()
	f.afterOwn(before)
	return err
}
