package proxy

import (
	"context"
	"time"

	"redlock-proxy/commands/auth/acl"
	"redlock-proxy/commands/auth/users"
	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/server"
	"redlock-proxy/internal/pacing"
	"redlock-proxy/proxy/login"
)

// Where the users are the proxy's own, each command is looked at before anything else is done with
// it: whether the client has logged in, here and not at the upstream, and whether it may send it.
// To the upstream the client is the user of its URL, so AUTH never goes there.

// checkLogin does the login that stands in a command, and gives what is left of it: nothing of an
// AUTH. Or it says why the client is refused: by its login, or because it has none. The error ends
// the session.
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
	own, user := s.shared.opts.Users, string(l.User)
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
		s.shared.turned.warn(time.Now(), "a client failed to log in", "client", s.client.Addr.String(), "user", own.Known(user))
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

// noteName takes down what the client calls itself, for those who ask who holds a lock. What the
// upstream says to it is not waited for.
func (s *session) noteName(name string, words [][]byte) {
	called := s.client.Name
	switch {
	case name == "reset" && len(words) == 1:
		called = ""
	case name == "client" && len(words) == 3 && syntax.Lower(words[1]) == "setname":
		called = string(words[2])
	case name == "hello":
		for i := 2; i+1 < len(words); i++ {
			switch syntax.Folded(words[i]) {
			case "auth":
				i += 2
			case "setname":
				i++
				called = string(words[i])
			}
		}
	}
	if server.IsClientName(called) {
		s.client.Name = called
	}
}
