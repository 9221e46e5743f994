package proxy

import (
	"context"
	"errors"

	"redlock-proxy/commands"
	"redlock-proxy/commands/command"
	"redlock-proxy/internal/resp"
	"redlock-proxy/proxy/track"
	"redlock-proxy/quorum/place"
)

// tooLong deals with a command that is not held whole: one of the proxy's own is
// refused, unless it belongs upstream; another one is forwarded after all.
func (d *dispatcher) tooLong(ctx context.Context, cmd *command.Command, follow string) error {
	if d.isLockServer() {
		return d.refuseLong(ctx, d.session.refuseTooLong)
	}
	if text := d.auth.tooLongFor(cmd, follow); text != "" {
		return d.refuseLong(ctx, func([][]byte) { d.client.Refuse(text, d.out) })
	}
	if d.keys.search.lock {
		if done, err := d.carryLong(ctx, follow); done || err != nil {
			return err
		}
	}
	if d.mustHold(cmd, follow) {
		return d.refuseLong(ctx, d.session.refuseTooLong)
	}
	if cmd == nil {
		d.passLong(follow)
		return nil
	}
	if err := d.asker.settle(ctx); err != nil {
		return err
	}
	at := d.situation()
	at.Upstream = d.connection()
	switch d.table.Route(at, [][]byte{[]byte(cmd.Name)}).Verb {
	case commands.Forward, commands.Spoil: // the upstream refuses it, if need be
		d.sender.passOn(d.sender.count())
		return nil
	}
	err := d.sender.discard(d.session.refuseTooLong)
	d.forgetFrame()
	return err
}

// passLong forwards a long command whose answer is learned from. Its first words
// tell enough.
func (d *dispatcher) passLong(follow string) {
	chunk := d.in.chunk()
	words, count := resp.Excerpt(chunk[:min(maxExcerpt, len(chunk))])
	s := track.SlotFor(follow, words, count)
	if d.sender.passOn(0); d.sender.count() > 0 {
		d.sender.slot, d.sender.counted = &s, 1
	}
}

// mustHold reports whether a command that is too long to be held cannot be forwarded
// all the same.
func (d *dispatcher) mustHold(own *command.Command, follow string) bool {
	return d.keys.search.lock || d.client.Transaction.Open || d.keys.routes && own == nil && (follow == "watch" || follow == "client")
}

// refuseLong refuses such a command, by what answers its first words.
func (d *dispatcher) refuseLong(ctx context.Context, answer func(words [][]byte)) error {
	if err := d.asker.spoil(ctx); err != nil {
		return err
	}
	err := d.sender.discard(answer)
	d.client.Transaction.Abort()
	d.forgetFrame()
	return err
}

// carryLong is routeUpstream of a command that is too long to be held; it reports false where the
// locks are not at the upstream.
func (d *dispatcher) carryLong(ctx context.Context, follow string) (bool, error) {
	if d.locks.places == nil || d.client.Transaction.Open {
		return false, nil
	}
	words, _ := resp.Excerpt(d.in.chunk()[:min(maxExcerpt, d.in.size())])
	at, known := d.locks.places.Placed()
	if !known || at.Place != place.Upstream || len(words) == 0 {
		return false, nil
	}
	if err := d.locks.carry(ctx, words); err != nil {
		if errors.Is(err, errElsewhere) {
			return false, nil
		}
		return true, d.refuseLong(ctx, func([][]byte) { d.client.Refuse(failureOf(err), d.out) })
	}
	d.carries = true
	d.passLong(follow)
	return true, nil
}
