//go:build integration

package operate

import (
	"net"
	"strings"
	"testing"

	"redlock-proxy/integration/harness"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// TestProtectedMode: on an address that other machines can reach, the proxy refuses their clients
// while no login is required, and logs that.
func TestProtectedMode(t *testing.T) {
	t.Parallel()
	elsewhere := kit.OtherAddress(t)
	masters := redistest.URLs(kit.StartMasters(t))
	open, closed := kit.StartRedis(t), kit.StartRedis(t, "--requirepass", "secret", "--protected-mode", "no")
	const warning = "protected-mode: no login is required, so clients from other machines are refused"
	from := func(proxy *harness.Proxy, host string) *redistest.Client {
		_, port, err := net.SplitHostPort(proxy.Addr())
		kit.Must(t, err)
		return kit.Dial(t, net.JoinHostPort(host, port))
	}
	for name, test := range map[string]struct {
		args   []string
		here   string // the reply to LOCK from this machine
		there  string // the reply to LOCK from another machine
		warned bool
	}{
		"a lock server":          {nil, "5", "DENIED Redis is running in protected mode", true},
		"off":                    {[]string{"--protected-mode=false"}, "5", "5", false},
		"an upstream for all":    {[]string{"--upstream", open.URL()}, "5", "DENIED Redis is running in protected mode", true},
		"an upstream with users": {[]string{"--upstream", closed.URL()}, "NOAUTH", "NOAUTH", false},
	} {
		proxy := kit.StartProxy(t, masters, append(test.args, "--listen", "0.0.0.0:0")...)
		kit.Does(t, from(proxy, "127.0.0.1"), "LOCK "+strings.ReplaceAll(name, " ", "-")+" here PX 60000", test.here)
		kit.Does(t, from(proxy, elsewhere), "LOCK "+strings.ReplaceAll(name, " ", "-")+"-2 there PX 60000", test.there)
		if test.warned {
			kit.WantLogged(t, proxy, warning)
		} else if strings.Contains(proxy.Log(), warning) {
			t.Errorf("%s: the warning is there", name)
		}
		if strings.HasPrefix(test.there, "DENIED") {
			_, err := proxy.WaitLog("client turned away: protected mode", kit.Patience)
			kit.Must(t, err)
		}
		if test.there == "NOAUTH" {
			client := from(proxy, elsewhere)
			kit.Does(t, client, "AUTH secret", "OK")
			kit.Does(t, client, "LOCK users there PX 60000", "5")
		}
		_, port, err := net.SplitHostPort(proxy.Addr())
		kit.Must(t, err)
		if got := runProxy(t, "healthcheck", "--listen", "0.0.0.0:"+port); got != (outcome{}) {
			t.Errorf("%s: healthcheck: %+v", name, got)
		}
	}
	quiet := kit.StartProxy(t, masters)
	if strings.Contains(quiet.Log(), warning) {
		t.Error("it is logged though no other machine can reach the port")
	}
}
