package proxy

import (
	"context"

	"redlock-proxy/commands/rights"
	"redlock-proxy/proxy/login"
	"redlock-proxy/proxy/track"
)

// loadRights returns the client's rights as far as they are known and still valid. If the client's
// user is unknown, it asks the upstream. It returns an error if that fails.
func (a *asker) loadRights(ctx context.Context, state track.State) (*login.Rights, error) {
	r := &a.session.login.Rights
	if r.Refresh(state.UserChanges, a.relay.upstream.ProbeCount(), state.DB) {
		return r, nil
	}
	if !state.UserChanged && a.relay.upstream.GrantsAll() {
		r.GrantAll()
		return r, nil
	}
	err := a.runWithReplies(ctx, state, func(ctx context.Context) error { return r.LoadUser(ctx, a) })
	return r, err
}

// Disconnect implements login.Upstream.
func (a *asker) Disconnect() { a.relay.closeUpstreamConn() }

// isLoginKnown reports whether the proxy knows, without asking the upstream, that the client has
// logged in.
func (a *asker) isLoginKnown(state track.State) bool {
	user := &a.session.login
	if user.MustLogIn() || user.UserLogin != nil || a.relay.upstream == nil {
		return !user.MustLogIn()
	}
	return user.Rights.LoginError == "" && user.Rights.IsKnown(state.UserChanges, a.relay.upstream.ProbeCount()) ||
		!state.UserChanged && a.relay.upstream.GrantsAll()
}

// loggedIn reports whether the client has logged in, if the upstream or the proxy with its own
// users requires that. It returns false if that is unknown.
func (a *asker) loggedIn(ctx context.Context, state track.State) bool {
	if user := &a.session.login; user.UserLogin != nil {
		return !user.MustLogIn()
	}
	r, err := a.loadRights(ctx, state)
	return err == nil && r.LoginError == ""
}

// useRefusal returns the reason why a client may not use a command that needs a login; empty if the
// client may use it. useRefusal sets client.Unrestricted if the client may do everything.
func (a *asker) useRefusal(ctx context.Context, state track.State) string {
	client := &a.session.client
	client.Upstream, client.Unrestricted = a, false
	// authChecker has checked the client's rights.
	if user := &a.session.login; user.UserLogin != nil {
		client.Unrestricted = user.HasAllPermissions()
		return ""
	}
	r, err := a.loadRights(ctx, state)
	switch {
	case err != nil:
		return "ERR " + (&rights.PermissionCheckError{Cause: err}).Error()
	case r.LoginError != "":
		return r.LoginError
	}
	client.Unrestricted, client.User = r.HasAllPermissions, r.User
	return ""
}

// Refusals implements rights.Upstream. It asks on the client's own connection.
func (a *asker) Refusals(ctx context.Context, checks [][]string) ([]string, error) {
	state := a.relay.state()
	r, err := a.loadRights(ctx, state)
	if err != nil {
		return nil, &rights.PermissionCheckError{Cause: err}
	}
	texts, unknown := r.CachedRefusals(checks)
	if len(unknown) == 0 {
		return texts, nil
	}
	err = a.runWithReplies(ctx, state, func(ctx context.Context) error {
		return r.Ask(ctx, a, state.Watching, checks, unknown, texts)
	})
	if err != nil {
		return nil, &rights.PermissionCheckError{Cause: err}
	}
	return texts, nil
}
