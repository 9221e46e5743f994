package login

import (
	"crypto/sha256"
	"crypto/subtle"
)

// Gate is the login at the proxy itself. It is needed if the proxy logs in at the upstream with its
// own password, which would otherwise admit every client. After the login a client is the user of
// the upstream's URL, and may become another one as on any Redis.
type Gate struct {
	password string // empty: there is no gate
	// Passed is set once the client has logged in at the gate.
	Passed bool
}

// NewGate returns a gate with a password. If the password is empty, the gate is open.
func NewGate(password string) Gate { return Gate{password: password, Passed: password == ""} }

// Renew sets the password for the next command. An empty password does not open a gate.
func (g *Gate) Renew(password string) {
	if password != "" {
		g.password = password
	}
}

// Closed reports whether the client must log in first.
func (g *Gate) Closed() bool { return g.password != "" && !g.Passed }

// Guards reports whether the gate handles a followed command.
func (g *Gate) Guards(follow string) bool {
	return g.Closed() || g.password != "" && (follow == "auth" || follow == "hello" || follow == "reset")
}

// Asks reports whether a login is for the gate.
func (g *Gate) Asks(a Auth) bool { return g.Closed() || string(a.User) == DefaultUser }

// Refuses reports whether the gate refuses a login. Its time does not depend on the password.
func (g *Gate) Refuses(a Auth) bool {
	given, wanted := sha256.Sum256(a.Password), sha256.Sum256([]byte(g.password))
	return string(a.User) != DefaultUser || subtle.ConstantTimeCompare(given[:], wanted[:]) != 1
}
