package proxy

import (
	"context"
	"errors"
	"fmt"

	"redlock-proxy/commands/rights"
	"redlock-proxy/internal/resp"
)

// errKeysWatched refuses a script with side effects while the client watches keys at the upstream.
// The transaction that carries the side effects would fail if such a key changed.
var errKeysWatched = errors.New(
	"a script on lock keys cannot have side effects at the upstream: the client watches keys at the upstream; UNWATCH first")

// sideEffects runs or discards a transaction that the proxy has begun at the upstream for a script
// on lock keys.
type sideEffects struct {
	relay   *relay
	restore func()
}

// Prepare implements rights.Upstream. It begins the transaction, in which the upstream queues each
// of the commands.
func (a *asker) Prepare(ctx context.Context, batch [][]string) (rights.PreparedCommands, error) {
	state := a.relay.state()
	if state.Watching {
		return nil, errKeysWatched
	}
	restore, err := a.openWithReplies(ctx, state)
	if err != nil {
		return nil, err
	}
	e := sideEffects{a.relay, restore}
	multiReply, err := a.askOne(ctx, "MULTI")
	switch {
	case err != nil:
		return nil, err
	case !resp.HasPrefix(multiReply, "+OK"):
		restore()
		return nil, &rights.RefusedError{Text: resp.FirstLine(multiReply)}
	}
	answers, err := a.SendAll(ctx, batch)
	if err != nil {
		return nil, err
	}
	for _, answer := range answers {
		if !resp.HasPrefix(answer, "+QUEUED") {
			e.Drop()
			if a.relay.nodes != nil {
				answer = a.relay.withoutRedirect(answer)
			}
			return nil, &rights.RefusedError{Text: resp.FirstLine(answer)}
		}
	}
	return e, nil
}

// Do implements rights.PreparedCommands. It runs the transaction even if the client has left,
// because the changes on the masters are committed.
func (e sideEffects) Do() error {
	answer, err := e.finishTx("EXEC")
	if err != nil {
		return err
	}
	e.restore()
	if failed := resp.FirstError(answer); failed != "" {
		if e.relay.nodes != nil {
			failed = resp.FirstLine(e.relay.withoutRedirect([]byte("-" + failed + "\r\n")))
		}
		return fmt.Errorf("upstream %s: %s", e.relay.upstream.PublicName(), failed)
	}
	return nil
}

func (e sideEffects) finishTx(word string) (answer []byte, err error) {
	if err := e.relay.sendRequest(requestOf([][]string{{word}}), 1); err != nil {
		return nil, err
	}
	answers, err := e.relay.awaitResponse(context.Background(), min(internalCommandTimeout, e.relay.upstream.Timeout()), 1)
	if err != nil {
		return nil, err
	}
	return answers[0], nil
}

// Drop implements rights.PreparedCommands. It discards the transaction or, if the upstream refuses
// that, ends the connection.
func (e sideEffects) Drop() {
	switch answer, err := e.finishTx("DISCARD"); {
	case err != nil: // the connection has ended
	case resp.HasPrefix(answer, "+OK"):
		e.restore()
	default:
		e.relay.closeUpstreamConn()
	}
}
