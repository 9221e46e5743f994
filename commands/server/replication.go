package server

import (
	"regexp"
	"slices"

	"github.com/tidwall/redcon"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/command"
	"redlock-proxy/internal/resp"
)

// serverAddressLines matches the lines of INFO with the addresses of a master and of replicas. Some
// clients would connect to these addresses.
var serverAddressLines = regexp.MustCompile(`(?m)^(slave\d+|master_host|master_port):.*\n`)

// hasServerAddresses reports whether a reply may contain addresses of other servers.
func hasServerAddresses(words [][]byte) bool {
	return syntax.Lower(words[0]) == "role" || isSectionRequested(words[1:], "Replication")
}

// withoutServerAddresses removes the lines with addresses of other servers from a reply to INFO.
func withoutServerAddresses(reply []byte) []byte {
	size, rest, ok := resp.Header(reply)
	if !ok || len(rest) != size+2 || !serverAddressLines.Match(rest) {
		return reply
	}
	text := serverAddressLines.ReplaceAll(rest[:size], nil)
	return slices.Concat(resp.AppendHeader(nil, resp.Kind(reply[0]), int64(len(text))), text, []byte("\r\n"))
}

// roleWithoutUpstream implements ROLE of a lock server: a master without replicas.
func roleWithoutUpstream(c command.Call) { c.Out.Put([]any{"master", 0, []any{}}) }

// role implements ROLE of the upstream without the addresses of other servers. In its reply, a
// master has no replicas, and a replica does not name its master.
func role(c command.Call) {
	reply, ok := c.AskUpstream()
	if !ok {
		return
	}
	count, rest, _ := resp.Header(reply)
	var parts [][]byte
	for range count {
		n := resp.WholeReplyLen(rest)
		parts, rest = append(parts, rest[:n]), rest[n:]
	}
	switch kind := resp.Texts(reply); {
	case count == 3 && kind[0] == "master":
		parts[2] = redcon.AppendArray(nil, 0)
	case count == 5 && kind[0] == "slave":
		parts[1], parts[2] = []byte("$0\r\n\r\n"), []byte(":0\r\n")
	}
	c.Out.WriteRaw(slices.Concat(redcon.AppendArray(nil, len(parts)), slices.Concat(parts...)))
}
