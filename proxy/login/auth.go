package login

import (
	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/command"
	"redlock-proxy/commands/server"
)

// DefaultUser is the user of a login with a password only.
const DefaultUser = "default"

// Errors in Redis' own words.
const (
	NoAuth = "NOAUTH Authentication required."
	// NoAuthHello is Redis' refusal of a HELLO without AUTH.
	NoAuthHello = "NOAUTH HELLO must be called with the client already authenticated, " +
		"otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client " +
		"and select the RESP protocol version at the same time"
	WrongPass = "WRONGPASS invalid username-password pair or user is disabled."
)

// Auth is an AUTH command, or the AUTH option of a HELLO.
type Auth struct {
	User, Password []byte
	Rest           [][]byte // the HELLO without the option
}

// Find finds the login in a followed command. It ignores words that Redis would refuse.
func Find(follow string, words [][]byte) (a Auth, found bool) {
	switch {
	case follow == "auth" && len(words) == 2:
		return Auth{User: []byte(DefaultUser), Password: words[1]}, true
	case follow == "auth" && len(words) == 3:
		return Auth{User: words[1], Password: words[2]}, true
	case follow != "hello":
		return a, false
	}
	for i := 2; i < len(words); i++ {
		switch option := syntax.Folded(words[i]); {
		case option == "setname":
			i++
		case option == "auth" && i+2 < len(words):
			rest := append(append([][]byte{}, words[:i]...), words[i+3:]...)
			return Auth{words[i+1], words[i+2], rest}, true
		}
	}
	return a, false
}

// Read is Find for the proxy's own users. refused is Redis' error for wrong words.
func Read(name string, words [][]byte) (a Auth, found bool, refused string) {
	switch {
	case name == "auth" && len(words) < 2:
		refused = syntax.WrongArity("auth")
	case name == "auth" && len(words) > 3:
		refused = syntax.ErrSyntax
	case name == "hello" && len(words) > 1:
		refused = server.HelloRefusal(words)
	}
	if refused == "" {
		a, found = Find(name, words)
	}
	return a, found, refused
}

// IsAllowedBeforeLogin reports whether a command is allowed before the login, or is the login.
func IsAllowedBeforeLogin(own *command.Command, follow string) bool {
	switch follow {
	case "auth", "hello", "quit", "reset":
		return true
	}
	return own != nil && own.Name == "proxy"
}
