package proxy

import (
	"context"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/command"
	"redlock-proxy/commands/rights"
	"redlock-proxy/commands/server"
	"redlock-proxy/internal/resp"
	"redlock-proxy/proxy/login"
	"redlock-proxy/proxy/track"
)

// checkGate deals with a command that has to do with the gate. It reports false for one
// that goes on as if there were none.
func (f *forwarding) checkGate(ctx context.Context, own *command.Command, follow string, words [][]byte) (done bool, err error) {
	if err := f.settle(ctx); err != nil {
		return true, err
	}
	gate := &f.session.who.Gate
	l, logsIn := login.Find(follow, words)
	ours := logsIn && gate.Asks(l)
	before := len(f.out.Bytes)
	switch {
	case own != nil && server.IsOpen(words): // for anybody
		return false, nil
	case f.relay.know().Multi: // the upstream queues or refuses it
		return false, nil
	case follow == "quit":
		f.client.Closing = true
		f.out.Status("OK")
	case follow == "reset" && len(words) == 1 && gate.Passed:
		gate.Passed = false
		return false, nil
	case ours && gate.Refuses(l):
		f.out.Error(login.WrongPass)
	case ours:
		return true, f.passGate(ctx, follow, l)
	case gate.Closed() && follow == "hello":
		f.out.Error(login.NoAuthHello)
	case gate.Closed():
		f.out.Error(login.NoAuth)
	default:
		return false, nil
	}
	f.afterOwn(before)
	return true, nil
}

// passGate lets the client in, as the user of the URL.
func (f *forwarding) passGate(ctx context.Context, follow string, l login.Auth) error {
	before := len(f.out.Bytes)
	if refused := f.loginAsURLUser(ctx); refused != "" {
		f.out.Error(refused)
		f.afterOwn(before)
		return nil
	}
	f.session.who.Gate.Passed = true
	if follow == "hello" {
		return f.followWords(l.Rest)
	}
	f.out.Status("OK")
	f.afterOwn(before)
	return nil
}

// loginAsURLUser has the client's connection be that of the URL's user: a new one is so from
// the beginning.
func (f *forwarding) loginAsURLUser(ctx context.Context) (refused string) {
	u := f.relay.up
	fresh := f.relay.wire == nil || f.relay.isGone()
	words := u.Logins()
	if fresh && f.relay.open(ctx) == nil || len(words) == 0 {
		return ""
	}
	answer, err := f.askAloud(ctx, words...)
	switch {
	case err != nil:
		return "ERR " + (&rights.UnknownError{Cause: err}).Error()
	case !resp.Begins(answer, "+OK"):
		return resp.FirstLine(answer)
	}
	f.relay.teach(func(s *track.State) { s.Login(true, false) })
	return ""
}

// followWords forwards other words in the place of the command that is held.
func (f *forwarding) followWords(words [][]byte) error {
	if err := f.session.flush(); err != nil {
		return err
	}
	s := track.SlotFor("hello", words, len(words))
	if f.count() == 0 {
		f.relay.unheard(s)
	} else if !f.relay.follow(s) {
		return errOver
	}
	f.relay.send(requestOf([][]string{syntax.Strings(words)}))
	return nil
}

// turnAway throws a frame away that a client sent which has still to log in.
func (f *forwarding) turnAway(ctx context.Context) error {
	if err := f.settle(ctx); err != nil {
		return err
	}
	before := len(f.out.Bytes)
	err := f.session.discard(func([][]byte) { f.client.Refuse(login.NoAuth, f.out) })
	f.frame, f.keys = f.in.start, keySearch{}
	f.afterOwn(before)
	return err
}

// What is forwarded streams past, and the upstream itself refuses what is too long of a
// client that has not logged in there. But commands that are held until they are whole,
// the proxy's own and those whose keys are looked at, cost memory here: for them Redis'
// limits before the login hold here, too. Whether the client has logged in is asked as
// for its commands (loggedIn), and only where a command has not come whole at once.

// mustCheckLogin reports whether it has to be found out if the client has logged in,
// before more of the current frame is held.
func (f *forwarding) mustCheckLogin() bool {
	return !f.checked && !f.isKnown(f.relay.know())
}

// limitHeld limits the current frame, of which nothing was sent, if the client has not
// logged in. It must not be called while reading.
func (f *forwarding) limitHeld(ctx context.Context) error {
	f.checked = true
	if f.session.who.Closed() {
		return f.in.scanner.Restrict(resp.UnauthenticatedLimits())
	}
	if err := f.pass(ctx, f.frame); err != nil {
		return err
	}
	if err := f.settle(ctx); err != nil {
		return err
	}
	state := f.relay.know()
	inside := state.Multi || state.Stream || state.Listening() || state.Monitoring // where nobody gets without a login
	if inside || f.loggedIn(ctx, state) {
		return nil
	}
	return f.in.scanner.Restrict(resp.UnauthenticatedLimits())
}

// collect reads the rest of the frame, unless it is too long to be held.
func (f *forwarding) collect(ctx context.Context) (whole bool, err error) {
	ev, err := f.in.eventWithin(maxFrame)
	if err != nil || ev == resp.FrameEnd {
		return err == nil, err
	}
	if f.mustCheckLogin() {
		if err := f.limitHeld(ctx); err != nil {
			return false, err
		}
	}
	return f.session.collect()
}

// forgetFrame ends what holds for one frame.
func (f *forwarding) forgetFrame() {
	f.keys = keySearch{}
	if f.checked {
		f.checked = false
		f.in.scanner.SetLimits(resp.DefaultRequestLimits())
	}
}
