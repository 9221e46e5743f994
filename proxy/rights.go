package proxy

import (
	"context"

	"redlock-proxy/commands/rights"
	"redlock-proxy/proxy/login"
	"redlock-proxy/proxy/track"
)

// knowRights gives what is still true of the rights, with who the client is asked for where
// that is not known. The error says that it cannot be known.
func (a *asker) knowRights(ctx context.Context, state track.State) (*login.Rights, error) {
	r := &a.session.who.Rights
	if r.Renew(state.Identity, a.relay.up.Probes()) {
		return r, nil
	}
	if !state.Renamed && a.relay.up.OpensAll() {
		r.Open()
		return r, nil
	}
	err := a.inquire(ctx, state, func(ctx context.Context) error { return r.AskWho(ctx, a) })
	return r, err
}

// Sever ends the connection; it is of login.Upstream.
func (a *asker) Sever() { a.relay.sever() }

// isKnown reports whether it is known, without asking, that the client has logged in.
func (a *asker) isKnown(state track.State) bool {
	who := &a.session.who
	if who.Closed() || who.Own != nil || a.relay.up == nil {
		return !who.Closed()
	}
	return who.Rights.Refused == "" && who.Rights.Known(state.Identity, a.relay.up.Probes()) || !state.Renamed && a.relay.up.OpensAll()
}

// loggedIn reports whether the client has logged in at the upstream, if that is demanded
// there. What is not known is no.
func (a *asker) loggedIn(ctx context.Context, state track.State) bool {
	if who := &a.session.who; who.Own != nil {
		return !who.Closed()
	}
	r, err := a.knowRights(ctx, state)
	return err == nil && r.Refused == ""
}

// mayUse says why a client may not use what needs a login; empty where it may. A client
// that may do everything is told to the table.
func (a *asker) mayUse(ctx context.Context, state track.State) string {
	client := &a.session.client
	client.Upstream, client.Unrestricted = a, false
	if who := &a.session.who; who.Own != nil { // it was looked at before
		client.Unrestricted = who.MayAll()
		return ""
	}
	r, err := a.knowRights(ctx, state)
	switch {
	case err != nil:
		return "ERR " + (&rights.UnknownError{Cause: err}).Error()
	case r.Refused != "":
		return r.Refused
	}
	client.Unrestricted, client.User = r.All, r.User
	return ""
}

// Refusals asks, on the client's own connection, what the client may do there.
func (a *asker) Refusals(ctx context.Context, questions [][]string) ([]string, error) {
	state := a.relay.know()
	r, err := a.knowRights(ctx, state)
	if err != nil {
		return nil, &rights.UnknownError{Cause: err}
	}
	texts, open := r.Recall(questions)
	if len(open) == 0 {
		return texts, nil
	}
	if err := a.inquire(ctx, state, func(ctx context.Context) error { return r.Ask(ctx, a, state.Watching, questions, open, texts) }); err != nil {
		return nil, &rights.UnknownError{Cause: err}
	}
	return texts, nil
}
