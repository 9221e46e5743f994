//go:build integration

package integration

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/harness"
)

// checkMasters runs check on these masters.
func checkMasters(t *testing.T, urls []string) outcome {
	t.Helper()
	args := []string{"check"}
	for _, url := range urls {
		args = append(args, "--master", url)
	}
	return runProxy(t, args...)
}

// row returns the row of the table that begins with a master's name.
func (o outcome) row(t *testing.T, name string) string {
	t.Helper()
	for line := range strings.Lines(o.stdout) {
		if strings.HasPrefix(line, name+" ") {
			return line
		}
	}
	t.Fatalf("no row for %s in\n%s", name, o.stdout)
	return ""
}

// wantRow wants words in the row of a master.
func (o outcome) wantRow(t *testing.T, name string, words ...string) {
	t.Helper()
	row := o.row(t, name)
	for _, word := range words {
		if !strings.Contains(row, word) {
			t.Errorf("got %swant %q in it", row, word)
		}
	}
}

func TestCheckHealthy(t *testing.T) {
	masters := startMasters(t)
	got := checkMasters(t, harness.URLs(masters))
	if got.code != 0 || got.stderr != "" || strings.Count(got.stdout, "\n") != 1+len(masters) {
		t.Fatalf("got exit code %d, %q and\n%swant 0 and a table", got.code, got.stderr, got.stdout)
	}
	for _, master := range masters {
		got.wantRow(t, master.Addr(), "master", "noeviction", "off", "unmarked", "forgets locks when it restarts")
	}
}

// TestCheckMarker: what proxies have found shows in the table.
func TestCheckMarker(t *testing.T) {
	f := startGuarded(t, true, 1)
	wantGrant(t, connect(t, f.proxies[0]), "LOCK", "k", "t", "PX", "60000")
	must(t, f.masters[2].Restart())
	soon(t, func() error {
		if record, err := askIn(f.masters[2], "0", "GET", "redlock-proxy:quarantine"); err != nil || record == nil {
			return fmt.Errorf("no record: %v", err)
		}
		return nil
	})
	must(t, f.proxies[0].Kill()) // or it would soon catch up
	got := checkMasters(t, harness.URLs(f.masters))
	got.wantRow(t, f.masters[1].Addr(), "votes")
	got.wantRow(t, f.masters[2].Addr(), "quarantine: restarted without proof of its data, for ")
}

func TestCheckDurable(t *testing.T) {
	master := startRedis(t, "--appendonly", "yes", "--appendfsync", "always")
	got := checkMasters(t, []string{master.URL()})
	got.wantRow(t, master.Addr(), "always", "ok\n")
	if got.code != 0 || !strings.Contains(got.stdout, "warning: masters: 1 is fewer than 3") {
		t.Errorf("got exit code %d and\n%swant 0 and a warning that one master is not enough", got.code, got.stdout)
	}
}

func TestCheckReplica(t *testing.T) {
	master := startRedis(t)
	host, port, err := net.SplitHostPort(master.Addr())
	must(t, err)
	replica := startRedis(t, "--replicaof", host+" "+port)
	const why = "it is a replica: a lock there is gone with its next synchronisation"
	got := checkMasters(t, []string{master.URL(), replica.URL()})
	got.wantRow(t, replica.Addr(), why)
	fails(t, got, "redlock-proxy: it would not be safe to serve: "+replica.Addr()+": "+why)
}

func TestCheckEviction(t *testing.T) {
	master := startRedis(t, "--maxmemory-policy", "allkeys-lru")
	const why = "maxmemory-policy allkeys-lru may evict a lock: set noeviction"
	got := checkMasters(t, []string{master.URL()})
	got.wantRow(t, master.Addr(), "allkeys-lru", why)
	fails(t, got, "redlock-proxy: it would not be safe to serve: "+master.Addr()+": "+why)
}

// TestCheckSameServer: two addresses of one server are two votes of one.
func TestCheckSameServer(t *testing.T) {
	master := startRedis(t)
	_, port, err := net.SplitHostPort(master.Addr())
	must(t, err)
	got := checkMasters(t, []string{master.URL(), "redis://localhost:" + port})
	fails(t, got, "redlock-proxy: it would not be safe to serve: localhost:"+port+": it is the same server as "+master.Addr())
}

// TestCheckDead: what does not answer is no danger by itself, as long as a majority does.
func TestCheckDead(t *testing.T) {
	masters := startMasters(t)
	for _, master := range masters[:2] {
		must(t, master.Kill())
	}
	got := checkMasters(t, harness.URLs(masters))
	got.wantRow(t, masters[0].Addr(), "connection refused")
	if got.code != 0 {
		t.Errorf("2 of 5 are dead: got exit code %d, want 0", got.code)
	}
	must(t, masters[2].Pause())
	got = checkMasters(t, harness.URLs(masters))
	got.wantRow(t, masters[2].Addr(), "no answer in time")
	fails(t, got, "redlock-proxy: it would not be safe to serve: 2 of 5 masters answered, 3 needed")
}

// TestHealthcheck asks a proxy that lives, one that hangs up, and none.
func TestHealthcheck(t *testing.T) {
	proxy := startProxy(t, harness.URLs(startMasters(t)))
	if got := runProxy(t, "healthcheck", "--listen", proxy.Addr()); got != (outcome{}) {
		t.Errorf("a proxy that serves: got %+v, want 0 and silence", got)
	}
	if got := runProxyWith(t, []string{"REDLOCK_LISTEN=" + proxy.Addr()}, "healthcheck"); got != (outcome{}) {
		t.Errorf("found by the environment: got %+v, want 0 and silence", got)
	}
	_, port, err := net.SplitHostPort(proxy.Addr())
	must(t, err)
	if got := runProxy(t, "healthcheck", "--listen", ":"+port); got != (outcome{}) {
		t.Errorf("found on any address: got %+v, want 0 and silence", got)
	}
	must(t, proxy.Kill())
	fails(t, runProxy(t, "healthcheck", "--listen", proxy.Addr()),
		fmt.Sprintf("redlock-proxy: unhealthy: dial tcp %s: connect: connection refused", proxy.Addr()))
}

// TestHealthcheckLogin: a proxy whose clients have to log in is healthy, although it lets the check do nothing.
func TestHealthcheckLogin(t *testing.T) {
	upstream := startRedis(t, "--requirepass", "secret")
	proxy := startProxy(t, harness.URLs(startMasters(t)), "--upstream", upstream.URL())
	if got := runProxy(t, "healthcheck", "--listen", proxy.Addr()); got != (outcome{}) {
		t.Errorf("got %+v, want 0 and silence", got)
	}
}

// TestHealthcheckSilence: what accepts and says nothing is not healthy.
func TestHealthcheckSilence(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { closes(t, silent.Close()) })
	began := time.Now()
	got := runProxy(t, "healthcheck", "--listen", silent.Addr().String())
	if took := time.Since(began); got.code != 1 || !strings.Contains(got.stderr, "i/o timeout") || took > 2*patience/3 {
		t.Errorf("got %+v after %v, want 1 and a timeout", got, took)
	}
}
