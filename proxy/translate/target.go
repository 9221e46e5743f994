package translate

import (
	"strconv"
	"strings"

	"redlock-proxy/proxy/nodes"
)

// Target describes how a client reaches the nodes through the proxy.
type Target struct {
	// Map finds the proxy's port for a node.
	Map *nodes.Map
	// Host is the proxy's host in the translated addresses.
	Host string
	// TLS is set if the client speaks TLS.
	TLS bool
	// NodeHost is the host at which the proxy reaches the node that has replied. A reply without a
	// host refers to NodeHost.
	NodeHost string
}

// portOf returns the proxy's port for a node, by its ID or else by its address.
func (t Target) portOf(id, host string, port int) (listenPort int, known bool) {
	if id != "" {
		return t.Map.PortOf(id)
	}
	if host == "" || host == "?" {
		host = t.NodeHost
	}
	return t.Map.PortAt(host, port)
}

// addr returns an address of the proxy as a cluster writes it: an IPv6 host has no brackets.
func (t Target) addr(port int) string { return t.Host + ":" + strconv.Itoa(port) }

// Moved returns the text of the redirect to the node that serves a slot, and the proxy's port for
// that node. known is false if no node is known to serve the slot.
func (t Target) Moved(slot int) (text string, listenPort int, known bool) {
	port := t.Map.PortOfSlot(slot)
	return "MOVED " + strconv.Itoa(slot) + " " + t.addr(port), port, port != 0
}

// TranslateRedirect translates the text of an error that sends the client to another node: MOVED or
// ASK with a slot and an address, or REDIRECT with an address. known is false if the address does
// not belong to a known node. asExpected is false if the map does not have this node for the slot.
func (t Target) TranslateRedirect(text string) (translated string, asExpected, known bool) {
	space := strings.LastIndexByte(text, ' ')
	if space < 0 {
		return "", false, false
	}
	words, addr := strings.Split(text[:space], " "), text[space+1:]
	slot := uint64(0)
	switch {
	case len(words) == 2 && (words[0] == "MOVED" || words[0] == "ASK"):
		var err error
		if slot, err = strconv.ParseUint(words[1], 10, 16); err != nil || slot >= nodes.SlotCount {
			return "", false, false
		}
	case len(words) == 1 && words[0] == "REDIRECT":
	default:
		return "", false, false
	}
	host, port, ok := nodes.SplitHostPort(addr)
	if !ok {
		return "", false, false
	}
	listen, known := t.portOf("", host, port)
	asExpected = known && (words[0] != "MOVED" || t.Map.PortOfSlot(int(slot)) == listen)
	return text[:space+1] + t.addr(listen), asExpected, known
}
