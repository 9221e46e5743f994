package server

import (
	"fmt"

	"redlock-proxy/commands/catalog/syntax"
)

// healthSubcommand is PROXY HEALTH, which a health check may send without a login.
const healthSubcommand = "health"

// NeedsNoLogin reports whether a command requires no login: PROXY HEALTH, which reveals only the
// state of the proxy, or PROXY PATH.
func NeedsNoLogin(words [][]byte) bool {
	return IsProxyPath(words) ||
		len(words) == 2 && syntax.Lower(words[0]) == "proxy" && syntax.Lower(words[1]) == healthSubcommand
}

// proxyHealth returns the reply to PROXY HEALTH, in the form of INFO.
func (s *Server) proxyHealth() string {
	inputs := s.opts.Availability()
	cause := inputs.Decide().Cause
	if s.opts.Draining() {
		cause = "the proxy is shutting down"
	}
	upstream := "none"
	if s.opts.Upstream != nil {
		upstream = "up"
		if _, err := s.opts.Upstream(); err != nil {
			upstream = "down"
		}
	}
	return joinLines([]string{
		"ready:" + yesNo(cause == ""),
		"cause:" + cause,
		fmt.Sprintf("masters_voting:%d", inputs.VotingMasters),
		fmt.Sprintf("masters:%d", inputs.Masters),
		"upstream:" + upstream,
	})
}

func yesNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}
