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
	case IsProxyPath(c.Args):
		s.proxyPath(syntax.Strings(c.Args[2:]), c.Out)
	case sub == moveSubcommand:
		s.proxyMove(c)
	case len(c.Args) > 2:
		c.Out.WriteError(syntax.WrongArity("proxy|" + sub))
	case sub == "info":
		c.Out.WriteText(s.proxyInfo())
	case sub == healthSubcommand:
		c.Out.WriteText(s.proxyHealth())
	case sub == reloadSubcommand:
		s.proxyReload(c)
	case sub == "help":
		c.Out.WriteStatuses([]string{
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
		c.Out.WriteError(syntax.WrongArity("proxy|path"))
	default:
		c.Out.WriteError(syntax.UnknownSubcommand("PROXY", c.Args[1]))
	}
}

// proxyInfo returns the reply to PROXY INFO, in the form of INFO, which redis-cli prints as it is.
func (s *Server) proxyInfo() string {
	own := []string{
		"proxy_version:" + s.opts.Version,
		fmt.Sprintf("proxy_process_id:%d", os.Getpid()),
		fmt.Sprintf("proxy_uptime_in_seconds:%d", int(time.Since(s.startTime).Seconds())),
		fmt.Sprintf("proxy_connected_clients:%d", s.opts.Clients()),
		fmt.Sprintf("proxy_blocked_clients:%d", s.opts.WaiterCount()),
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
	if s.opts.Nodes != nil {
		nodes, uncovered := s.opts.Nodes()
		lines = append(lines, fmt.Sprintf("upstream_slots_uncovered:%d", uncovered), fmt.Sprintf("upstream_nodes:%d", len(nodes)))
		for i, n := range nodes {
			lines = append(lines, n.line(i))
		}
	}
	return lines
}

// Node is the state of a node of the cluster that is the upstream.
type Node struct {
	ID, Address string
	// Listen is the proxy's port for the node.
	Listen           int
	IsMaster, IsGone bool
	// Slots is the number of slots that the node serves. Clients is the number of clients at its
	// port.
	Slots, Clients int
	// Err is the reason why the node is down; nil if the node is up.
	Err error
}

// line returns the line of the node with this number.
func (n Node) line(number int) string {
	role, state := "replica", "up"
	if n.IsMaster {
		role = "master"
	}
	switch {
	case n.IsGone:
		state = "gone"
	case n.Err != nil:
		state = "down,cause=" + escapeField(n.Err.Error())
	}
	return fmt.Sprintf("upstream_node%d:id=%s,address=%s,listen=%d,role=%s,slots=%d,clients=%d,state=%s",
		number, n.ID, n.Address, n.Listen, role, n.Slots, n.Clients, state)
}

func joinLines(lines []string) string { return strings.Join(lines, "\r\n") + "\r\n" }
