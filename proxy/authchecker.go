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

// authChecker checks who the client is and what it may send, before a command is carried out: by
// the proxy's gate, or by its own users.
type authChecker struct {
	session *session
	relay   *relay
	asker   *asker
	sender  *sender
	in      *input
	client  *command.Client

	checked bool // it was found out whether the client has logged in, for the current frame
}

// check deals with a command that has to do with a login, or that the client may not send. It gives
// what is left to be done of it: nothing where it is answered.
func (c *authChecker) check(ctx context.Context, own *command.Command, follow string, words [][]byte) (left [][]byte, err error) {
	switch who := &c.session.who; {
	case who.Own != nil:
		return c.checkUser(ctx, follow, words)
	case who.Gate.Guards(follow):
		if done, err := c.checkGate(ctx, own, follow, words); done || err != nil {
			return nil, err
		}
	}
	return words, nil
}

// checkGate is check by the proxy's gate. It reports false for a command that goes on as if there
// were none.
func (c *authChecker) checkGate(ctx context.Context, own *command.Command, follow string, words [][]byte) (done bool, err error) {
	if err := c.asker.settle(ctx); err != nil {
		return true, err
	}
	gate := &c.session.who.Gate
	l, logsIn := login.Find(follow, words)
	ours := logsIn && gate.Asks(l)
	switch {
	case own != nil && server.IsOpen(words): // for anybody
	case c.relay.know().Multi: // the upstream queues or refuses it
	case follow == "quit":
		c.client.Closing = true
		return true, c.sender.say("OK")
	case follow == "reset" && len(words) == 1 && gate.Passed:
		gate.Passed = false
	case ours && gate.Refuses(l):
		return true, c.sender.sayError(login.WrongPass)
	case ours:
		return true, c.passGate(ctx, follow, l)
	case gate.Closed() && follow == "hello":
		return true, c.sender.sayError(login.NoAuthHello)
	case gate.Closed():
		return true, c.sender.sayError(login.NoAuth)
	}
	return false, nil
}

// passGate lets the client in, as the user of the URL.
func (c *authChecker) passGate(ctx context.Context, follow string, l login.Auth) error {
	if refused := c.loginAsURLUser(ctx); refused != "" {
		return c.sender.sayError(refused)
	}
	c.session.who.Gate.Passed = true
	if follow == "hello" {
		return c.sender.sendHello(l.Rest)
	}
	return c.sender.say("OK")
}

// loginAsURLUser has the client's connection be that of the URL's user: a new one is so from
// the beginning.
func (c *authChecker) loginAsURLUser(ctx context.Context) (refused string) {
	u := c.relay.up
	fresh := c.relay.wire == nil || c.relay.isGone()
	words := u.Logins()
	if fresh && c.relay.open(ctx) == nil || len(words) == 0 {
		return ""
	}
	answer, err := c.asker.askAloud(ctx, words...)
	switch {
	case err != nil:
		return "ERR " + (&rights.UnknownError{Cause: err}).Error()
	case !resp.Begins(answer, "+OK"):
		return resp.FirstLine(answer)
	}
	c.relay.teach(func(s *track.State) { s.Login(true, false) })
	return ""
}

// subscribedOnly is Redis' refusal of a command on a RESP2 connection that takes
// messages.
const subscribedOnly = "ERR Can't execute '%s': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context"

// checkUser is check by who the client is.
func (c *authChecker) checkUser(ctx context.Context, follow string, words [][]byte) (left [][]byte, err error) {
	name := syntax.Lower(words[0])
	logsIn := follow == "auth" || follow == "hello"
	if logsIn && c.client.Transaction.Open {
		return words, nil // which has no place there
	}
	if _, asked := login.Find(follow, words); asked || c.session.who.Closed() {
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
		return nil, c.sender.say("OK")
	case c.relay.up == nil:
		if name == "reset" && len(words) == 1 {
			c.session.logOut()
		}
		return left, nil
	case len(left) < len(words):
		return nil, c.helloWithoutLogin(ctx, left)
	case server.IsOpen(words):
		return words, nil
	case c.session.who.Closed() && follow == "quit":
		c.client.Closing = true
		return nil, c.sender.say("OK")
	case c.session.who.Closed(): // a RESET of nothing
		return nil, c.sender.say("RESET")
	}
	if refused := c.client.Judge.Refusal(words); refused != "" {
		return nil, c.sender.refuseHeld(ctx, refused)
	}
	return words, c.holdTransaction(ctx, follow)
}

// cannotLogIn says, when the upstream has answered all, what keeps a login from being done at once.
func (c *authChecker) cannotLogIn(ctx context.Context, name string, asked bool) (refused string, err error) {
	if err := c.asker.settle(ctx); err != nil {
		return "", err
	}
	switch state := c.relay.know(); {
	case state.Stream:
		return "", errOver
	case asked && state.Multi:
		return "ERR " + strings.ToUpper(name) + " inside MULTI is not allowed: the proxy runs it at once, so it cannot be part of a transaction; send it before or after", nil
	case asked && state.Restricted():
		return fmt.Sprintf(subscribedOnly, name), nil
	}
	return "", nil
}

// helloWithoutLogin has the upstream do the rest of a HELLO.
func (c *authChecker) helloWithoutLogin(ctx context.Context, words [][]byte) error {
	if err := c.relay.open(ctx); err != nil {
		return c.sender.refuse(ctx, nil, 1, err)
	}
	c.session.noteName("hello", words)
	return c.sender.sendHello(words)
}

// holdTransaction remembers with which rights a transaction at the upstream began, and has it
// refused there if they are others when it is to be carried out.
func (c *authChecker) holdTransaction(ctx context.Context, follow string) error {
	user := c.session.who.Own.User()
	switch {
	case follow == "multi":
		c.session.txUser = user
	case follow == "exec" && c.session.txUser != user && c.session.txUser != nil:
		c.session.txUser = nil
		if err := c.asker.settle(ctx); err != nil {
			return err
		}
		if c.relay.know().Multi {
			return c.asker.spoilMulti(ctx)
		}
	}
	return nil
}

// tooLongFor says why a command that is too long to be held is refused whatever it is; empty where
// it is not. What must not go to the upstream must be looked at as a whole.
func (c *authChecker) tooLongFor(own *command.Command, follow string) string {
	switch {
	case c.session.who.Own == nil:
		return ""
	case follow == "auth", follow == "hello", own != nil && own.Local:
		return "ERR command too long"
	case !c.session.who.IsJudged():
		return ""
	}
	words, total, _ := resp.Words(nil, c.in.chunk(), math.MaxInt)
	return c.session.who.Refusal(words, total)
}

// afterReset has the client be who it is without a login, and the connection to the upstream that
// of its URL's user.
func (c *authChecker) afterReset(ctx context.Context) error {
	if c.session.who.Own == nil {
		return nil
	}
	c.session.logOut()
	if err := c.asker.settle(ctx); err != nil {
		return err
	}
	if c.relay.wire == nil || c.relay.isGone() || len(c.relay.up.Logins()) == 0 {
		return nil
	}
	if refused := c.loginAsURLUser(ctx); refused != "" {
		c.relay.sever()
		return errOver
	}
	return nil
}

// What is forwarded streams past, and the upstream itself refuses what is too long of a
// client that has not logged in there. But commands that are held until they are whole,
// the proxy's own and those whose keys are looked at, cost memory here: for them Redis'
// limits before the login hold here, too. Whether the client has logged in is asked as
// for its commands (loggedIn), and only where a command has not come whole at once.

// mustCheck reports whether it has to be found out if the client has logged in,
// before more of the current frame is held.
func (c *authChecker) mustCheck() bool {
	return !c.checked && !c.asker.isKnown(c.relay.know())
}

// limitHeld limits the current frame, of which nothing was sent, if the client has not
// logged in. It must not be called while reading.
func (c *authChecker) limitHeld(ctx context.Context) error {
	c.checked = true
	if c.session.who.Closed() {
		return c.in.scanner.Restrict(resp.UnauthenticatedLimits())
	}
	if err := c.sender.pass(ctx, c.in.frame); err != nil {
		return err
	}
	if err := c.asker.settle(ctx); err != nil {
		return err
	}
	state := c.relay.know()
	inside := state.Multi || state.Stream || state.Listening() || state.Monitoring // where nobody gets without a login
	if inside || c.asker.loggedIn(ctx, state) {
		return nil
	}
	return c.in.scanner.Restrict(resp.UnauthenticatedLimits())
}

// collect reads the rest of the frame, unless it is too long to be held.
func (c *authChecker) collect(ctx context.Context) (whole bool, err error) {
	if c.relay.up == nil && c.session.who.Closed() { // Redis' limits hold for what comes at once, too
		if err := c.limitHeld(ctx); err != nil {
			return false, err
		}
	}
	ev, err := c.in.eventWithin(maxFrame)
	if err != nil || ev == resp.FrameEnd {
		return err == nil, err
	}
	if c.mustCheck() {
		if err := c.limitHeld(ctx); err != nil {
			return false, err
		}
	}
	return c.session.collect()
}

// forget ends what holds for one frame.
func (c *authChecker) forget() {
	if c.checked {
		c.checked = false
		c.in.scanner.SetLimits(resp.DefaultRequestLimits())
	}
}
