package proxy

import (
	"context"
	"errors"

	"redlock-proxy/commands"
	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/command"
	"redlock-proxy/internal/resp"
	"redlock-proxy/proxy/track"
	"redlock-proxy/quorum/location"
)

// handleTooLong handles a command that is too long to buffer. It refuses commands that the proxy
// must see whole, and forwards all other commands.
func (d *dispatcher) handleTooLong(ctx context.Context, cmd *command.Command, stateCmd string) error {
	if d.isLockServer() {
		return d.refuseLongCommand(ctx, d.session.refuseTooLong)
	}
	if names, _, _ := resp.Words(nil, d.in.chunk(), 1); len(names) == 0 { // no server knows such a long name
		return d.refuseLongCommand(ctx, func(words [][]byte) { d.client.Refuse(syntax.UnknownCommand(words), d.out) })
	}
	if text := d.auth.tooLongRefusal(cmd, stateCmd); text != "" {
		return d.refuseLongCommand(ctx, func([][]byte) { d.client.Refuse(text, d.out) })
	}
	if d.keySearch.search.blocked {
		if handled, err := d.forwardLongLockCommand(ctx, stateCmd); handled || err != nil {
			return err
		}
	}
	if d.mustBuffer(cmd, stateCmd) {
		return d.refuseLongCommand(ctx, d.session.refuseTooLong)
	}
	if cmd == nil {
		d.forwardLongCommand(stateCmd)
		return nil
	}
	if err := d.asker.waitUpstream(ctx); err != nil {
		return err
	}
	at := d.situation()
	at.Upstream = d.connection()
	words, _ := resp.Excerpt(d.in.chunk()[:min(maxExcerpt, d.in.size())])
	switch d.table.Route(at, words).Action {
	case commands.Forward, commands.AbortUpstreamTx: // the upstream refuses an invalid command
		d.sender.markForwarded(d.sender.countReply())
		return nil
	}
	err := d.sender.discard(d.session.refuseTooLong)
	d.resetFrame()
	return err
}

// forwardLongCommand forwards a long command whose reply may change the connection's state. The
// command's first words determine the expected replies.
func (d *dispatcher) forwardLongCommand(stateCmd string) {
	chunk := d.in.chunk()
	words, count := resp.Excerpt(chunk[:min(maxExcerpt, len(chunk))])
	s := track.ExpectedReplyFor(stateCmd, words, count)
	if d.sender.markForwarded(0); d.sender.countReply() > 0 {
		d.sender.unsentExpected, d.sender.expectedReplies = &s, 1
	}
}

// mustBuffer reports whether a command must be refused if it is too long to buffer.
func (d *dispatcher) mustBuffer(ownCmd *command.Command, stateCmd string) bool {
	return d.keySearch.search.blocked || d.client.Transaction.Open ||
		d.keySearch.hasLockKeys && ownCmd == nil && (stateCmd == "watch" || stateCmd == "client")
}

// refuseLongCommand discards a command that is too long to buffer, and answers it by its first
// words.
func (d *dispatcher) refuseLongCommand(ctx context.Context, answer func(words [][]byte)) error {
	if err := d.asker.abortTx(ctx); err != nil {
		return err
	}
	err := d.sender.discard(answer)
	d.client.Transaction.Abort()
	d.resetFrame()
	return err
}

// forwardLongLockCommand forwards a command on lock keys that is too long to buffer. It returns
// false if the locks are not at the upstream.
func (d *dispatcher) forwardLongLockCommand(ctx context.Context, stateCmd string) (bool, error) {
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
		return true, d.refuseLongCommand(ctx, func([][]byte) { d.client.Refuse(errorReply(err), d.out) })
	}
	d.sendingLockCommand = true
	d.forwardLongCommand(stateCmd)
	return true, nil
}
