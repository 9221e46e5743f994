package proxy

import (
	"context"
	"errors"
	"io"

	"redlock-proxy/commands"
)

// route deals with a command that is special, where lock keys are configured. own
// and follow say what it is without them.
func (f *forwarding) route(ctx context.Context, own *commands.Command, follow string, words [][]byte) error {
	if cmd := f.choose(own, follow, words); cmd != nil {
		return f.lockCommand(ctx, cmd, follow, words)
	}
	switch {
	case own != nil:
		return f.own(ctx, own, words)
	case follow == "multi":
		return f.multi(ctx, words)
	case follow == "reset":
		if len(words) == 1 && f.relay.open(ctx) == nil {
			f.client.EndMulti()
		}
	case follow == "exec" && len(words) > 1: // which ends a watch, too
		f.client.Unwatch()
	}
	return f.follow(ctx, follow, words)
}

// choose finds what runs a command that is for the lock masters, or is refused for
// their sake; nil for any other one.
func (f *forwarding) choose(own *commands.Command, follow string, words [][]byte) *commands.Command {
	c := &f.client
	switch {
	case c.InMulti():
		return f.table.MultiCommand(c, words)
	case own != nil:
		return nil
	case follow == "multi" && c.Watching():
		return f.table.OwnMulti()
	case follow == "unwatch" && c.Watching():
		return f.table.OwnUnwatch()
	case follow == "watch":
		return f.table.WatchCommand(c, words)
	case follow == "":
		return f.table.LockCommand(words)
	}
	return nil
}

// lockCommand runs a command for the lock masters, when its turn has come. Where the
// upstream's answers cannot be followed any more there is no telling whether it is
// in a transaction, nor a place for an answer: then the connection ends.
func (f *forwarding) lockCommand(ctx context.Context, cmd *commands.Command, follow string, words [][]byte) error {
	if err := f.settle(ctx); err != nil {
		return err
	}
	switch state := f.relay.know(); {
	case state.quitting:
		return io.EOF
	case state.stream:
		return errOver
	case state.multi && follow == "watch": // which the upstream refuses
		return f.sendWhole(slot{kind: slotWatch, n: f.count()})
	case state.multi:
		return f.inUpstreamsMulti(ctx, cmd, words, state)
	case state.watching && follow == "watch":
		return f.respond(ctx, commands.MixedWatch(), words, state)
	default:
		return f.respond(ctx, cmd, words, state)
	}
}

// multi begins a transaction: the upstream's, unless that cannot be reached. For
// then a lock must still be released by one.
func (f *forwarding) multi(ctx context.Context, words [][]byte) error {
	var down *upstreamError
	if err := f.relay.open(ctx); !errors.As(err, &down) {
		return f.follow(ctx, "multi", words)
	}
	err := f.lockCommand(ctx, f.table.OwnMulti(), "multi", words)
	f.client.NoUpstreamInMulti(down.reply())
	return err
}

// Commands of the proxy itself, for transactions.
const (
	discard = "*1\r\n$7\r\nDISCARD\r\n"
	// spoiler is refused for its number of arguments, and with it the transaction.
	spoiler = "*1\r\n$3\r\nGET\r\n"
)

// inUpstreamsMulti deals with a lock command in a transaction that the upstream has
// begun. If it is the first one in it, the transaction becomes the proxy's own; else
// it is refused, and the upstream is made to refuse EXEC.
func (f *forwarding) inUpstreamsMulti(ctx context.Context, cmd *commands.Command, words [][]byte, state learned) error {
	if !state.queued && !state.watching {
		left, err := f.leaveMulti(ctx)
		if err != nil {
			return err
		}
		if left {
			f.client.BeginMulti()
			return f.respond(ctx, f.table.MultiCommand(&f.client, words), words, f.relay.know())
		}
	}
	if err := f.spoilMulti(ctx); err != nil {
		return err
	}
	f.client.Refuse(commands.LateInMulti(cmd), &f.out)
	return nil
}

// leaveMulti takes the upstream out of a transaction.
func (f *forwarding) leaveMulti(ctx context.Context) (left bool, err error) {
	answer, err := f.askInMulti(ctx, discard)
	if left = err == nil && answer[0] == '+'; left {
		f.relay.teach((*learned).endMulti)
	}
	return left, err
}

// spoilMulti has the upstream refuse the EXEC of a transaction.
func (f *forwarding) spoilMulti(ctx context.Context) error {
	_, err := f.askInMulti(ctx, spoiler)
	return err
}

// askInMulti is ask within a transaction: with the upstream's connection it is lost.
func (f *forwarding) askInMulti(ctx context.Context, command string) ([]byte, error) {
	answer, err := f.ask(ctx, []byte(command))
	var down *upstreamError
	if errors.As(err, &down) {
		return nil, errOver
	}
	return answer, err
}

// mustHold reports whether a command that is too long to be held cannot be forwarded
// all the same.
func (f *forwarding) mustHold(own *commands.Command, follow string) bool {
	return f.keys.lock || f.client.InMulti() || f.routes && own == nil && follow == "watch"
}

// refuseLong refuses such a command.
func (f *forwarding) refuseLong(ctx context.Context) error {
	if err := f.settle(ctx); err != nil {
		return err
	}
	state := f.relay.know()
	switch {
	case state.quitting:
		return io.EOF
	case state.stream:
		return errOver
	case state.multi:
		if err := f.spoilMulti(ctx); err != nil {
			return err
		}
	}
	before := len(f.out.Bytes)
	err := f.discard(tooLong)
	f.client.AbortMulti()
	f.frame, f.keys = f.in.start, keySearch{}
	f.afterOwn(before)
	return err
}
