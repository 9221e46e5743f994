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

// If the proxy has its own users, it checks each command first: whether the client has logged in at
// the proxy, and whether its user may send the command. At the upstream the client is the user of
// the URL, so AUTH is never forwarded.

// checkLogin runs the login in a command, and returns the words that are left: none of an AUTH. If
// the client is refused, it returns why: the login failed, or the client has not logged in. The
// error ends the session.
func (s *session) checkLogin(
	ctx context.Context, name string, words [][]byte,
) (left [][]byte, refused string, err error) {
	if s.login.Own.Ended() {
		return nil, "", errStateLost
	}
	auth, asks, wrong := login.Read(name, words)
	switch {
	case wrong != "":
		return nil, wrong, nil
	case asks:
		refused, err = s.logIn(ctx, name, words, auth)
		return auth.Rest, refused, err
	case s.login.Own.User() != nil, name == "quit", name == "reset", server.IsOpen(words):
		return words, "", nil
	case name == "hello":
		return nil, login.NoAuthHello, nil
	}
	return nil, login.NoAuth, nil
}

// logIn logs the client in. It waits for its turn, which limits the rate of attempts.
func (s *session) logIn(ctx context.Context, name string, words [][]byte, l login.Auth) (refused string, err error) {
	own, user := s.shared.opts.Users, string(l.User)
	if name == "auth" && len(words) == 2 && own.Now().Find(acl.DefaultUser).NoPass {
		return users.NoPassword, nil
	}
	wait, ok := own.LoginDelay(s.client.Addr, user)
	if !ok {
		refused = users.TooMany
	} else if err := s.sleep(ctx, wait); err != nil {
		return "", err
	}
	if refused == "" {
		refused = s.login.Own.Try(s.client.Addr, user, l.Password)
	}
	if refused != "" {
		s.shared.clientLog.warn(time.Now(), "client login failed",
			"client", s.client.Addr.String(), "user", own.LogName(user))
		return refused, nil
	}
	s.client.User = s.login.Own.Name()
	return "", nil
}

// sleep waits, but stops if the client leaves.
func (s *session) sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	watched, stop := s.watch(ctx)
	defer stop()
	return pacing.Sleep(watched, d)
}

// logOut logs the client out, as RESET does.
func (s *session) logOut() {
	s.login.Own.Reset()
	s.client.User = s.login.Own.Name()
}

// noteName records the name that the client gives itself, for LOCKINFO. It does not wait for the
// upstream's reply.
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
