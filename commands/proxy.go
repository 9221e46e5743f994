package commands

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"
)

// proxyGroup is the group of the proxy's own commands, by Redis' name for commands
// that Redis does not have.
const proxyGroup = "module"

// proxyCommands are for whoever operates the proxy. They share one name, so that
// none is taken from Redis.
func proxyCommands() []Command {
	d := docsOf(proxyGroup, "A container for the commands of the proxy itself.", "0.1.0")
	return []Command{{Name: "proxy", arity: -2, run: (*Table).cmdProxy, docs: d}}
}

func (t *Table) cmdProxy(_ context.Context, _ *Client, args [][]byte, out *Reply) {
	switch sub := lower(args[1]); {
	case len(args) > 2:
		out.Error(fmt.Sprintf("ERR wrong number of arguments for 'proxy|%s' command", sub))
	case sub == "info":
		out.Text(t.proxyInfo())
	case sub == "help":
		out.Statuses([]string{
			"PROXY <subcommand>. Subcommands are:",
			"INFO", "    Return what the proxy knows of itself, its upstream and the masters.",
			"HELP", "    Print this help.",
		})
	default:
		unknownSubcommand("PROXY", args[1], out)
	}
}

// proxyInfo is in the form of INFO, which redis-cli prints as it is.
func (t *Table) proxyInfo() string {
	own := []string{
		"proxy_version:" + t.opts.Version,
		fmt.Sprintf("proxy_process_id:%d", os.Getpid()),
		fmt.Sprintf("proxy_uptime_in_seconds:%d", int(time.Since(t.started).Seconds())),
		fmt.Sprintf("proxy_connected_clients:%d", t.opts.Clients()),
		fmt.Sprintf("proxy_maxclients:%d", t.opts.MaxClients),
	}
	return "# Proxy\r\n" + joinLines(own) + "\r\n# Upstream\r\n" + joinLines(t.infoUpstream()) +
		"\r\n# Redlock\r\n" + joinLines(t.infoRedlock())
}

func (t *Table) infoUpstream() []string {
	if t.opts.Upstream == nil {
		return []string{"upstream_state:none"}
	}
	name, err := t.opts.Upstream()
	if err != nil {
		return []string{"upstream_address:" + name, "upstream_state:down", fmt.Sprintf("upstream_cause:%v", err)}
	}
	return []string{"upstream_address:" + name, "upstream_state:up"}
}

func joinLines(lines []string) string { return strings.Join(lines, "\r\n") + "\r\n" }
