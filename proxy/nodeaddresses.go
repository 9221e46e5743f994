package proxy

import (
	"context"
	"fmt"
	"math"
	"net"
	"slices"

	"redlock-proxy/commands/catalog/spec"
	"redlock-proxy/internal/resp"
	"redlock-proxy/proxy/nodes"
	"redlock-proxy/proxy/translate"
	"redlock-proxy/proxy/upstream"
)

// nodeAddresses translates the addresses in replies of a cluster's node for one client. It
// implements redirect.Nodes.
type nodeAddresses struct {
	cluster  ClusterNodes
	upstream *upstream.Upstream
	// host is the proxy's host in the translated addresses. tls is set if the client speaks TLS.
	host string
	tls  bool
}

// newNodeAddresses returns the translation for a client that has reached the proxy at an address.
func newNodeAddresses(opts *Options, local net.Addr, tls bool) *nodeAddresses {
	a := &nodeAddresses{cluster: opts.Nodes, upstream: opts.Upstream, host: opts.AnnouncedHost, tls: tls}
	if tcp, ok := local.(*net.TCPAddr); ok && a.host == "" {
		a.host = tcp.AddrPort().Addr().Unmap().WithZone("").String()
	}
	return a
}

func (a *nodeAddresses) target() translate.Target {
	return translate.Target{Map: a.cluster.Map(), Host: a.host, TLS: a.tls, NodeHost: a.upstream.NodeHost()}
}

// TranslateRedirect implements redirect.Nodes. It requests a refresh of the cluster's nodes if the
// redirect does not match the known nodes.
func (a *nodeAddresses) TranslateRedirect(text string) (translated string, known bool) {
	translated, asExpected, known := a.target().TranslateRedirect(text)
	if !asExpected {
		a.cluster.RequestRefresh()
	}
	return translated, known
}

// redirects returns the replies by which a node sends clients with these commands to the nodes that
// serve the keys. It is for a node that cannot be reached: some client libraries learn the current
// nodes only from a redirect. It returns nil if the node itself, or no known node, serves the key
// of a command. It also returns nil if not every command is complete and has a key.
func (a *nodeAddresses) redirects(commands []byte, count int) (replies []byte) {
	target := a.target()
	own, _ := target.Map.PortOf(a.upstream.NodeID())
	for range count {
		key, size, ok := firstKey(commands)
		if !ok {
			return nil
		}
		text, port, known := target.Moved(nodes.SlotOf(key))
		if !known || port == own {
			return nil
		}
		replies = fmt.Appendf(replies, "-%s\r\n", text)
		commands = commands[size:]
	}
	if len(commands) > 0 {
		return nil
	}
	return replies
}

// firstKey returns the first key of a command, and the command's length in bytes. ok is false if
// the command is incomplete, inline, or has no key.
func firstKey(frame []byte) (key string, size int, ok bool) {
	if len(frame) == 0 || frame[0] != '*' {
		return "", 0, false
	}
	words, total, size := resp.Words(nil, frame, math.MaxInt)
	if total == 0 || len(words) < total {
		return "", 0, false
	}
	rule := spec.KeysOf(words[0])
	if rule == nil {
		return "", 0, false
	}
	places, _ := rule.Places(words, total)
	keyIndexes := slices.Collect(places.All())
	if len(keyIndexes) == 0 {
		return "", 0, false
	}
	return string(words[keyIndexes[0]]), size, true
}

// listsKey reports whether a lock key appears among the keys of the client's node.
func (a *nodeAddresses) listsKey(key string) bool {
	return a.cluster.Map().ListsKey(a.upstream.NodeID(), key)
}

// ReportClusterDown implements redirect.Nodes.
func (a *nodeAddresses) ReportClusterDown() { a.cluster.RequestRefresh() }

const (
	// unknownSubcommandReply replaces the reply to an unknown subcommand, which might name a node.
	unknownSubcommandReply = "-ERR the reply to this subcommand is withheld: it may name nodes of the cluster, and the proxy cannot " +
		"translate it; the node has run the subcommand\r\n"
	// malformedReply replaces a reply of unknown form, which might name a node.
	malformedReply = "-ERR the reply is withheld: it may name nodes of the cluster, and the proxy cannot translate its " +
		"form; the node has run the command\r\n"
)

// translateReply translates the whole reply to a command. If the reply names an unknown node,
// translateReply first refreshes the cluster's nodes.
func (a *nodeAddresses) translateReply(ctx context.Context, words [][]byte, answer []byte) []byte {
	translated, result := a.target().TranslateReply(words, answer)
	if result == translate.Incomplete {
		a.cluster.Refresh(ctx)
		translated, result = a.target().TranslateReply(words, answer)
	}
	switch {
	case result == translate.Malformed:
		return []byte(malformedReply)
	case translate.IsUnknown(words) && len(answer) > 0 && answer[0] != '-':
		return []byte(unknownSubcommandReply)
	}
	return translated
}
