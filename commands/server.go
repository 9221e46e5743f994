package commands

import (
	"context"
	"math"
	"strconv"
	"strings"
	"time"
)

// databases is how many databases a client may select, as in Redis by default.
const databases = 16

// redisVersion is the version of Redis whose manners the proxy has when it
// answers for itself. Client libraries choose commands by it.
const redisVersion = "7.2.4"

// serverCommands are what clients send when they connect, or to look around.
func serverCommands() []Command {
	return []Command{
		{Name: "ping", arity: -1, run: (*Table).cmdPing, docs: docsOf("connection", "Returns the server's liveliness response.", "1.0.0", optional("message"))},
		{Name: "echo", arity: 2, run: (*Table).cmdEcho, docs: docsOf("connection", "Returns the given string.", "1.0.0", text("message"))},
		{Name: "hello", arity: -1, run: (*Table).cmdHello, docs: docsOf("connection", "Handshakes with the Redis server.", "6.0.0", optional("protover"))},
		{Name: "auth", arity: -2, run: (*Table).cmdAuth, docs: docsOf("connection", "Authenticates the connection.", "1.0.0", optional("username"), text("password"))},
		{Name: "client", arity: -2, run: (*Table).cmdClient, docs: docsOf("connection", "A container for client connection commands.", "2.4.0")},
		{Name: "select", arity: 2, run: (*Table).cmdSelect, docs: docsOf("connection", "Changes the selected database.", "1.0.0", integer("index"))},
		{Name: "quit", arity: -1, run: (*Table).cmdQuit, docs: docsOf("connection", "Closes the connection.", "1.0.0")},
		{Name: "reset", arity: 1, run: (*Table).cmdReset, docs: docsOf("connection", "Resets the connection.", "6.2.0")},
		{Name: "info", arity: -1, run: (*Table).cmdInfo, docs: docsOf("server", "Returns information and statistics about the server.", "1.0.0", optional("section"))},
		{Name: "config", arity: -2, run: (*Table).cmdConfig, docs: docsOf("server", "A container for server configuration commands.", "2.0.0")},
		{Name: "command", arity: -1, run: (*Table).cmdCommand, docs: docsOf("server", "Returns detailed information about all commands.", "2.8.13")},
		{Name: "time", arity: 1, run: (*Table).cmdTime, docs: docsOf("server", "Returns the server time.", "2.6.0")},
		{Name: "cluster", arity: -2, run: noCluster, docs: docsOf("cluster", "A container for Redis Cluster commands.", "3.0.0")},
		{Name: "readonly", arity: 1, run: noCluster, docs: docsOf("cluster", "Enables read-only queries for a connection to a Redis Cluster replica node.", "3.0.0")},
	}
}

func (t *Table) cmdPing(_ context.Context, _ *Client, args [][]byte, out *Reply) {
	switch len(args) {
	case 1:
		out.Status("PONG")
	case 2:
		out.Bulk(string(args[1]))
	default:
		out.Error("ERR wrong number of arguments for 'ping' command")
	}
}

func (t *Table) cmdEcho(_ context.Context, _ *Client, args [][]byte, out *Reply) {
	out.Bulk(string(args[1]))
}

func (t *Table) cmdSelect(_ context.Context, c *Client, args [][]byte, out *Reply) {
	n, err := parseInt(args[1])
	switch {
	case err != nil:
		out.Error(errNotInteger.Error())
	case n < math.MinInt32 || n > math.MaxInt32:
		out.Error("ERR value is out of range, value must between -2147483648 and 2147483647")
	case n < 0 || n >= databases:
		out.Error("ERR DB index is out of range")
	default:
		c.DB = int(n)
		out.Status("OK")
	}
}

func (t *Table) cmdQuit(_ context.Context, c *Client, _ [][]byte, out *Reply) {
	c.Closing = true
	out.Status("OK")
}

func (t *Table) cmdReset(_ context.Context, c *Client, _ [][]byte, out *Reply) {
	c.reset()
	out.Proto = c.Proto
	out.Status("RESET")
}

func (t *Table) cmdTime(_ context.Context, _ *Client, _ [][]byte, out *Reply) {
	now := time.Now()
	out.Strings([]string{strconv.FormatInt(now.Unix(), 10), strconv.Itoa(now.Nanosecond() / 1000)})
}

func noCluster(_ *Table, _ context.Context, _ *Client, _ [][]byte, out *Reply) {
	out.Error("ERR This instance has cluster support disabled")
}

// cmdConfig is CONFIG GET: what tools ask about a server before they use it.
func (t *Table) cmdConfig(_ context.Context, _ *Client, args [][]byte, out *Reply) {
	sub := lower(args[1])
	switch {
	case sub != "get":
		unknownSubcommand("CONFIG", args[1], out)
	case len(args) < 3:
		out.Error("ERR wrong number of arguments for 'config|get' command")
	default:
		t.configGet(args[2:], out)
	}
}

func (t *Table) configGet(patterns [][]byte, out *Reply) {
	settings := [][2]string{
		{"appendonly", "no"},
		{"databases", strconv.Itoa(databases)},
		{"maxclients", strconv.Itoa(t.opts.MaxClients)},
		{"notify-keyspace-events", ""},
		{"proto-max-bulk-len", "536870912"},
		{"replica-read-only", "yes"},
		{"save", ""},
		{"slave-read-only", "yes"},
		{"timeout", "0"},
	}
	var found [][2]string
	for _, s := range settings {
		if name, ok := settingAsked(patterns, s[0]); ok {
			found = append(found, [2]string{name, s[1]})
		}
	}
	out.Map(len(found))
	for _, s := range found {
		out.Bulk(s[0])
		out.Bulk(s[1])
	}
}

// settingAsked reports whether CONFIG GET asks for a setting, and under which name
// the answer shows it: as it was typed, or its own where a glob pattern found it.
func settingAsked(patterns [][]byte, name string) (shown string, ok bool) {
	for _, p := range patterns {
		switch word := lower(p); {
		case word == name:
			return string(p), true
		case strings.ContainsAny(word, "*?[") && matchGlob(word, name):
			return name, true
		}
	}
	return "", false
}
