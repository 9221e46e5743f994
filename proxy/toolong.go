package proxy

import (
	"context"
	"errors"

	"redlock-proxy/commands"
	"redlock-proxy/commands/command"
	"redlock-proxy/internal/resp"
	"redlock-proxy/proxy/track"
	"redlock-proxy/quorum/location"
)

// tooLong handles a command that is too long to be held. It refuses one of the proxy's own, unless
// it must go to the upstream, and forwards all other commands.
func (d *dispatcher) tooLong(ctx context.Context, cmd *command.Command, follow string) error {
	if d.isLockServer() {
		return d.refuseLong(ctx, d.session.refuseTooLong)
	}
	if text := d.auth.tooLongRefusal(cmd, follow); text != "" {
		return d.refuseLong(ctx, func([][]byte) { d.client.Refuse(text, d.out) })
	}
	if d.keys.search.held {
		if done, err := d.passLongLock(ctx, follow); done || err != nil {
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
	if err := d.asker.waitUpstream(ctx); err != nil {
		return err
	}
	at := d.situation()
	at.Upstream = d.connection()
	switch d.table.Route(at, [][]byte{[]byte(cmd.Name)}).Verb {
	case commands.Forward, commands.AbortUpstreamTx: // the upstream refuses it, if need be
		d.sender.forwardFrame(d.sender.countReply())
		return nil
	}
	err := d.sender.discard(d.session.refuseTooLong)
	d.forgetFrame()
	return err
}

// passLong forwards a long command whose reply may change the connection's state. Its first words
// are enough to know how.
func (d *dispatcher) passLong(follow string) {
	chunk := d.in.chunk()
	words, count := resp.Excerpt(chunk[:min(maxExcerpt, len(chunk))])
	s := track.SlotFor(follow, words, count)
	if d.sender.forwardFrame(0); d.sender.countReply() > 0 {
		d.sender.unsentExpected, d.sender.expected = &s, 1
	}
}

// mustHold reports whether a command must be refused if it is too long to be held.
func (d *dispatcher) mustHold(own *command.Command, follow string) bool {
	return d.keys.search.held || d.client.Transaction.Open ||
		d.keys.hasLockKeys && own == nil && (follow == "watch" || follow == "client")
}

// refuseLong discards a command that is too long to be held, and answers it by its first words.
func (d *dispatcher) refuseLong(ctx context.Context, answer func(words [][]byte)) error {
	if err := d.asker.abortTx(ctx); err != nil {
		return err
	}
	err := d.sender.discard(answer)
	d.client.Transaction.Abort()
	d.forgetFrame()
	return err
}

// passLongLock is routeUpstream for a command that is too long to be held. It reports false if the
// locks are not at the upstream.
func (d *dispatcher) passLongLock(ctx context.Context, follow string) (bool, error) {
	if d.locks.places == nil || d.client.Transaction.Open {
		return false, nil
	}
	words, _ := resp.Excerpt(d.in.chunk()[:min(maxExcerpt, d.in.size())])
	at, known := d.locks.places.CurrentLocation()
	if !known || at.Place != location.Upstream || len(words) == 0 {
		return false, nil
	}
	if err := d.locks.prepareUpstream(ctx, words); err != nil {
		if errors.Is(err, errLocksMoved) {
			return false, nil
		}
		return true, d.refuseLong(ctx, func([][]byte) { d.client.Refuse(errorReply(err), d.out) })
	}
	d.sendingLockCommand = true
	d.passLong(follow)
	return true, nil
}
