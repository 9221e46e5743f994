package users

import (
	"net"
	"sync/atomic"
	"time"

	"redlock-proxy/commands/auth/acl"
)

// Error replies to logins, in Redis' wording.
const (
	WrongPass  = "WRONGPASS invalid username-password pair or user is disabled."
	NoPassword = "ERR AUTH <password> called without any password configured for the default user. " +
		"Are you sure your configuration is correct?"
	// TooManyLogins has no counterpart in Redis, which does not delay logins.
	TooManyLogins = "ERR too many failed logins from this address; try again later"
)

// Login holds the login state of a client. It belongs to the client's goroutine. Any goroutine may
// call HasEnded and Name.
type Login struct {
	users    *Users
	identity atomic.Pointer[identity] // nil without a login
}

// identity holds a user, the set in which the login found the user, and the hash of the password.
type identity struct {
	set          *acl.Set
	user         *acl.User
	passwordHash acl.PasswordHash
}

// NewLogin returns the state of a new client. The client is logged in as the default user if that
// user requires no password.
func (u *Users) NewLogin() *Login {
	l := &Login{users: u}
	l.Reset()
	return l
}

// Reset returns the client to the state of a new client.
func (l *Login) Reset() {
	l.identity.Store(nil)
	if set := l.users.Current(); set.IsOpen() {
		l.identity.Store(&identity{set, set.Find(acl.DefaultUser), ""})
	}
}

// User returns the client's user; nil without a login, or if the login has ended.
func (l *Login) User() *acl.User {
	current := l.identity.Load()
	if current == nil {
		return nil
	}
	set := l.users.Current()
	if current.set == set {
		return current.user
	}
	user := set.Find(current.user.Name)
	if user == nil || !user.AcceptsPasswordHash(current.passwordHash) {
		return nil
	}
	l.identity.Store(&identity{set, user, current.passwordHash})
	return user
}

// HasEnded reports whether the client had a login that is no longer valid.
func (l *Login) HasEnded() bool {
	current := l.identity.Load()
	if current == nil {
		return false
	}
	user := l.users.Current().Find(current.user.Name)
	return user == nil || !user.AcceptsPasswordHash(current.passwordHash)
}

// Name returns the name of the user of the last login, or an empty string.
func (l *Login) Name() string {
	if current := l.identity.Load(); current != nil {
		return current.user.Name
	}
	return ""
}

// LoginDelay returns the time for which a client must wait before Try, because logins from its
// address have failed. ok is false if the client must not try, because too many logins wait
// already.
func (u *Users) LoginDelay(addr net.Addr, name string) (wait time.Duration, ok bool) {
	return u.throttle.delay(time.Now(), addr, name)
}

// Try logs the client in, or returns the error and keeps the previous login.
func (l *Login) Try(addr net.Addr, name string, password []byte) (errorReply string) {
	set := l.users.Current()
	user := set.Find(name)
	if user == nil {
		user = unknownUser
	}
	passwordHash, ok := user.CheckPassword(password)
	if !ok {
		l.users.throttle.recordFailure(time.Now(), addr, name)
		return WrongPass
	}
	l.identity.Store(&identity{set, user, passwordHash})
	return ""
}

// unknownUser takes the place of an unknown user, so that the check of a password takes as long as
// for a known user. It is immutable.
var unknownUser = acl.UserWithoutPassword()

// NameForLog returns a user's name for the log. It hides an unknown name, which may be a password
// in the wrong place.
func (u *Users) NameForLog(name string) string {
	if u.Current().Find(name) == nil {
		return "(unknown)"
	}
	return name
}

// Refusal returns the error for a command of these words; empty if the client may send it.
func (l *Login) Refusal(words [][]byte) string {
	user := l.User()
	switch {
	case user == nil && acl.NeedsNoPermission(words[0]):
		return ""
	case user == nil:
		return "NOAUTH Authentication required."
	}
	return user.Check(words).Error()
}

// MayRead reports whether the client may read the value of a key.
func (l *Login) MayRead(key string) bool {
	user := l.User()
	return user != nil && user.MayRead(key)
}
