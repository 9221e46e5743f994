package login

import (
	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/command"
	"redlock-proxy/commands/server"
)

// DefaultUser is the user of a login that names no user.
const DefaultUser = "default"

// The texts of Redis' errors.
const (
	NoAuth = "NOAUTH Authentication required."
	// NoAuthHello is Redis' refusal of a HELLO without AUTH.
	NoAuthHello = "NOAUTH HELLO must be called with the client already authenticated, " +
		"otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client " +
		"and select the RESP protocol version at the same time"
	WrongPass = "WRONGPASS invalid username-password pair or user is disabled."
)

// Auth holds the login in an AUTH command, or in the AUTH option of a HELLO.
type Auth struct {
	User, Password []byte
	Rest           [][]byte // the words of the HELLO without the option
}

// Find returns the login in an AUTH or HELLO, whose name in lower case is stateCmd. Find ignores
// words that Redis would refuse.
func Find(stateCmd string, words [][]byte) (a Auth, found bool) {
	switch {
	case stateCmd == "auth" && len(words) == 2:
		return Auth{User: []byte(DefaultUser), Password: words[1]}, true
	case stateCmd == "auth" && len(words) == 3:
		return Auth{User: words[1], Password: words[2]}, true
	case stateCmd != "hello":
		return a, false
	}
	for i := 2; i < len(words); i++ {
		switch option := syntax.LowerCString(words[i]); {
		case option == "setname":
			i++
		case option == "auth" && i+2 < len(words):
			rest := append(append([][]byte{}, words[:i]...), words[i+3:]...)
			return Auth{words[i+1], words[i+2], rest}, true
		}
	}
	return a, false
}

// Parse finds a login like Find, for the proxy's own users. refusal is Redis' error for invalid
// words.
func Parse(name string, words [][]byte) (a Auth, found bool, refusal string) {
	switch {
	case name == "auth" && len(words) < 2:
		refusal = syntax.WrongArity("auth")
	case name == "auth" && len(words) > 3:
		refusal = syntax.ErrSyntax
	case name == "hello" && len(words) > 1:
		refusal = server.HelloRefusal(words)
	}
	if refusal == "" {
		a, found = Find(name, words)
	}
	return a, found, refusal
}

// IsAllowedBeforeLogin reports whether a client may send a command before the login.
func IsAllowedBeforeLogin(ownCmd *command.Command, stateCmd string) bool {
	switch stateCmd {
	case "auth", "hello", "quit", "reset":
		return true
	}
	return ownCmd != nil && ownCmd.Name == "proxy"
}
