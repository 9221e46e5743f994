package proxy

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"redlock-proxy/commands/auth/acl"
	"redlock-proxy/commands/auth/users"
	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/command"
	"redlock-proxy/commands/server"
	"redlock-proxy/internal/pacing"
	"redlock-proxy/internal/resp"
	"redlock-proxy/proxy/login"
)

// Where the users are the proxy's own, each command is looked at before anything else is done with it: whether the
// client has logged in, here and not at the upstream, and whether it may send it. To the upstream the client is the
// user of its URL, so AUTH never goes there.

// identify has the client be who it is before it has said anything.
func (s *session) identify() {
	if u := s.server.opts.Users; u != nil {
		s.who.Own = u.Begin()
		s.client.Judge = s.who.Own
		s.client.User = s.who.Own.Name()
	}
}

// checkLogin does the login that stands in a command, and gives what is left of it: nothing of an AUTH. Or it says why the
// client is refused: by its login, or because it has none. The error ends the session.
func (s *session) checkLogin(ctx context.Context, name string, words [][]byte) (left [][]byte, refused string, err error) {
	if s.who.Own.Ended() {
		return nil, "", errOver
	}
	auth, asks, wrong := login.Read(name, words)
	switch {
	case wrong != "":
		return nil, wrong, nil
	case asks:
		refused, err = s.logIn(ctx, name, words, auth)
		return auth.Rest, refused, err
	case s.who.Own.User() != nil, name == "quit", name == "reset", server.IsOpen(words):
		return words, "", nil
	case name == "hello":
		return nil, login.NoAuthHello, nil
	}
	return nil, login.NoAuth, nil
}

// logIn logs the client in, when it is its turn.
func (s *session) logIn(ctx context.Context, name string, words [][]byte, l login.Auth) (refused string, err error) {
	own, user := s.server.opts.Users, string(l.User)
	if name == "auth" && len(words) == 2 && own.Now().Find(acl.DefaultUser).NoPass {
		return users.NoPassword, nil
	}
	wait, ok := own.Turn(s.client.Addr, user)
	if !ok {
		refused = users.TooMany
	} else if err := s.pause(ctx, wait); err != nil {
		return "", err
	}
	if refused == "" {
		refused = s.who.Own.Try(s.client.Addr, user, l.Password)
	}
	if refused != "" {
		s.server.turned.warn(time.Now(), "a client failed to log in", "client", s.client.Addr.String(), "user", own.Known(user))
		return refused, nil
	}
	s.client.User = s.who.Own.Name()
	return "", nil
}

// pause waits, and no longer when the client leaves.
func (s *session) pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	watched, stop := s.watch(ctx)
	defer stop()
	return pacing.Sleep(watched, d)
}

// logOut is what RESET does to the login.
func (s *session) logOut() {
	s.who.Own.Leave()
	s.client.User = s.who.Own.Name()
}

// checkUser is check by who the client is.
func (c *checking) checkUser(ctx context.Context, follow string, words [][]byte) (left [][]byte, err error) {
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
			return nil, c.sending.refuseHeld(ctx, refused)
		}
	}
	left, refused, err := c.session.checkLogin(ctx, name, words)
	switch {
	case err != nil:
		return nil, err
	case refused != "":
		return nil, c.sending.refuseHeld(ctx, refused)
	case left == nil:
		return nil, c.sending.say("OK")
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
		return nil, c.sending.say("OK")
	case c.session.who.Closed(): // a RESET of nothing
		return nil, c.sending.say("RESET")
	}
	if refused := c.client.Judge.Refusal(words); refused != "" {
		return nil, c.sending.refuseHeld(ctx, refused)
	}
	return words, c.holdTransaction(ctx, follow)
}

// cannotLogIn says, when the upstream has answered all, what keeps a login from being done at once.
func (c *checking) cannotLogIn(ctx context.Context, name string, asked bool) (refused string, err error) {
	if err := c.asking.settle(ctx); err != nil {
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
func (c *checking) helloWithoutLogin(ctx context.Context, words [][]byte) error {
	if err := c.relay.open(ctx); err != nil {
		return c.sending.refuse(ctx, nil, 1, err)
	}
	c.session.noteName("hello", words)
	return c.sending.sendHello(words)
}

// holdTransaction remembers with which rights a transaction at the upstream began, and has it refused there if they are others
// when it is to be carried out.
func (c *checking) holdTransaction(ctx context.Context, follow string) error {
	user := c.session.who.Own.User()
	switch {
	case follow == "multi":
		c.session.txUser = user
	case follow == "exec" && c.session.txUser != user && c.session.txUser != nil:
		c.session.txUser = nil
		if err := c.asking.settle(ctx); err != nil {
			return err
		}
		if c.relay.know().Multi {
			return c.asking.spoilMulti(ctx)
		}
	}
	return nil
}

// tooLongFor says why a command that is too long to be held is refused whatever it is; empty where it is not. What
// must not go to the upstream must be looked at as a whole.
func (c *checking) tooLongFor(own *command.Command, follow string) string {
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

// afterReset has the client be who it is without a login, and the connection to the upstream that of its URL's user.
func (c *checking) afterReset(ctx context.Context) error {
	if c.session.who.Own == nil {
		return nil
	}
	c.session.logOut()
	if err := c.asking.settle(ctx); err != nil {
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

// followUsers ends the connections of clients that are nobody any more, or that may not go on to hear what they hear, until
// stop is called.
func (s *Server) followUsers(ctx context.Context) (stop func()) {
	own := s.opts.Users
	if own == nil {
		return func() {}
	}
	return own.Watch(func(changed func(string) bool) {
		for _, session := range s.all() {
			name := session.who.Own.Name()
			if session.who.Own.Ended() || changed(name) && session.hears() && !own.Now().Find(name).MayAll() {
				session.cut()
				s.wake(ctx, session)
			}
		}
	})
}

// hears reports whether the client gets what it does not ask for one by one.
func (s *session) hears() bool {
	state := s.relay.know()
	return state.Listening() || state.Monitoring || state.Stream || s.subscriber.Load().Any()
}
