package sharing

import (
	"bytes"
	"slices"
	"strings"

	"redlock-proxy/commands/catalog/spec"
)

// keyless are the commands without keys that may share.
var keyless = strings.Fields("dbsize echo keys lastsave ping publish pubsub randomkey scan spublish time")

// apart are commands on keys that may not: scripts, for while one runs too long the upstream answers others BUSY, but none that
// came over the same connection; what waits for another server; and what is for those who look into the server.
var apart = strings.Fields("debug eval eval_ro evalsha evalsha_ro fcall fcall_ro memory migrate pfdebug restore-asking")

// sharers are the commands of which it is known that they leave nothing behind on a connection, wait for nothing but the
// server's own work, and have one reply.
var sharers = spec.Those(func(c *spec.Command) bool {
	switch {
	case c.Effect != spec.None, c.Does(spec.Blocks), c.Arity == 0: // without an arity hardly anything is known of it
		return false
	case c.Keys == nil:
		return slices.Contains(keyless, c.Name)
	}
	return !slices.Contains(apart, c.Name)
})

// May reports whether a command, by its name in any case, may go over a connection that is shared.
func May(name []byte) bool { return sharers.Find(name) != nil }

// harmless are the commands of which it is known that they leave nothing behind, but those that are told by what the upstream
// answers (package track).
var harmless = spec.Those(func(c *spec.Command) bool {
	return c.Effect == spec.None && c.Arity != 0 && !slices.Contains(strings.Fields("cluster debug module readwrite script"), c.Name)
})

// MayLeave reports whether a command, by its name in any case, may leave something behind on a connection that no other
// answer tells of. It is not asked about those that are followed by their answers (package track).
func MayLeave(name []byte) bool { return harmless.Find(name) == nil }

// Waits reports whether a command, by its name in any case, waits for what was done on its connection to reach other servers.
func Waits(name []byte) bool {
	return bytes.EqualFold(name, []byte("wait")) || bytes.EqualFold(name, []byte("waitaof"))
}

// MaxFrame is how long a frame may be that goes over such a connection, in bytes.
const MaxFrame = 16 << 10

// Whole reports whether p is one request as clients write it: an array of bulk strings, each number without a sign or a zero in
// front of it, each line end where it belongs. Servers differ in what they take besides. Where one ended such a request elsewhere than
// the proxy does, one client would get the replies of another.
func Whole(p []byte) bool {
	count, p, ok := header('*', p)
	if !ok || count == 0 || len(p) > MaxFrame {
		return false
	}
	for range count {
		var size int
		if size, p, ok = header('$', p); !ok || len(p) < size+2 || p[size] != '\r' || p[size+1] != '\n' {
			return false
		}
		p = p[size+2:]
	}
	return len(p) == 0
}

// header takes a line such as "$12\r\n" from the front of p.
func header(kind byte, p []byte) (number int, rest []byte, ok bool) {
	if len(p) < 4 || p[0] != kind || p[1] == '0' && p[2] != '\r' {
		return 0, nil, false
	}
	n := 1
	for ; n < len(p) && n <= 6 && p[n]-'0' <= 9; n++ {
		number = number*10 + int(p[n]-'0')
	}
	if n == 1 || n+2 > len(p) || p[n] != '\r' || p[n+1] != '\n' {
		return 0, nil, false
	}
	return number, p[n+2:], true
}
