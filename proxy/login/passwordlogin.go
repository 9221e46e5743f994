package login

import (
	"crypto/sha256"
	"crypto/subtle"
)

// PasswordLogin holds a client's login at the proxy, by a password. The proxy requires this login
// if it logs in at the upstream for its clients, because otherwise the upstream would admit every
// client. After the login a client acts as the user in the upstream's URL, and may log in as
// another user as on any Redis.
type PasswordLogin struct {
	password string // empty if the proxy requires no login
	// LoggedIn is set once the client has logged in, or if the proxy requires no login.
	LoggedIn bool
}

// NewPasswordLogin returns a login that requires a password. If the password is empty, the proxy
// requires no login.
func NewPasswordLogin(password string) PasswordLogin {
	return PasswordLogin{password: password, LoggedIn: password == ""}
}

// SetPassword sets the password, which a reload may have changed. An empty password does not end
// the need for a login: the old password remains.
func (g *PasswordLogin) SetPassword(password string) {
	if password != "" {
		g.password = password
	}
}

// MustLogIn reports whether the client must log in at the proxy before other commands.
func (g *PasswordLogin) MustLogIn() bool { return g.password != "" && !g.LoggedIn }

// Handles reports whether the proxy must check a command for a login; stateCmd is the command's
// name in lower case.
func (g *PasswordLogin) Handles(stateCmd string) bool {
	return g.MustLogIn() || g.password != "" && (stateCmd == "auth" || stateCmd == "hello" || stateCmd == "reset")
}

// DecidesLogin reports whether the proxy, not the upstream, decides about a login.
func (g *PasswordLogin) DecidesLogin(a Auth) bool {
	return g.MustLogIn() || string(a.User) == DefaultUser
}

// Refuses reports whether the proxy refuses a login. It compares passwords in constant time.
func (g *PasswordLogin) Refuses(a Auth) bool {
	given, wanted := sha256.Sum256(a.Password), sha256.Sum256([]byte(g.password))
	return string(a.User) != DefaultUser || subtle.ConstantTimeCompare(given[:], wanted[:]) != 1
}
