package proxy

import (
	"context"

	"redlock-proxy/commands/rights"
	"redlock-proxy/proxy/login"
	"redlock-proxy/proxy/track"
)

// loadRights returns the client's rights as far as they are known and still valid. If the client's
// user is unknown, it asks the upstream. The error is the reason why the rights cannot be known.
func (a *asker) loadRights(ctx context.Context, state track.State) (*login.Rights, error) {
	r := &a.session.login.Rights
	if r.Renew(state.Identity, a.relay.up.Probes()) {
		return r, nil
	}
	if !state.Renamed && a.relay.up.GrantsAll() {
		r.GrantAll()
		return r, nil
	}
	err := a.inquire(ctx, state, func(ctx context.Context) error { return r.LoadUser(ctx, a) })
	return r, err
}

// Sever implements login.Upstream.
func (a *asker) Sever() { a.relay.sever() }

// isLoginKnown reports whether it is known, without asking, that the client has logged in.
func (a *asker) isLoginKnown(state track.State) bool {
	user := &a.session.login
	if user.Closed() || user.Own != nil || a.relay.up == nil {
		return !user.Closed()
	}
	return user.Rights.Refused == "" && user.Rights.Known(state.Identity, a.relay.up.Probes()) ||
		!state.Renamed && a.relay.up.GrantsAll()
}

// loggedIn reports whether the client has logged in at the upstream, if the upstream requires that.
// It returns false if that is unknown.
func (a *asker) loggedIn(ctx context.Context, state track.State) bool {
	if user := &a.session.login; user.Own != nil {
		return !user.Closed()
	}
	r, err := a.loadRights(ctx, state)
	return err == nil && r.Refused == ""
}

// mayUse returns why a client may not use a command that needs a login; empty if it may. It sets
// client.Unrestricted if the client may do everything.
func (a *asker) mayUse(ctx context.Context, state track.State) string {
	client := &a.session.client
	client.Upstream, client.Unrestricted = a, false
	if user := &a.session.login; user.Own != nil { // authChecker has checked its rights
		client.Unrestricted = user.MayAll()
		return ""
	}
	r, err := a.loadRights(ctx, state)
	switch {
	case err != nil:
		return "ERR " + (&rights.UnknownError{Cause: err}).Error()
	case r.Refused != "":
		return r.Refused
	}
	client.Unrestricted, client.User = r.All, r.User
	return ""
}

// Refusals implements rights.Upstream. It asks on the client's own connection.
func (a *asker) Refusals(ctx context.Context, questions [][]string) ([]string, error) {
	state := a.relay.state()
	r, err := a.loadRights(ctx, state)
	if err != nil {
		return nil, &rights.UnknownError{Cause: err}
	}
	texts, open := r.Recall(questions)
	if len(open) == 0 {
		return texts, nil
	}
	err = a.inquire(ctx, state, func(ctx context.Context) error {
		return r.Ask(ctx, a, state.Watching, questions, open, texts)
	})
	if err != nil {
		return nil, &rights.UnknownError{Cause: err}
	}
	return texts, nil
}
