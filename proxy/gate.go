package proxy

import (
	"context"

	"redlock-proxy/commands/command"
	"redlock-proxy/commands/rights"
	"redlock-proxy/commands/server"
	"redlock-proxy/internal/resp"
	"redlock-proxy/proxy/login"
	"redlock-proxy/proxy/track"
)

// checking is who the client is and what it may send, before a command is carried out: by the proxy's gate, or by its own users.
type checking struct {
	session *session
	relay   *relay
	asking  *asking
	sending *sending
	in      *input
	client  *command.Client

	checked bool // it was found out whether the client has logged in, for the current frame
}

// check deals with a command that has to do with a login, or that the client may not send. It gives what is left to be done of it: nothing
// where it is answered.
func (c *checking) check(ctx context.Context, own *command.Command, follow string, words [][]byte) (left [][]byte, err error) {
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

// checkGate is check by the proxy's gate. It reports false for a command that goes on as if there were none.
func (c *checking) checkGate(ctx context.Context, own *command.Command, follow string, words [][]byte) (done bool, err error) {
	if err := c.asking.settle(ctx); err != nil {
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
		return true, c.sending.say("OK")
	case follow == "reset" && len(words) == 1 && gate.Passed:
		gate.Passed = false
	case ours && gate.Refuses(l):
		return true, c.sending.sayError(login.WrongPass)
	case ours:
		return true, c.passGate(ctx, follow, l)
	case gate.Closed() && follow == "hello":
		return true, c.sending.sayError(login.NoAuthHello)
	case gate.Closed():
		return true, c.sending.sayError(login.NoAuth)
	}
	return false, nil
}

// passGate lets the client in, as the user of the URL.
func (c *checking) passGate(ctx context.Context, follow string, l login.Auth) error {
	if refused := c.loginAsURLUser(ctx); refused != "" {
		return c.sending.sayError(refused)
	}
	c.session.who.Gate.Passed = true
	if follow == "hello" {
		return c.sending.sendHello(l.Rest)
	}
	return c.sending.say("OK")
}

// loginAsURLUser has the client's connection be that of the URL's user: a new one is so from
// the beginning.
func (c *checking) loginAsURLUser(ctx context.Context) (refused string) {
	u := c.relay.up
	fresh := c.relay.wire == nil || c.relay.isGone()
	words := u.Logins()
	if fresh && c.relay.open(ctx) == nil || len(words) == 0 {
		return ""
	}
	answer, err := c.asking.askAloud(ctx, words...)
	switch {
	case err != nil:
		return "ERR " + (&rights.UnknownError{Cause: err}).Error()
	case !resp.Begins(answer, "+OK"):
		return resp.FirstLine(answer)
	}
	c.relay.teach(func(s *track.State) { s.Login(true, false) })
	return ""
}

// What is forwarded streams past, and the upstream itself refuses what is too long of a
// client that has not logged in there. But commands that are held until they are whole,
// the proxy's own and those whose keys are looked at, cost memory here: for them Redis'
// limits before the login hold here, too. Whether the client has logged in is asked as
// for its commands (loggedIn), and only where a command has not come whole at once.

// mustCheck reports whether it has to be found out if the client has logged in,
// before more of the current frame is held.
func (c *checking) mustCheck() bool {
	return !c.checked && !c.asking.isKnown(c.relay.know())
}

// limitHeld limits the current frame, of which nothing was sent, if the client has not
// logged in. It must not be called while reading.
func (c *checking) limitHeld(ctx context.Context) error {
	c.checked = true
	if c.session.who.Closed() {
		return c.in.scanner.Restrict(resp.UnauthenticatedLimits())
	}
	if err := c.sending.pass(ctx, c.in.frame); err != nil {
		return err
	}
	if err := c.asking.settle(ctx); err != nil {
		return err
	}
	state := c.relay.know()
	inside := state.Multi || state.Stream || state.Listening() || state.Monitoring // where nobody gets without a login
	if inside || c.asking.loggedIn(ctx, state) {
		return nil
	}
	return c.in.scanner.Restrict(resp.UnauthenticatedLimits())
}

// collect reads the rest of the frame, unless it is too long to be held.
func (c *checking) collect(ctx context.Context) (whole bool, err error) {
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
func (c *checking) forget() {
	if c.checked {
		c.checked = false
		c.in.scanner.SetLimits(resp.DefaultRequestLimits())
	}
}
