package status

import (
	"net"
	"net/netip"
	"strings"
)

// isOwnName reports whether a Host header may be this port's. A site that gives its own name the address of
// this port (DNS rebinding) must not read the page through its visitors, so names that anybody can
// register are refused: left are addresses, names without a dot, localhost, and machine, the name of this machine.
func isOwnName(host, machine string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return true
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return host != "" && (!strings.Contains(host, ".") || strings.HasSuffix(host, ".localhost") || strings.EqualFold(host, machine))
}
