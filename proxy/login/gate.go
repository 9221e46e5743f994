package login

import (
	"crypto/sha256"
	"crypto/subtle"
)

// Gate is the login at the proxy itself: needed where it logs in at the upstream with a
// password of its own, which would else be everybody's. After it a client is the user of
// the upstream's URL, and may become another one as on any Redis.
type Gate struct {
	password string // empty: there is no gate
	// Passed is set once the client has come through.
	Passed bool
}

// NewGate makes one with a password; without one it is open.
func NewGate(password string) Gate { return Gate{password: password, Passed: password == ""} }

// Renew takes the password that holds for the next command. A gate never opens for want of one.
func (g *Gate) Renew(password string) {
	if password != "" {
		g.password = password
	}
}

// Closed reports whether nothing but a login is let through.
func (g *Gate) Closed() bool { return g.password != "" && !g.Passed }

// Guards reports whether a followed command has to do with the gate.
func (g *Gate) Guards(follow string) bool {
	return g.Closed() || g.password != "" && (follow == "auth" || follow == "hello" || follow == "reset")
}

// Asks reports whether a login is one at the gate.
func (g *Gate) Asks(a Auth) bool { return g.Closed() || string(a.User) == DefaultUser }

// Refuses reports whether it is refused. It compares in a time that tells nothing of the password.
func (g *Gate) Refuses(a Auth) bool {
	given, wanted := sha256.Sum256(a.Password), sha256.Sum256([]byte(g.password))
	return string(a.User) != DefaultUser || subtle.ConstantTimeCompare(given[:], wanted[:]) != 1
}
