//go:build integration

package operate

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/harness"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// TestHealthcheck checks a running proxy, and an address without a server.
func TestHealthcheck(t *testing.T) {
	t.Parallel()
	proxy := kit.StartProxy(t, redistest.URLs(kit.StartMasters(t)))
	if got := runProxy(t, "healthcheck", "--listen", proxy.Addr()); got != (outcome{}) {
		t.Errorf("a proxy that serves: got %+v, want 0 and silence", got)
	}
	if got := runProxyWith(t, []string{"REDLOCK_LISTEN=" + proxy.Addr()}, "healthcheck"); got != (outcome{}) {
		t.Errorf("found by the environment: got %+v, want 0 and silence", got)
	}
	_, port, err := net.SplitHostPort(proxy.Addr())
	kit.Must(t, err)
	if got := runProxy(t, "healthcheck", "--listen", ":"+port); got != (outcome{}) {
		t.Errorf("found on any address: got %+v, want 0 and silence", got)
	}
	kit.Must(t, proxy.Kill())
	wantFailure(t, runProxy(t, "healthcheck", "--listen", proxy.Addr()),
		fmt.Sprintf("redlock-proxy: unhealthy: dial tcp %s: connect: connection refused", proxy.Addr()))
}

// checkHealth runs healthcheck for a proxy, without and with --ready.
func checkHealth(t *testing.T, proxy *harness.Proxy) (liveOutcome, readyOutcome outcome) {
	t.Helper()
	return runProxy(t, "healthcheck", "--listen", proxy.Addr()), runProxy(t, "healthcheck", "--ready", "--listen",
		proxy.Addr())
}

// wantHealth fails the test unless a proxy is alive, and is not ready because of cause. If cause is
// empty, the proxy must be ready.
func wantHealth(t *testing.T, proxy *harness.Proxy, cause string) {
	t.Helper()
	live, ready := checkHealth(t, proxy)
	if live != (outcome{}) {
		t.Errorf("healthcheck: got %+v, want 0 and silence", live)
	}
	want := outcome{}
	if cause != "" {
		want = outcome{3, "", "redlock-proxy: not ready: " + cause + "\n"}
	}
	if ready != want {
		t.Errorf("healthcheck --ready: got %+v, want %+v", ready, want)
	}
}

// TestHealthWithoutQuorum checks that a proxy without a majority is alive, and not ready. The proxy
// logs the loss of the majority once, and its return once.
func TestHealthWithoutQuorum(t *testing.T) {
	t.Parallel()
	f := kit.StartFleet(t)
	proxy := f.Proxies[0]
	wantHealth(t, proxy, "")
	for _, master := range f.Masters[:2] {
		kit.Must(t, master.Kill())
	}
	f.WantVoting(t, 3)
	wantHealth(t, proxy, "")
	kit.Must(t, f.Masters[2].Kill())
	line, err := proxy.WaitLog("locks are not available", kit.WaitLimit)
	if err != nil || !strings.Contains(line,
		"2 of 5 masters answered, 3 needed: "+f.Masters[0].Addr()+": connection refused") {
		t.Errorf("the log says %s, %v", line, err)
	}
	wantHealth(t, proxy, "2 of 5 masters vote, 3 needed")
	for _, master := range f.Masters[:3] {
		kit.Must(t, master.Restart())
	}
	if _, err := proxy.WaitLog("locks are available again", kit.WaitLimit); err != nil {
		t.Error(err)
	}
	wantHealth(t, proxy, "")
	if log := proxy.Log(); strings.Count(log, "locks are not available") != 1 ||
		strings.Count(log, "locks are available again") != 1 {
		t.Error("the loss and the return were not logged once each")
	}
}

// TestHealthWithoutUpstream checks that a proxy whose upstream is down, or hangs, is alive and
// ready.
func TestHealthWithoutUpstream(t *testing.T) {
	t.Parallel()
	upstream := kit.StartRedis(t)
	proxy := kit.StartProxy(t, redistest.URLs(kit.StartMasters(t)), "--upstream", upstream.URL())
	kit.Must(t, upstream.Pause())
	wantHealth(t, proxy, "")
	kit.Must(t, upstream.Kill())
	wantHealth(t, proxy, "")
	if health := fmt.Sprint(kit.Do(t, kit.Connect(t, proxy), "PROXY", "HEALTH")); !strings.HasPrefix(health,
		"ready:yes\r\ncause:\r\nmasters_voting:5\r\nmasters:5\r\nupstream:") {
		t.Errorf("got %q", health)
	}
}

// TestHealthOfAFullProxy checks that a proxy that has reached max-clients is alive, but not ready.
func TestHealthOfAFullProxy(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	proxy := kit.StartProxy(t, redistest.URLs(kit.StartMasters(t)), "--max-clients", "1")
	kit.Connect(t, proxy)
	kit.Eventually(t, func() error {
		if live, ready := checkHealth(t, proxy); live.code != 0 || ready.code != 3 {
			return fmt.Errorf("live %+v, ready %+v", live, ready)
		}
		return nil
	})
	wantHealth(t, proxy, "ERR max number of clients reached")
}

// TestHealthcheckLogin checks that clients that have not logged in learn only whether the proxy is
// ready.
func TestHealthcheckLogin(t *testing.T) {
	t.Parallel()
	upstream := kit.StartRedis(t, "--requirepass", "secret")
	proxy := kit.StartProxy(t, redistest.URLs(kit.StartMasters(t)), "--upstream", upstream.URL())
	wantHealth(t, proxy, "")
	client := kit.Connect(t, proxy)
	kit.Want(t, client, any(redistest.RespError("NOAUTH Authentication required.")), "PROXY", "INFO")
	kit.Must(t, upstream.Pause())
	wantHealth(t, proxy, "")
}

// TestHealthcheckSilence checks that a server that accepts connections and sends nothing is not
// healthy.
func TestHealthcheckSilence(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	kit.Must(t, err)
	t.Cleanup(func() { kit.NoError(t, listener.Close()) })
	startedAt := time.Now()
	got := runProxy(t, "healthcheck", "--listen", listener.Addr().String())
	if elapsed := time.Since(startedAt); got.code != 1 || !strings.Contains(got.stderr, "i/o timeout") || elapsed > 2*kit.WaitLimit/3 {
		t.Errorf("got %+v after %v, want 1 and a timeout", got, elapsed)
	}
}
