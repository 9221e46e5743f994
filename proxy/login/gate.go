package login

import (
	"crypto/sha256"
	"crypto/subtle"
)

// Gate holds a client's login at the proxy, by a password. The proxy needs a gate if it logs in at
// the upstream with its own password, which would otherwise admit every client. After the login a
// client acts as the user in the upstream's URL, and may log in as another user as on any Redis.
type Gate struct {
	password string // empty if there is no gate
	// LoggedIn is set once the client has logged in at the gate.
	LoggedIn bool
}

// NewGate returns a gate with a password. If the password is empty, the gate is open.
func NewGate(password string) Gate { return Gate{password: password, LoggedIn: password == ""} }

// SetPassword sets the password, which a reload may have changed. An empty password does not open
// the gate: the old password remains.
func (g *Gate) SetPassword(password string) {
	if password != "" {
		g.password = password
	}
}

// MustLogIn reports whether the client must log in at the gate before other commands.
func (g *Gate) MustLogIn() bool { return g.password != "" && !g.LoggedIn }

// Handles reports whether the gate handles a command; stateCmd is its name in lower case.
func (g *Gate) Handles(stateCmd string) bool {
	return g.MustLogIn() || g.password != "" && (stateCmd == "auth" || stateCmd == "hello" || stateCmd == "reset")
}

// IsForGate reports whether the gate, not the upstream, decides about a login.
func (g *Gate) IsForGate(a Auth) bool { return g.MustLogIn() || string(a.User) == DefaultUser }

// Refuses reports whether the gate refuses a login. It compares passwords in constant time.
func (g *Gate) Refuses(a Auth) bool {
	given, wanted := sha256.Sum256(a.Password), sha256.Sum256([]byte(g.password))
	return string(a.User) != DefaultUser || subtle.ConstantTimeCompare(given[:], wanted[:]) != 1
}
