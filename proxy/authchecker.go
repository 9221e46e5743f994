package proxy

import (
	"context"
	"fmt"
	"math"
	"strings"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/command"
	"redlock-proxy/commands/rights"
	"redlock-proxy/commands/server"
	"redlock-proxy/internal/resp"
	"redlock-proxy/proxy/login"
	"redlock-proxy/proxy/track"
)

// authChecker checks a client's login and permissions before a command runs. login.Gate or the
// proxy's own users decide.
type authChecker struct {
	session *session
	relay   *relay
	asker   *asker
	sender  *sender
	in      *input
	client  *command.Client

	checked bool // the proxy has found out, for the current frame, whether the client has logged in
}

// check handles commands that log in, and refuses commands that the client may not send. It returns
// the words that are left to run; none if it has answered the command.
func (c *authChecker) check(
	ctx context.Context, own *command.Command, follow string, words [][]byte,
) (left [][]byte, err error) {
	switch user := &c.session.login; {
	case user.Own != nil:
		return c.checkUser(ctx, follow, words)
	case user.Gate.Guards(follow):
		if done, err := c.checkGate(ctx, own, follow, words); done || err != nil {
			return nil, err
		}
	}
	return words, nil
}

// checkGate is check for the proxy's gate. It reports false for a command that the gate does not
// handle.
func (c *authChecker) checkGate(
	ctx context.Context, own *command.Command, follow string, words [][]byte,
) (done bool, err error) {
	if err := c.asker.waitUpstream(ctx); err != nil {
		return true, err
	}
	gate := &c.session.login.Gate
	l, logsIn := login.Find(follow, words)
	ours := logsIn && gate.Asks(l)
	switch {
	case own != nil && server.IsOpen(words): // allowed without a login
	case c.relay.state().Multi: // the upstream queues or refuses it
	case follow == "quit":
		c.client.Closing = true
		return true, c.sender.replyStatus("OK")
	case follow == "reset" && len(words) == 1 && gate.Passed:
		gate.Passed = false
	case ours && gate.Refuses(l):
		return true, c.sender.replyError(login.WrongPass)
	case ours:
		return true, c.passGate(ctx, follow, l)
	case gate.Closed() && follow == "hello":
		return true, c.sender.replyError(login.NoAuthHello)
	case gate.Closed():
		return true, c.sender.replyError(login.NoAuth)
	}
	return false, nil
}

// passGate logs the client in as the user of the upstream's URL, and opens the gate for it.
func (c *authChecker) passGate(ctx context.Context, follow string, l login.Auth) error {
	if refused := c.loginAsURLUser(ctx); refused != "" {
		return c.sender.replyError(refused)
	}
	c.session.login.Gate.Passed = true
	if follow == "hello" {
		return c.sender.sendHello(l.Rest)
	}
	return c.sender.replyStatus("OK")
}

// loginAsURLUser logs the client's upstream connection in as the URL's user. A new connection
// already begins with that login.
func (c *authChecker) loginAsURLUser(ctx context.Context) (refused string) {
	u := c.relay.up
	fresh := c.relay.wire == nil || c.relay.isGone()
	words := u.Logins()
	if fresh && c.relay.open(ctx) == nil || len(words) == 0 {
		return ""
	}
	answer, err := c.asker.askWithReplies(ctx, words...)
	switch {
	case err != nil:
		return "ERR " + (&rights.UnknownError{Cause: err}).Error()
	case !resp.Begins(answer, "+OK"):
		return resp.FirstLine(answer)
	}
	c.relay.updateState(func(s *track.State) { s.Login(true, false) })
	return ""
}

// subscribedOnly is Redis' refusal of a command on a RESP2 connection in subscribed mode.
const subscribedOnly = "ERR Can't execute '%s': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET " +
	"are allowed in this context"

// checkUser is check if the proxy has its own users.
func (c *authChecker) checkUser(ctx context.Context, follow string, words [][]byte) (left [][]byte, err error) {
	name := syntax.Lower(words[0])
	logsIn := follow == "auth" || follow == "hello"
	if logsIn && c.client.Transaction.Open {
		return words, nil // a transaction refuses it
	}
	if _, asked := login.Find(follow, words); asked || c.session.login.Closed() {
		switch refused, err := c.cannotLogIn(ctx, name, asked); {
		case err != nil:
			return nil, err
		case refused != "":
			return nil, c.sender.refuseHeld(ctx, refused)
		}
	}
	left, refused, err := c.session.checkLogin(ctx, name, words)
	switch {
	case err != nil:
		return nil, err
	case refused != "":
		return nil, c.sender.refuseHeld(ctx, refused)
	case left == nil:
		return nil, c.sender.replyStatus("OK")
	case c.relay.up == nil:
		if name == "reset" && len(words) == 1 {
			c.session.logOut()
		}
		return left, nil
	case len(left) < len(words):
		return nil, c.helloWithoutLogin(ctx, left)
	case server.IsOpen(words):
		return words, nil
	case c.session.login.Closed() && follow == "quit":
		c.client.Closing = true
		return nil, c.sender.replyStatus("OK")
	case c.session.login.Closed(): // RESET without a login changes nothing
		return nil, c.sender.replyStatus("RESET")
	}
	if refused := c.client.Checker.Refusal(words); refused != "" {
		return nil, c.sender.refuseHeld(ctx, refused)
	}
	return words, c.checkTxUser(ctx, follow)
}

// cannotLogIn waits for the upstream's replies, and returns why no login is possible now, or "".
func (c *authChecker) cannotLogIn(ctx context.Context, name string, asked bool) (refused string, err error) {
	if err := c.asker.waitUpstream(ctx); err != nil {
		return "", err
	}
	switch state := c.relay.state(); {
	case state.Stream:
		return "", errStateLost
	case asked && state.Multi:
		return "ERR " + strings.ToUpper(name) + " inside MULTI is not allowed: the proxy runs it at once, " +
			"so it cannot be part of a transaction; send it before MULTI or after EXEC", nil
	case asked && state.Restricted():
		return fmt.Sprintf(subscribedOnly, name), nil
	}
	return "", nil
}

// helloWithoutLogin sends the upstream a HELLO without its AUTH, which the proxy has handled.
func (c *authChecker) helloWithoutLogin(ctx context.Context, words [][]byte) error {
	if err := c.relay.open(ctx); err != nil {
		return c.sender.refuse(ctx, nil, 1, err)
	}
	c.session.noteName("hello", words)
	return c.sender.sendHello(words)
}

// checkTxUser remembers the user that began a transaction at the upstream, and makes its EXEC fail
// if the client's user has changed since.
func (c *authChecker) checkTxUser(ctx context.Context, follow string) error {
	user := c.session.login.Own.User()
	switch {
	case follow == "multi":
		c.session.txUser = user
	case follow == "exec" && c.session.txUser != user && c.session.txUser != nil:
		c.session.txUser = nil
		if err := c.asker.waitUpstream(ctx); err != nil {
			return err
		}
		if c.relay.state().Multi {
			return c.asker.abortUpstreamTx(ctx)
		}
	}
	return nil
}

// tooLongRefusal returns why a command that is too long to be held must be refused; empty if it may
// pass. The proxy must hold a command to check permissions for it.
func (c *authChecker) tooLongRefusal(own *command.Command, follow string) string {
	switch {
	case c.session.login.Own == nil:
		return ""
	case follow == "auth", follow == "hello", own != nil && own.Local:
		return "ERR command too long: commands that the proxy itself runs are limited to 1048576 bytes"
	case !c.session.login.NeedsCheck():
		return ""
	}
	words, total, _ := resp.Words(nil, c.in.chunk(), math.MaxInt)
	return c.session.login.Refusal(words, total)
}

// afterReset logs the client out, and logs its upstream connection in as the URL's user again.
func (c *authChecker) afterReset(ctx context.Context) error {
	if c.session.login.Own == nil {
		return nil
	}
	c.session.logOut()
	if err := c.asker.waitUpstream(ctx); err != nil {
		return err
	}
	if c.relay.wire == nil || c.relay.isGone() || len(c.relay.up.Logins()) == 0 {
		return nil
	}
	if refused := c.loginAsURLUser(ctx); refused != "" {
		c.relay.sever()
		return errStateLost
	}
	return nil
}

// Forwarded commands stream past, and the upstream itself refuses long ones before the login. But
// the proxy holds its own commands, and commands whose keys it checks, until they are whole. They
// cost memory, so the proxy applies Redis' limits before the login to them. Only if a command has
// not arrived whole, it finds out whether the client has logged in (loggedIn).

// mustCheckLogin reports whether the proxy must find out if the client has logged in before it
// holds more of the current frame.
func (c *authChecker) mustCheckLogin() bool {
	return !c.checked && !c.asker.isLoginKnown(c.relay.state())
}

// limitHeld applies Redis' limits before the login to the current frame, if the client has not
// logged in. Nothing of the frame was sent. limitHeld must not be called during a read.
func (c *authChecker) limitHeld(ctx context.Context) error {
	c.checked = true
	if c.session.login.Closed() {
		return c.in.scanner.Restrict(resp.UnauthenticatedLimits())
	}
	if err := c.sender.pass(ctx, c.in.frame); err != nil {
		return err
	}
	if err := c.asker.waitUpstream(ctx); err != nil {
		return err
	}
	state := c.relay.state()
	inside := state.Multi || state.Stream || state.Listening() || state.Monitoring // states that need a login
	if inside || c.asker.loggedIn(ctx, state) {
		return nil
	}
	return c.in.scanner.Restrict(resp.UnauthenticatedLimits())
}

// collect reads the rest of the frame, unless it is too long to be held.
func (c *authChecker) collect(ctx context.Context) (whole bool, err error) {
	if c.relay.up == nil && c.session.login.Closed() { // Redis' limits also apply to frames that arrive at once
		if err := c.limitHeld(ctx); err != nil {
			return false, err
		}
	}
	ev, err := c.in.eventWithin(maxFrame)
	if err != nil || ev == resp.FrameEnd {
		return err == nil, err
	}
	if c.mustCheckLogin() {
		if err := c.limitHeld(ctx); err != nil {
			return false, err
		}
	}
	return c.session.collect()
}

// resetFrame resets the state that belongs to the current frame.
func (c *authChecker) resetFrame() {
	if c.checked {
		c.checked = false
		c.in.scanner.SetLimits(resp.DefaultRequestLimits())
	}
}
