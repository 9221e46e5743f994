package admin

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// isOwnName reports whether the admin port accepts a Host header. A web site can give its own name
// the address of this port (DNS rebinding). The site would then read responses through its
// visitors. So the port refuses names that a site could register. It accepts addresses, names
// without a dot, names below localhost, and the known names, such as the name of this machine. A
// request without a name does not come from a browser.
func isOwnName(host string, ownNames []string) bool {
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
	return slices.ContainsFunc(ownNames, func(name string) bool {
		return strings.EqualFold(host, strings.TrimSuffix(name, "."))
	})
}

// wrongHostMessage is the response to a request with the name of another site.
const wrongHostMessage = "the admin port does not answer to this host name: another web site could read it through its " +
	"visitors; use the machine's address, localhost, or a name in the setting admin-hosts"

// requireOwnName refuses requests whose Host header is the name of another site. /livez is exempt.
// Its response is no secret, and load balancers may use any name for it.
func requireOwnName(names []string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/livez" && !isOwnName(r.Host, names) {
			http.Error(w, wrongHostMessage, http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}
