package proxy

import (
	"context"
	"math"
	"strings"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/command"
	"redlock-proxy/commands/pubsub"
	"redlock-proxy/commands/rights"
	"redlock-proxy/commands/server"
	"redlock-proxy/internal/resp"
	"redlock-proxy/proxy/login"
	"redlock-proxy/proxy/track"
)

// authChecker checks a client's login and permissions before a command runs. A client logs in at
// the upstream, at the proxy with a password, or as one of the proxy's own users.
type authChecker struct {
	session *session
	relay   *relay
	asker   *asker
	sender  *sender
	in      *input
	client  *command.Client

	loginChecked bool // the client's login was checked for the current frame
}

// check handles commands that log in, and refuses commands that the client may not send. rest holds
// the words to run, or is nil if check has answered the command.
func (c *authChecker) check(
	ctx context.Context, ownCmd *command.Command, stateCmd string, words [][]byte,
) (rest [][]byte, err error) {
	switch user := &c.session.login; {
	case user.UserLogin != nil:
		return c.checkUser(ctx, stateCmd, words)
	case user.PasswordLogin.Handles(stateCmd):
		if handled, err := c.checkPasswordLogin(ctx, ownCmd, stateCmd, words); handled || err != nil {
			return nil, err
		}
	}
	return words, nil
}

// checkPasswordLogin implements check for a proxy whose clients log in with a password. handled is
// false if check must continue with the command.
func (c *authChecker) checkPasswordLogin(
	ctx context.Context, ownCmd *command.Command, stateCmd string, words [][]byte,
) (handled bool, err error) {
	if err := c.asker.waitUpstream(ctx); err != nil {
		return true, err
	}
	passwordLogin := &c.session.login.PasswordLogin
	l, logsIn := login.Find(stateCmd, words)
	decides := logsIn && passwordLogin.DecidesLogin(l)
	switch {
	case ownCmd != nil && server.NeedsNoLogin(words): // allowed without a login
	case stateCmd == "reset" && len(words) == 1 && passwordLogin.LoggedIn: // runs at once, also inside MULTI
		passwordLogin.LoggedIn = false
	case c.relay.state().Multi: // the upstream queues or refuses it
	case stateCmd == "quit":
		c.client.Closing = true
		return true, c.sender.replyStatus("OK")
	case decides && passwordLogin.Refuses(l):
		return true, c.sender.replyError(login.WrongPass)
	case decides:
		return true, c.logInWithPassword(ctx, stateCmd, l)
	case passwordLogin.MustLogIn() && stateCmd == "hello":
		return true, c.sender.replyError(login.NoAuthHello)
	case passwordLogin.MustLogIn():
		return true, c.sender.replyError(login.NoAuth)
	}
	return false, nil
}

// logInWithPassword handles the login of a client that has sent the right password: from then on
// the client acts as the user of the upstream's URL.
func (c *authChecker) logInWithPassword(ctx context.Context, stateCmd string, l login.Auth) error {
	if refusal := c.logInAsURLUser(ctx); refusal != "" {
		return c.sender.replyError(refusal)
	}
	c.session.login.PasswordLogin.LoggedIn = true
	if stateCmd == "hello" {
		return c.sender.sendHello(l.Rest)
	}
	return c.sender.replyStatus("OK")
}

// logInAsURLUser logs the client's upstream connection in as the URL's user. A new connection
// already begins with that login.
func (c *authChecker) logInAsURLUser(ctx context.Context) (refusal string) {
	u := c.relay.upstream
	disconnected := c.relay.conn == nil || c.relay.isDisconnected()
	words := u.LoginCommand()
	if disconnected && c.relay.open(ctx) == nil || len(words) == 0 {
		return ""
	}
	answer, err := c.asker.askWithReplies(ctx, words...)
	switch {
	case err != nil:
		return "ERR " + (&rights.PermissionCheckError{Cause: err}).Error()
	case !resp.HasPrefix(answer, "+OK"):
		return resp.FirstLine(answer)
	}
	c.relay.updateState(func(s *track.State) { s.RecordLogin(true, false) })
	return ""
}

// checkUser implements check for a proxy with its own users.
func (c *authChecker) checkUser(ctx context.Context, stateCmd string, words [][]byte) (rest [][]byte, err error) {
	name := syntax.Lower(words[0])
	isLoginCommand := stateCmd == "auth" || stateCmd == "hello"
	if isLoginCommand && c.client.Transaction.Open {
		return words, nil // the transaction refuses the command
	}
	if _, logsIn := login.Find(stateCmd, words); logsIn || c.session.login.MustLogIn() {
		switch refusal, err := c.loginRefusal(ctx, words, logsIn); {
		case err != nil:
			return nil, err
		case refusal != "":
			return nil, c.sender.refuseUnsent(ctx, refusal)
		}
	}
	rest, refusal, err := c.session.checkLogin(ctx, name, words)
	switch {
	case err != nil:
		return nil, err
	case refusal != "":
		return nil, c.sender.refuseUnsent(ctx, refusal)
	case rest == nil:
		return nil, c.sender.replyStatus("OK")
	case c.relay.upstream == nil:
		if name == "reset" && len(words) == 1 {
			c.session.logOut()
		}
		return rest, nil
	case len(rest) < len(words):
		return nil, c.sendHelloWithoutLogin(ctx, rest)
	case server.NeedsNoLogin(words):
		return words, nil
	case c.session.login.MustLogIn() && stateCmd == "quit":
		c.client.Closing = true
		return nil, c.sender.replyStatus("OK")
	case c.session.login.MustLogIn(): // RESET without a login changes nothing
		return nil, c.sender.replyStatus("RESET")
	}
	if refusal := c.client.Checker.Refusal(words); refusal != "" {
		return nil, c.sender.refuseUnsent(ctx, refusal)
	}
	return words, c.checkTxUser(ctx, stateCmd)
}

// loginRefusal waits for the upstream's replies, and returns the reason why no login is possible
// now, or "".
func (c *authChecker) loginRefusal(ctx context.Context, words [][]byte, logsIn bool) (refusal string, err error) {
	if err := c.asker.waitUpstream(ctx); err != nil {
		return "", err
	}
	switch state := c.relay.state(); {
	case state.Stream:
		return "", errStateLost
	case logsIn && state.Multi:
		return "ERR " + strings.ToUpper(string(words[0])) + " inside MULTI is not allowed: the proxy runs it at once, " +
			"so it cannot be part of a transaction; send it before MULTI or after EXEC", nil
	case logsIn && state.Restricted():
		return pubsub.RestrictedError(words), nil
	}
	return "", nil
}

// sendHelloWithoutLogin sends the upstream a HELLO without its AUTH, which the proxy has handled.
func (c *authChecker) sendHelloWithoutLogin(ctx context.Context, words [][]byte) error {
	if err := c.relay.open(ctx); err != nil {
		return c.sender.refuse(ctx, nil, 1, err)
	}
	c.session.noteName("hello", words)
	return c.sender.sendHello(words)
}

// checkTxUser records the user that began a transaction at the upstream, and makes EXEC fail if the
// client has become another user since.
func (c *authChecker) checkTxUser(ctx context.Context, stateCmd string) error {
	user := c.session.login.UserLogin.User()
	switch previous := c.session.txUser; {
	case previous == user:
	case stateCmd == "multi" && previous == nil:
		c.session.txUser = user
	case stateCmd == "multi":
		if err := c.asker.waitUpstream(ctx); err != nil {
			return err
		}
		// The upstream refuses a nested MULTI, and the transaction stays the previous user's.
		if !c.relay.state().Multi {
			c.session.txUser = user
		}
	case stateCmd == "exec" && previous != nil:
		c.session.txUser = nil
		return c.asker.abortTx(ctx)
	}
	return nil
}

// tooLongRefusal returns the reason why one of the proxy's own users may not send a command that is
// too long to buffer, or "". It refuses a command whose missing words may need a permission that
// the user lacks.
func (c *authChecker) tooLongRefusal(ownCmd *command.Command, stateCmd string) string {
	switch {
	case c.session.login.UserLogin == nil:
		return ""
	case stateCmd == "auth", stateCmd == "hello", ownCmd != nil && ownCmd.NeverForwarded:
		return "ERR command too long: commands that the proxy itself runs are limited to 1048576 bytes"
	case !c.session.login.NeedsCheck():
		return ""
	}
	words, total, _ := resp.Words(nil, c.in.chunk(), math.MaxInt)
	return c.session.login.Refusal(words, total)
}

// logOutAfterReset logs the client out, and logs its upstream connection in as the URL's user
// again.
func (c *authChecker) logOutAfterReset(ctx context.Context) error {
	if c.session.login.UserLogin == nil {
		return nil
	}
	c.session.logOut()
	if err := c.asker.waitUpstream(ctx); err != nil {
		return err
	}
	if c.relay.conn == nil || c.relay.isDisconnected() || len(c.relay.upstream.LoginCommand()) == 0 {
		return nil
	}
	if refusal := c.logInAsURLUser(ctx); refusal != "" {
		c.relay.closeUpstreamConn()
		return errStateLost
	}
	return nil
}

// The proxy does not buffer most forwarded commands, and the upstream itself refuses long commands
// before the login. But the proxy buffers its own commands, and commands whose keys it checks. To
// limit that memory, it applies Redis' limits for clients without a login. It asks the upstream for
// the login (loggedIn) only if a command has not arrived whole.

// mustCheckLogin reports whether the proxy must check the client's login before it buffers more of
// the current frame.
func (c *authChecker) mustCheckLogin() bool {
	return !c.loginChecked && !c.asker.isLoginKnown(c.relay.state())
}

// limitUnauthenticated applies Redis' limits for clients without a login to the current frame, if
// the client has not logged in. The proxy must not have sent any byte of the frame.
// limitUnauthenticated must not be called during a read.
func (c *authChecker) limitUnauthenticated(ctx context.Context) error {
	c.loginChecked = true
	if c.session.login.MustLogIn() {
		return c.in.scanner.ApplyLimits(resp.UnauthenticatedLimits())
	}
	if err := c.sender.sendUpTo(ctx, c.in.frameStart); err != nil {
		return err
	}
	if err := c.asker.waitUpstream(ctx); err != nil {
		return err
	}
	state := c.relay.state()
	// A client in one of these states must have logged in.
	impliesLogin := state.Multi || state.Stream || state.HasSubscriptions() || state.Monitoring
	if impliesLogin || c.asker.loggedIn(ctx, state) {
		return nil
	}
	return c.in.scanner.ApplyLimits(resp.UnauthenticatedLimits())
}

// collect reads the rest of the frame, unless it is too long to buffer.
func (c *authChecker) collect(ctx context.Context) (whole bool, err error) {
	// At a lock server, Redis' limits also apply to a frame that arrives in one read.
	if c.relay.upstream == nil && c.session.login.MustLogIn() {
		if err := c.limitUnauthenticated(ctx); err != nil {
			return false, err
		}
	}
	ev, err := c.in.nextEventWithin(maxFrame)
	if err != nil || ev == resp.FrameEnd {
		return err == nil, err
	}
	if c.mustCheckLogin() {
		if err := c.limitUnauthenticated(ctx); err != nil {
			return false, err
		}
	}
	return c.session.collect()
}

// resetFrame resets the state that belongs to the current frame.
func (c *authChecker) resetFrame() {
	if c.loginChecked {
		c.loginChecked = false
		c.in.scanner.SetLimits(resp.DefaultRequestLimits())
	}
}
