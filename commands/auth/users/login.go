package users

import (
	"net"
	"sync/atomic"
	"time"

	"redlock-proxy/commands/auth/acl"
)

// Error replies of logins, in Redis' words.
const (
	WrongPass  = "WRONGPASS invalid username-password pair or user is disabled."
	NoPassword = "ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?"
	// TooMany is ours: Redis does not slow anybody down.
	TooMany = "ERR too many failed logins from this address: try again later"
)

// Login is who a client is. It belongs to the client's goroutine; only Ended and Name are for any.
type Login struct {
	users *Users
	as    atomic.Pointer[identity] // nil: nobody
}

// identity is a user by the set it was found in, and how the client showed to be that one.
type identity struct {
	set   *acl.Set
	user  *acl.User
	proof acl.Proof
}

// Begin is the login of a client that has just connected: it is the default user if that one needs
// no password.
func (u *Users) Begin() *Login {
	l := &Login{users: u}
	l.Leave()
	return l
}

// Leave has the client be again who it was when it connected.
func (l *Login) Leave() {
	l.as.Store(nil)
	if set := l.users.Now(); set.IsOpen() {
		l.as.Store(&identity{set, set.Find(acl.DefaultUser), ""})
	}
}

// User is who the client is now; nil: nobody, as one must log in, or must do so again.
func (l *Login) User() *acl.User {
	as := l.as.Load()
	if as == nil {
		return nil
	}
	set := l.users.Now()
	if as.set == set {
		return as.user
	}
	user := set.Find(as.user.Name)
	if user == nil || !user.Stands(as.proof) {
		return nil
	}
	l.as.Store(&identity{set, user, as.proof})
	return user
}

// Ended reports whether the client was somebody that it can be no more.
func (l *Login) Ended() bool {
	as := l.as.Load()
	if as == nil {
		return false
	}
	user := l.users.Now().Find(as.user.Name)
	return user == nil || !user.Stands(as.proof)
}

// Name is that of the user that the client has logged in as, or empty.
func (l *Login) Name() string {
	if as := l.as.Load(); as != nil {
		return as.user.Name
	}
	return ""
}

// Turn is to be asked before Try: how long the client must wait for its turn, because logins from
// its address have failed. It reports false for one that is not to be tried at all, as too many
// wait already.
func (u *Users) Turn(addr net.Addr, name string) (wait time.Duration, ok bool) {
	return u.slow.turn(time.Now(), addr, name)
}

// Try logs the client in, or gives the error. Then it stays who it was.
func (l *Login) Try(addr net.Addr, name string, password []byte) (refused string) {
	set := l.users.Now()
	user := set.Find(name)
	if user == nil {
		user = nobody
	}
	proof, ok := user.Fits(password)
	if !ok {
		l.users.slow.failed(time.Now(), addr, name)
		return WrongPass
	}
	l.as.Store(&identity{set, user, proof})
	return ""
}

// nobody is looked at for a user that there is not, so that this takes as long. It is never
// changed.
var nobody = acl.Nobody()

// Known is a user's name as a log may show it: what is no user's may be a password at the wrong
// place.
func (u *Users) Known(name string) string {
	if u.Now().Find(name) == nil {
		return "(none of that name)"
	}
	return name
}

// Refusal is the error for a command of these words; empty where the client may send it.
func (l *Login) Refusal(words [][]byte) string {
	user := l.User()
	switch {
	case user == nil && acl.IsFree(words[0]):
		return ""
	case user == nil:
		return "NOAUTH Authentication required."
	}
	return user.Check(words).Error()
}

// MayRead reports whether the client may know what a key holds.
func (l *Login) MayRead(key string) bool {
	user := l.User()
	return user != nil && user.MayRead(key)
}
