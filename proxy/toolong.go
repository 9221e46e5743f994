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

// tooLong handles a command that is too long to buffer. It refuses commands that the proxy must see
// whole, and forwards all other commands.
func (d *dispatcher) tooLong(ctx context.Context, cmd *command.Command, stateCmd string) error {
	if d.isLockServer() {
		return d.refuseLong(ctx, d.session.refuseTooLong)
	}
	if text := d.auth.tooLongRefusal(cmd, stateCmd); text != "" {
		return d.refuseLong(ctx, func([][]byte) { d.client.Refuse(text, d.out) })
	}
	if d.keys.search.blocked {
		if handled, err := d.forwardLongLock(ctx, stateCmd); handled || err != nil {
			return err
		}
	}
	if d.mustBuffer(cmd, stateCmd) {
		return d.refuseLong(ctx, d.session.refuseTooLong)
	}
	if cmd == nil {
		d.forwardLong(stateCmd)
		return nil
	}
	if err := d.asker.waitUpstream(ctx); err != nil {
		return err
	}
	at := d.situation()
	at.Upstream = d.connection()
	switch d.table.Route(at, [][]byte{[]byte(cmd.Name)}).Verb {
	case commands.Forward, commands.AbortUpstreamTx: // the upstream refuses an invalid command
		d.sender.markForwarded(d.sender.countReply())
		return nil
	}
	err := d.sender.discard(d.session.refuseTooLong)
	d.resetFrame()
	return err
}

// forwardLong forwards a long command whose reply may change the connection's state. The command's
// first words determine the expected replies.
func (d *dispatcher) forwardLong(stateCmd string) {
	chunk := d.in.chunk()
	words, count := resp.Excerpt(chunk[:min(maxExcerpt, len(chunk))])
	s := track.ExpectedFor(stateCmd, words, count)
	if d.sender.markForwarded(0); d.sender.countReply() > 0 {
		d.sender.unsentExpected, d.sender.expectedReplies = &s, 1
	}
}

// mustBuffer reports whether a command must be refused if it is too long to buffer.
func (d *dispatcher) mustBuffer(ownCmd *command.Command, stateCmd string) bool {
	return d.keys.search.blocked || d.client.Transaction.Open ||
		d.keys.hasLockKeys && ownCmd == nil && (stateCmd == "watch" || stateCmd == "client")
}

// refuseLong discards a command that is too long to buffer, and answers it by its first words.
func (d *dispatcher) refuseLong(ctx context.Context, answer func(words [][]byte)) error {
	if err := d.asker.abortTx(ctx); err != nil {
		return err
	}
	err := d.sender.discard(answer)
	d.client.Transaction.Abort()
	d.resetFrame()
	return err
}

// forwardLongLock forwards a command on lock keys that is too long to buffer. It returns false if
// the locks are not at the upstream.
func (d *dispatcher) forwardLongLock(ctx context.Context, stateCmd string) (bool, error) {
	if d.router.lockLocation == nil || d.client.Transaction.Open {
		return false, nil
	}
	words, _ := resp.Excerpt(d.in.chunk()[:min(maxExcerpt, d.in.size())])
	at, known := d.router.lockLocation.CurrentLocation()
	if !known || at.Place != location.Upstream || len(words) == 0 {
		return false, nil
	}
	if err := d.router.prepareUpstream(ctx, words); err != nil {
		if errors.Is(err, errLocksMoved) {
			return false, nil
		}
		return true, d.refuseLong(ctx, func([][]byte) { d.client.Refuse(errorReply(err), d.out) })
	}
	d.sendingLockCommand = true
	d.forwardLong(stateCmd)
	return true, nil
}
