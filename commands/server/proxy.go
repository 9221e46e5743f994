package server

import (
	"fmt"
	"os"
	"strings"
	"time"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/command"
)

func (s *Server) proxy(c command.Call) {
	switch sub := syntax.Lower(c.Args[1]); {
	case IsPath(c.Args):
		s.proxyPath(syntax.Strings(c.Args[2:]), c.Out)
	case sub == moveSubcommand:
		s.proxyMove(c)
	case len(c.Args) > 2:
		c.Out.Error(syntax.WrongArity("proxy|" + sub))
	case sub == "info":
		c.Out.Text(s.proxyInfo())
	case sub == healthSubcommand:
		c.Out.Text(s.proxyHealth())
	case sub == reloadSubcommand:
		s.proxyReload(c)
	case sub == "help":
		c.Out.Statuses([]string{
			"PROXY <subcommand>. Subcommands are:",
			"INFO", "    Return the state of the proxy, its upstream and the masters.",
			"PATH <id> [<id> ...]", "    Used between proxies: return whether one of them is its own upstream.",
			"HEALTH", "    Return whether locks are available. Requires no login.",
			"RELOAD", "    Reload the configuration. Return what changed, and what requires a restart.",
			"MOVE [BACK | ABORT] [EVENIFOTHERS]",
			"    Move the locks on lock keys to the masters, or back to the upstream, or abort it. Return the result.",
			"HELP", "    Print this help.",
		})
	case sub == "path":
		c.Out.Error(syntax.WrongArity("proxy|path"))
	default:
		c.Out.Error(syntax.UnknownSubcommand("PROXY", c.Args[1]))
	}
}

// proxyInfo returns the reply to PROXY INFO, in the form of INFO, which redis-cli prints as it is.
func (s *Server) proxyInfo() string {
	own := []string{
		"proxy_version:" + s.opts.Version,
		fmt.Sprintf("proxy_process_id:%d", os.Getpid()),
		fmt.Sprintf("proxy_uptime_in_seconds:%d", int(time.Since(s.started).Seconds())),
		fmt.Sprintf("proxy_connected_clients:%d", s.opts.Clients()),
		fmt.Sprintf("proxy_blocked_clients:%d", s.opts.Waiting()),
		fmt.Sprintf("proxy_maxclients:%d", s.opts.MaxClients()),
		fmt.Sprintf("proxy_accept_errors:%d", s.opts.AcceptErrors()),
	}
	return "# Proxy\r\n" + joinLines(own) + "\r\n# Upstream\r\n" + joinLines(s.infoUpstream()) +
		"\r\n# Redlock\r\n" + joinLines(append(s.infoRedlock(), s.infoDetectedLocks()...))
}

func (s *Server) infoUpstream() []string {
	if s.opts.Upstream == nil {
		return []string{"upstream_state:none"}
	}
	name, err := s.opts.Upstream()
	lines := []string{"upstream_address:" + name, "upstream_state:up"}
	if err != nil {
		lines = []string{"upstream_address:" + name, "upstream_state:down", fmt.Sprintf("upstream_cause:%v", err)}
	}
	return lines
}

func joinLines(lines []string) string { return strings.Join(lines, "\r\n") + "\r\n" }
