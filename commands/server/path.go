package server

import (
	"context"
	"errors"
	"slices"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/command"
)

// ErrLoop says that an upstream leads back to this proxy, itself or over others.
var ErrLoop = errors.New("it leads back to this proxy: nothing is sent there")

// maxPath is how many proxies may stand one after another. Redis takes ten words of a
// client that has not logged in.
const maxPath = 8

// IsPath reports whether a command is PROXY PATH, which a proxy answers before any login:
// the proxy that asks is not a client, and learns nothing but whether it asks itself.
func IsPath(words [][]byte) bool {
	return len(words) > 2 && syntax.Lower(words[0]) == "proxy" && syntax.Lower(words[1]) == "path"
}

// proxyPath is PROXY PATH id [id …], which proxies send before they use an upstream: the
// identities are those of the proxies that the question came over. It is answered LOOP
// where this one is among them, or stands before one that says so.
func (s *Server) proxyPath(ctx context.Context, ids []string, out *command.Reply) {
	switch {
	case s.opts.ID != "" && slices.Contains(ids, s.opts.ID):
		out.Error("LOOP the question came over this proxy before")
	case len(ids) >= maxPath:
		out.Error("LOOP too many proxies in a row")
	case s.opts.Onward != nil && errors.Is(s.opts.Onward(ctx, append(ids, s.opts.ID)), ErrLoop):
		out.Error("LOOP the upstream of this proxy leads back")
	default:
		out.Status("OK")
	}
}
