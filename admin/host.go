package admin

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// isOwnName reports whether a Host header may be this port's. A site that gives its own name the
// address of this port (DNS rebinding) must not read anything through its visitors, so names that
// anybody can register are refused: left are addresses, names without a dot, localhost, and the
// names that are known, of this machine for instance. Without a name it is no browser that asks.
func isOwnName(host string, known []string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return true
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if !strings.Contains(host, ".") || strings.HasSuffix(host, ".localhost") {
		return true
	}
	return slices.ContainsFunc(known, func(name string) bool { return strings.EqualFold(host, strings.TrimSuffix(name, ".")) })
}

// byOwnName refuses what is asked by another site's name. /livez says nothing that such a site may
// not know, and is asked by load balancers.
func byOwnName(names []string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/livez" && !isOwnName(r.Host, names) {
			http.Error(w, "Not answered by that name, lest other sites read it through their visitors: ask by the address of the machine, by localhost, or by a name of the setting admin-names.",
				http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}
