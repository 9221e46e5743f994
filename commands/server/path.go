package server

import (
	"errors"
	"slices"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/command"
)

// ErrLoop reports that the upstream is this proxy itself.
var ErrLoop = errors.New("it leads back to this proxy; name another Redis")

// IsProxyPath reports whether a command is PROXY PATH, which another proxy sends. A proxy answers
// it before any login, because the reply reveals little: whether the sender's upstream is a
// redlock-proxy, and whether that upstream is the sender itself.
func IsProxyPath(words [][]byte) bool {
	return len(words) > 2 && syntax.Lower(words[0]) == "proxy" && syntax.Lower(words[1]) == "path"
}

// proxyPath implements PROXY PATH id [id …], which a proxy sends before it uses an upstream. The
// reply is LOOP if this proxy has one of the IDs. A proxy before 0.4 sends several IDs, one for
// each proxy that the command has passed.
func (s *Server) proxyPath(ids []string, out *command.Reply) {
	if s.opts.ID != "" && slices.Contains(ids, s.opts.ID) {
		out.WriteError("LOOP this proxy sent the command itself")
		return
	}
	out.WriteStatus("OK")
}
