package server

import (
	"fmt"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/command"
)

// defaultUser is the only user of a proxy without a password. As in Redis, any password is valid.
const defaultUser = "default"

const wrongPass = "WRONGPASS invalid username-password pair or user is disabled."

func auth(c command.Call) {
	switch {
	case len(c.Args) > 3:
		c.Out.WriteError(syntax.ErrSyntax)
	case len(c.Args) == 2:
		c.Out.WriteError("ERR AUTH <password> called without any password configured for the default user. " +
			"Are you sure your configuration is correct?")
	case string(c.Args[1]) != defaultUser:
		c.Out.WriteError(wrongPass)
	default:
		c.Out.WriteStatus("OK")
	}
}

// hello implements HELLO [protover [AUTH username password] [SETNAME clientname]].
func (s *Server) hello(c command.Call) {
	proto := int64(c.Client.Proto)
	if len(c.Args) > 1 {
		var ok bool
		if proto, ok = syntax.Int(c.Args[1]); !ok {
			c.Out.WriteError("ERR Protocol version is not an integer or out of range")
			return
		}
		if proto < 2 || proto > 3 {
			c.Out.WriteError("NOPROTO unsupported protocol version")
			return
		}
		if !applyHelloOptions(c.Client, c.Args[2:], c.Out) {
			return
		}
	}
	c.Client.SetProto(int(proto), c.Out)
	s.replyHello(c.Client, c.Out)
}

// applyHelloOptions carries out the options after the version, or replies with the error.
func applyHelloOptions(c *command.Client, options [][]byte, out *command.Reply) bool {
	name := []byte(nil)
	for len(options) > 0 {
		word := syntax.LowerCString(options[0])
		switch {
		case word == "auth" && len(options) >= 3:
			if string(options[1]) != defaultUser {
				out.WriteError(wrongPass)
				return false
			}
			options = options[3:]
		case word == "setname" && len(options) >= 2:
			name, options = options[1], options[2:]
		default:
			out.WriteError(fmt.Sprintf("ERR Syntax error in HELLO option '%s'", syntax.CString(options[0], len(options[0]))))
			return false
		}
	}
	return name == nil || setClientName(c, name, out)
}

// HelloRefusal returns the error with which Redis rejects the form of a HELLO, or an empty string.
// HelloRefusal rejects two logins, but does not check the login itself.
func HelloRefusal(words [][]byte) string {
	switch proto, ok := syntax.Int(words[1]); {
	case !ok:
		return "ERR Protocol version is not an integer or out of range"
	case proto < 2 || proto > 3:
		return "NOPROTO unsupported protocol version"
	}
	logins := 0
	for options := words[2:]; len(options) > 0; {
		switch word := syntax.LowerCString(options[0]); {
		case word == "auth" && len(options) >= 3 && logins == 0:
			logins++
			options = options[3:]
		case word == "setname" && len(options) >= 2:
			if !IsClientName(options[1]) {
				return errClientName
			}
			options = options[2:]
		default:
			return fmt.Sprintf("ERR Syntax error in HELLO option '%s'", syntax.CString(options[0], len(options[0])))
		}
	}
	return ""
}

func (s *Server) replyHello(c *command.Client, out *command.Reply) {
	out.Put(command.Fields{
		"server", "redis", "version", redisVersion, "proto", c.Proto, "id", c.ID,
		"mode", s.mode(), "role", "master", "modules", []any{},
	})
}
