package server

import (
	"context"
	"errors"
	"slices"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/command"
)

// ErrLoop is returned if the upstream leads back to this proxy, directly or through other proxies.
var ErrLoop = errors.New("it leads back to this proxy; name another Redis")

// maxPath limits how many proxies may be connected in a chain. Redis accepts ten words from a
// client without a login.
const maxPath = 8

// IsPath reports whether a command is PROXY PATH, which a proxy answers before any login. The
// sender is another proxy. It learns only whether its upstream leads back to it.
func IsPath(words [][]byte) bool {
	return len(words) > 2 && syntax.Lower(words[0]) == "proxy" && syntax.Lower(words[1]) == "path"
}

// proxyPath implements PROXY PATH id [id …], which a proxy sends before it uses an upstream. The
// IDs name the proxies that the command has passed. The reply is LOOP if this proxy is one of them,
// or if its upstream replies LOOP.
func (s *Server) proxyPath(ctx context.Context, ids []string, out *command.Reply) {
	switch {
	case s.opts.ID != "" && slices.Contains(ids, s.opts.ID):
		out.Error("LOOP the question has passed this proxy before")
	case len(ids) >= maxPath:
		out.Error("LOOP too many proxies in a chain")
	case s.opts.SendPath != nil && errors.Is(s.opts.SendPath(ctx, append(ids, s.opts.ID)), ErrLoop):
		out.Error("LOOP the upstream of this proxy leads back to the sender")
	default:
		out.Status("OK")
	}
}
