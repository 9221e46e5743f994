package commands

import (
	"context"
	"fmt"
)

// defaultUser is the only user of a proxy that asks for no password. As in Redis,
// any password is right for it.
const defaultUser = "default"

const wrongPass = "WRONGPASS invalid username-password pair or user is disabled."

func (t *Table) cmdAuth(_ context.Context, _ *Client, args [][]byte, out *Reply) {
	switch {
	case len(args) > 3:
		out.Error("ERR syntax error")
	case len(args) == 2:
		out.Error("ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?")
	case string(args[1]) != defaultUser:
		out.Error(wrongPass)
	default:
		out.Status("OK")
	}
}

// cmdHello is HELLO [protover [AUTH username password] [SETNAME clientname]].
func (t *Table) cmdHello(_ context.Context, c *Client, args [][]byte, out *Reply) {
	proto := int64(c.Proto)
	if len(args) > 1 {
		var err error
		if proto, err = parseInt(args[1]); err != nil {
			out.Error("ERR Protocol version is not an integer or out of range")
			return
		}
		if proto < 2 || proto > 3 {
			out.Error("NOPROTO unsupported protocol version")
			return
		}
		if !helloOptions(c, args[2:], out) {
			return
		}
	}
	c.Proto = int(proto)
	out.Proto = c.Proto
	t.greet(c, out)
}

// helloOptions does what stands behind the version, or answers the error.
func helloOptions(c *Client, options [][]byte, out *Reply) bool {
	name := []byte(nil)
	for len(options) > 0 {
		word := lower(options[0])
		switch {
		case word == "auth" && len(options) >= 3:
			if string(options[1]) != defaultUser {
				out.Error(wrongPass)
				return false
			}
			options = options[3:]
		case word == "setname" && len(options) >= 2:
			name, options = options[1], options[2:]
		default:
			out.Error(fmt.Sprintf("ERR Syntax error in HELLO option '%s'", cString(options[0], len(options[0]))))
			return false
		}
	}
	return name == nil || c.rename(name, out)
}

func (t *Table) greet(c *Client, out *Reply) {
	out.Map(7)
	out.Bulk("server")
	out.Bulk("redis")
	out.Bulk("version")
	out.Bulk(redisVersion)
	out.Bulk("proto")
	out.Int(int64(c.Proto))
	out.Bulk("id")
	out.Int(c.ID)
	out.Bulk("mode")
	out.Bulk("standalone")
	out.Bulk("role")
	out.Bulk("master")
	out.Bulk("modules")
	out.Array(0)
}
