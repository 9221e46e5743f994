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
// the proxy, and whether its user may send the command. At the upstream the client acts as the
// URL's user, so the proxy does not forward AUTH.

// checkLogin runs the login in a command. rest holds the command's words without the login; nil for
// AUTH. refusal is set if the login failed, or the client has not logged in. The error ends the
// session.
func (s *session) checkLogin(
	ctx context.Context, name string, words [][]byte,
) (rest [][]byte, refusal string, err error) {
	if s.login.UserLogin.HasEnded() {
		return nil, "", errStateLost
	}
	auth, logsIn, syntaxErr := login.Parse(name, words)
	switch {
	case syntaxErr != "":
		return nil, syntaxErr, nil
	case logsIn:
		refusal, err = s.logIn(ctx, name, words, auth)
		return auth.Rest, refusal, err
	case s.login.UserLogin.User() != nil, name == "quit", name == "reset", server.NeedsNoLogin(words):
		return words, "", nil
	case name == "hello":
		return nil, login.NoAuthHello, nil
	}
	return nil, login.NoAuth, nil
}

// logIn logs the client in. It waits for its turn, which limits the rate of attempts.
func (s *session) logIn(ctx context.Context, name string, words [][]byte, l login.Auth) (refusal string, err error) {
	ownUsers, user := s.serverState.opts.Users, string(l.User)
	if name == "auth" && len(words) == 2 && ownUsers.Current().Find(acl.DefaultUser).NoPass {
		return users.NoPassword, nil
	}
	wait, ok := ownUsers.LoginDelay(s.client.Addr, user)
	if !ok {
		refusal = users.TooManyLogins
	} else if err := s.sleep(ctx, wait); err != nil {
		return "", err
	}
	if refusal == "" {
		refusal = s.login.UserLogin.Try(s.client.Addr, user, l.Password)
	}
	if refusal != "" {
		s.serverState.proxyState.clientLog.Warn(time.Now(), "client login failed",
			"client", s.client.Addr.String(), "user", ownUsers.NameForLog(user))
		return refusal, nil
	}
	s.client.User = s.login.UserLogin.Name()
	return "", nil
}

// sleep waits, but returns early if the client leaves.
func (s *session) sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	watchCtx, stop := s.watch(ctx)
	defer stop()
	return pacing.Sleep(watchCtx, d)
}

// logOut logs the client out, as RESET does.
func (s *session) logOut() {
	s.login.UserLogin.Reset()
	s.client.User = s.login.UserLogin.Name()
}

// noteName records the client's name from CLIENT SETNAME or HELLO, for LOCKINFO. It does not wait
// for the upstream's reply.
func (s *session) noteName(name string, words [][]byte) {
	clientName := s.client.Name
	switch {
	case name == "reset" && len(words) == 1:
		clientName = ""
	case name == "client" && len(words) == 3 && syntax.Lower(words[1]) == "setname":
		clientName = string(words[2])
	case name == "hello":
		for i := 2; i+1 < len(words); i++ {
			switch syntax.LowerCString(words[i]) {
			case "auth":
				i += 2
			case "setname":
				i++
				clientName = string(words[i])
			}
		}
	}
	if server.IsClientName(clientName) {
		s.client.Name = clientName
	}
}
