// Package translate replaces the addresses of a cluster's nodes in their replies by the proxy's
// own, so that a cluster client reaches each node through the proxy. It does no I/O.
//
// One table (rules.go) lists the commands whose replies name nodes, with a rule for each. No other
// reply is parsed. [Target.TranslateRedirect] translates the errors by which a node sends a client
// to another node. A translated reply omits nodes that the map does not know, so it never contains
// a node's own address.
//
// Node IDs, slots, roles, epochs and all other values stay unchanged. So clients compute slots,
// follow redirects and refresh their maps as they do without the proxy.
package translate
