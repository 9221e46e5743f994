package server

import (
	"fmt"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/quorum"
)

// healthSubcommand is PROXY HEALTH: what a health check may ask without a login.
const healthSubcommand = "health"

// IsOpen reports whether these words are a command that anybody may run, with a login or without: PROXY
// HEALTH, which tells nothing but whether the proxy is ready, or PROXY PATH.
func IsOpen(words [][]byte) bool {
	return IsPath(words) || len(words) == 2 && syntax.Lower(words[0]) == "proxy" && syntax.Lower(words[1]) == healthSubcommand
}

// proxyHealth is in the form of INFO.
func (s *Server) proxyHealth() string {
	voting, masters, cause := Readiness(s.opts.Masters())
	if s.opts.Draining() {
		cause = "the proxy is about to stop"
	}
	ready := "yes"
	if cause != "" {
		ready = "no"
	}
	upstream := "none"
	if s.opts.Upstream != nil {
		upstream = "up"
		if _, err := s.opts.Upstream(); err != nil {
			upstream = "down"
		}
	}
	return joinLines([]string{
		"ready:" + ready,
		"cause:" + cause,
		fmt.Sprintf("masters_voting:%d", voting),
		fmt.Sprintf("masters:%d", masters),
		"upstream:" + upstream,
	})
}

// Readiness counts the masters, and those that vote, and says why locks are not available, or
// nothing: they can where a majority votes. The upstream does not count: without it locks are
// had all the same.
func Readiness(all []quorum.MasterStatus) (voting, masters int, cause string) {
	for _, m := range all {
		if m.Standing == quorum.Voting {
			voting++
		}
	}
	masters = len(all)
	if needed := quorum.Majority(masters); voting < needed {
		cause = fmt.Sprintf("%d of %d masters vote, %d needed", voting, masters, needed)
	}
	return voting, masters, cause
}
