package proxy

import (
	"context"
	"errors"
	"fmt"

	"redlock-proxy/commands/rights"
	"redlock-proxy/internal/resp"
)

// errWatches keeps the side effects of a script from being conditional on keys
// that the client watches for something else.
var errWatches = errors.New("keys are watched at the upstream: a script on lock keys can do nothing there")

// sideEffects is a transaction on the client's connection that the proxy has begun for a
// script on lock keys.
type sideEffects struct {
	relay   *relay
	quieten func()
}

// Prepare begins it: from then on the upstream has agreed to each of the commands.
func (a *asker) Prepare(ctx context.Context, all [][]string) (rights.Prepared, error) {
	state := a.relay.know()
	if state.Watching {
		return nil, errWatches
	}
	quieten, err := a.beginToAsk(ctx, state)
	if err != nil {
		return nil, err
	}
	e := sideEffects{a.relay, quieten}
	begun, err := a.put(ctx, "MULTI")
	switch {
	case err != nil:
		return nil, err
	case !resp.Begins(begun, "+OK"):
		quieten()
		return nil, &rights.RefusedError{Text: resp.FirstLine(begun)}
	}
	answers, err := a.PutAll(ctx, all)
	if err != nil {
		return nil, err
	}
	for _, answer := range answers {
		if !resp.Begins(answer, "+QUEUED") {
			e.Drop()
			return nil, &rights.RefusedError{Text: resp.FirstLine(answer)}
		}
	}
	return e, nil
}

// Do ends it. The client may have left: what was committed on the masters stays so, and
// others are to hear of it.
func (e sideEffects) Do() error {
	answer, err := e.end("EXEC")
	if err != nil {
		return err
	}
	e.quieten()
	if failed := resp.FirstError(answer); failed != "" {
		return fmt.Errorf("upstream %s: %s", e.relay.up.Name(), failed)
	}
	return nil
}

func (e sideEffects) end(word string) (answer []byte, err error) {
	if err := e.relay.request(requestOf([][]string{{word}}), 1); err != nil {
		return nil, err
	}
	answers, err := e.relay.response(context.Background(), min(inquiryTimeout, e.relay.up.Timeout()), 1)
	if err != nil {
		return nil, err
	}
	return answers[0], nil
}

// Drop gives it up, and with it the connection where that is not to be had.
func (e sideEffects) Drop() {
	switch answer, err := e.end("DISCARD"); {
	case err != nil: // and the connection with it
	case resp.Begins(answer, "+OK"):
		e.quieten()
	default:
		e.relay.sever()
	}
}
