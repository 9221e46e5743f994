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

// TestProtectedMode checks that a proxy on an address that other machines can reach refuses clients
// from these machines while no login is required. The proxy logs that.
func TestProtectedMode(t *testing.T) {
	t.Parallel()
	otherAddr := kit.NonLoopbackAddress(t)
	masters := redistest.URLs(kit.StartMasters(t))
	openUpstream, passwordUpstream := kit.StartRedis(t), kit.StartRedis(t, "--requirepass", "secret", "--protected-mode", "no")
	const warning = "protected-mode: no login is required, so clients from other machines are refused"
	connect := func(proxy *harness.Proxy, host string) *redistest.Client {
		_, port, err := net.SplitHostPort(proxy.Addr())
		kit.Must(t, err)
		return kit.Dial(t, net.JoinHostPort(host, port))
	}
	for name, test := range map[string]struct {
		args        []string
		localReply  string // the reply to LOCK from this machine
		remoteReply string // the reply to LOCK from another machine
		warns       bool
	}{
		"a lock server":          {nil, "5", "DENIED Redis is running in protected mode", true},
		"off":                    {[]string{"--protected-mode=false"}, "5", "5", false},
		"an upstream for all":    {[]string{"--upstream", openUpstream.URL()}, "5", "DENIED Redis is running in protected mode", true},
		"an upstream with users": {[]string{"--upstream", passwordUpstream.URL()}, "NOAUTH", "NOAUTH", false},
	} {
		proxy := kit.StartProxy(t, masters, append(test.args, "--listen", "0.0.0.0:0")...)
		kit.WantPrefix(t, connect(proxy, "127.0.0.1"), "LOCK "+strings.ReplaceAll(name, " ", "-")+" here PX 60000", test.localReply)
		kit.WantPrefix(t, connect(proxy, otherAddr), "LOCK "+strings.ReplaceAll(name, " ", "-")+"-2 there PX 60000", test.remoteReply)
		if test.warns {
			kit.WantLogged(t, proxy, warning)
		} else if strings.Contains(proxy.Log(), warning) {
			t.Errorf("%s: the warning is there", name)
		}
		if strings.HasPrefix(test.remoteReply, "DENIED") {
			_, err := proxy.WaitLog("client turned away: protected mode", kit.WaitLimit)
			kit.Must(t, err)
		}
		if test.remoteReply == "NOAUTH" {
			client := connect(proxy, otherAddr)
			kit.WantPrefix(t, client, "AUTH secret", "OK")
			kit.WantPrefix(t, client, "LOCK users there PX 60000", "5")
		}
		_, port, err := net.SplitHostPort(proxy.Addr())
		kit.Must(t, err)
		if got := runProxy(t, "healthcheck", "--listen", "0.0.0.0:"+port); got != (outcome{}) {
			t.Errorf("%s: healthcheck: %+v", name, got)
		}
	}
	localOnly := kit.StartProxy(t, masters)
	if strings.Contains(localOnly.Log(), warning) {
		t.Error("it is logged though no other machine can reach the port")
	}
}
