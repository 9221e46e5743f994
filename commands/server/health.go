package server

import (
	"fmt"

	"redlock-proxy/commands/catalog/syntax"
)

// healthSubcommand is PROXY HEALTH: what a health check may ask without a login.
const healthSubcommand = "health"

// IsOpen reports whether these words are a command that anybody may run, with a login or without:
// PROXY HEALTH, which tells nothing but whether the proxy is ready, or PROXY PATH.
func IsOpen(words [][]byte) bool {
	return IsPath(words) || len(words) == 2 && syntax.Lower(words[0]) == "proxy" && syntax.Lower(words[1]) == healthSubcommand
}

// proxyHealth is in the form of INFO.
func (s *Server) proxyHealth() string {
	look := s.opts.Look()
	cause := look.Decide().Cause
	if s.opts.Draining() {
		cause = "the proxy is about to stop"
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
		fmt.Sprintf("masters_voting:%d", look.Voting),
		fmt.Sprintf("masters:%d", look.Masters),
		"upstream:" + upstream,
	})
}

func yesNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}
