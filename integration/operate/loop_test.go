//go:build integration

package operate

import (
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/harness"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
	"redlock-proxy/internal/redistest/faultlink"
)

// TestDirectUpstreamLoop checks that a proxy whose upstream or master is its own address, under any
// name, does not start. Otherwise it would open connections to itself until it has no descriptors
// left. The command check rejects such a configuration.
func TestDirectUpstreamLoop(t *testing.T) {
	t.Parallel()
	hostname, err := os.Hostname()
	kit.Must(t, err)
	port := kit.FreePort(t)
	masters := kit.StartMasters(t)
	for _, test := range []struct{ setting, host, listen string }{
		{"upstream", "127.0.0.1", "127.0.0.1"},
		{"upstream", "localhost", "127.0.0.1"},
		{"upstream", "0.0.0.0", "127.0.0.1"},
		{"upstream", "localhost", "0.0.0.0"},
		{"upstream", hostname, "0.0.0.0"},
		{"master", "localhost", "127.0.0.1"},
	} {
		args := []string{"--listen", test.listen + ":" + port, "--" + test.setting, "redis://" + test.host + ":" + port,
			"--max-clients", "100"}
		for _, url := range redistest.URLs(masters) {
			args = append(args, "--master", url)
		}
		for command, code := range map[string]int{"serve": 1, "check": 2} {
			got := runProxy(t, append([]string{command}, args...)...)
			want := test.setting + ": " + test.host + ":" + port + " is this proxy itself, which listens on "
			if output := got.stdout + got.stderr; got.code != code || !strings.Contains(output, want) {
				t.Errorf("%s of %+v: exit code %d and\n%swant %d and %q", command, test, got.code, output, code, want)
			}
		}
	}
}

// TestIndirectUpstreamLoop makes a proxy its own upstream, under another address, from the start or
// later. The address does not show the loop, but the proxy detects it. The proxy does not open
// connection after connection to itself.
func TestIndirectUpstreamLoop(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	masters := kit.StartMasters(t)
	link := kit.StartLink(t, kit.StartRedis(t))
	proxy := kit.StartProxy(t, redistest.URLs(masters), "--upstream", "redis://"+link.Addr(), "--max-clients", "100")
	kit.WantReply(t, kit.Connect(t, proxy), "SET a 1", "OK")
	link.Retarget(proxy.Addr())
	kit.Must(t, link.Cut()) // ends the open connections
	kit.Must(t, link.Heal())
	client := kit.Connect(t, proxy)
	kit.Eventually(t, func() error {
		reply, err := client.Do("GET", "a")
		if err != nil {
			client = kit.Connect(t, proxy)
		}
		if refusal, _ := reply.(redistest.RespError); !strings.Contains(string(refusal), "leads back to this proxy") {
			return fmt.Errorf("%v, %w", reply, err)
		}
		return nil
	})
	for range 200 {
		_, _ = client.Do("GET", "a")
	}
	if descriptors, err := proxy.Descriptors(); err != nil || descriptors > 300 {
		t.Errorf("%d open descriptors, %v", descriptors, err)
	}
	// An upstream that leads back cannot report a client's permissions, so a LOCK may get this
	// error.
	reply, err := kit.Connect(t, proxy).Do("LOCK", "k", "t", "PX", "10000")
	kit.Must(t, err)
	if refusal, isError := reply.(redistest.RespError); isError && !strings.Contains(string(refusal),
		"cannot check this client's permissions") {
		t.Errorf("LOCK: %q", refusal)
	}
	ownAddr, err := redistest.FreeAddr()
	kit.Must(t, err)
	own, err := faultlink.New(ownAddr)
	kit.Must(t, err)
	t.Cleanup(func() { kit.NoError(t, own.Close()) })
	args := append([]string{"serve", "--listen", ownAddr}, upstreamArgs(masters, own.Addr())...)
	got := runProxy(t, args...)
	if want := "upstream: " + own.Addr() + " leads back to this proxy; name another Redis\n"; got.code != 1 ||
		!strings.HasSuffix(got.stderr, want) {
		t.Errorf("exit code %d and\n%swant 1 and %s", got.code, got.stderr, want)
	}
}

// upstreamArgs returns the settings of a proxy with these masters and this upstream.
func upstreamArgs(masters []*redistest.Server, upstream string) []string {
	args := []string{"--upstream", "redis://" + upstream}
	for _, url := range redistest.URLs(masters) {
		args = append(args, "--master", url)
	}
	return args
}

// TestRefusedProxyAsUpstream checks that serve and check do not accept a proxy as the upstream,
// neither on the same masters nor on other masters. They do not accept a proxy that starts or
// replies only later, either. Otherwise a move would remove locks from the masters as if they were
// left at the upstream.
func TestRefusedProxyAsUpstream(t *testing.T) {
	t.Parallel()
	masters, behind := kit.StartMasters(t), kit.StartLink(t, kit.StartRedis(t))
	kit.Must(t, behind.Cut())
	first := kit.StartProxy(t, redistest.URLs(masters), "--upstream", "redis://"+behind.Addr(), "--upstream-timeout", "200ms")
	const want = "it is a redlock-proxy: clients would change locks past the proxy; name another Redis"
	for command, code := range map[string]int{"serve": 1, "check": 2} {
		for _, set := range [][]*redistest.Server{masters, kit.StartMasters(t)} {
			args := []string{command, "--listen", "127.0.0.1:0", "--lock-keys", "lock:*"}
			got := runProxy(t, append(args, upstreamArgs(set, first.Addr())...)...)
			if output := got.stdout + got.stderr; got.code != code || !strings.Contains(output, want) {
				t.Errorf("%s: exit code %d and\n%s", command, got.code, output)
			}
		}
	}
	link := kit.StartLink(t, first)
	kit.Must(t, link.Cut())
	second := kit.StartProxy(t, redistest.URLs(masters), "--upstream", "redis://"+link.Addr(), "--upstream-timeout", "200ms")
	kit.Must(t, link.Heal())
	client := kit.Connect(t, second)
	kit.Eventually(t, func() error {
		if reply := fmt.Sprint(kit.Do(t, client, "FLUSHALL")); !strings.Contains(reply, want) {
			return fmt.Errorf("FLUSHALL: %s", reply)
		}
		return nil
	})
}

// TestRefusedProxyAsMaster checks that check rejects a proxy as a master, and that serve gets no
// vote from it.
func TestRefusedProxyAsMaster(t *testing.T) {
	t.Parallel()
	other := kit.StartProxy(t, redistest.URLs(kit.StartMasters(t)), "--upstream", kit.StartRedis(t).URL())
	got := checkMasters(t, []string{"redis://" + other.Addr()})
	got.wantRow(t, other.Addr(), "it is a redlock-proxy: masters must be Redis servers")
	if got.code != 2 {
		t.Errorf("exit code %d, want 2", got.code)
	}
	proxy := kit.StartProxy(t, []string{"redis://" + other.Addr()})
	reply, err := kit.Connect(t, proxy).Do("LOCK", "k", "t", "PX", "10000")
	if refusal, _ := reply.(redistest.RespError); err != nil || !strings.HasPrefix(string(refusal), "NOQUORUM ") {
		t.Errorf("%v, %v", reply, err)
	}
}

// TestFewDescriptors checks that the proxy limits its clients to its descriptors, and logs that
// once.
func TestFewDescriptors(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	masters, upstream := kit.StartMasters(t), kit.StartRedis(t)
	limitedBinary := func(n string) string {
		script := t.TempDir() + "/proxy"
		kit.Must(t, os.WriteFile(script, []byte("#!/bin/sh\nulimit -n "+n+"\nexec "+binary(t)+" \"$@\"\n"), 0o700))
		return script
	}
	proxy, err := harness.StartProxy(harness.ProxyOptions{Binary: limitedBinary("200"), Masters: redistest.URLs(masters),
		Args: []string{"--upstream", upstream.URL()}})
	kit.Must(t, err)
	t.Cleanup(func() { kit.NoError(t, proxy.Close()) })
	const clientLimit = 51 // (200 - 32 - 5*10 - 16) / 2
	line, err := proxy.WaitLog("max-clients is reduced: the limit on open files is too low; raise ulimit -n", time.Minute)
	if err != nil || !strings.Contains(line, " max_clients=10000 reduced_to=51 needed=20098 limit=200") {
		t.Fatal(line, err)
	}
	var clients []*redistest.Client
	for range clientLimit {
		clients = append(clients, kit.Connect(t, proxy))
	}
	for _, client := range clients {
		kit.WantReply(t, client, "SET a 1", "OK")
		_, err := client.Do("LOCK", "k", "t", "PX", "10000")
		kit.Must(t, err)
	}
	extra := kit.Connect(t, proxy)
	if reply, err := extra.Receive(); reply != any(redistest.RespError("ERR max number of clients reached")) {
		t.Errorf("one more: %v, %v", reply, err)
	}
	if strings.Contains(proxy.Log(), "too many open files") {
		t.Errorf("descriptors ran out:\n%s", proxy.Log())
	}
	_, err = harness.StartProxy(harness.ProxyOptions{Binary: limitedBinary("60"), Masters: redistest.URLs(masters),
		Args: []string{"--upstream", upstream.URL()}})
	if err == nil || !strings.Contains(err.Error(), "your current 'ulimit -n' of 60 is not enough for the proxy to start; please increase your open file limit to at least 100") {
		t.Errorf("with 60: %v", err)
	}
}

// TestMasterAsUpstream checks that a proxy refuses an upstream that is also a master. It recognizes
// such an upstream by the address or, at any address, by the upstream's INFO when the proxy starts.
// If the upstream replies only later, the proxy refuses it from then on.
func TestMasterAsUpstream(t *testing.T) {
	t.Parallel()
	masters := kit.StartMasters(t)
	link := kit.StartLink(t, masters[1])
	args := func(upstream string) []string {
		return append([]string{"--listen", "127.0.0.1:0"}, upstreamArgs(masters, upstream)...)
	}
	const want = "clients would change locks past the proxy"
	got := runProxy(t, append([]string{"serve", "--check-config"}, args(masters[1].Addr())...)...)
	if output := got.stdout + got.stderr; got.code == 0 || !strings.Contains(output, want) {
		t.Errorf("--check-config: exit code %d and\n%s", got.code, output)
	}
	got = runProxy(t, append([]string{"serve"}, args(link.Addr())...)...)
	if output := got.stdout + got.stderr; got.code == 0 || !strings.Contains(output,
		"it is the lock master "+masters[1].Addr()+": "+want) {
		t.Errorf("serve: exit code %d and\n%s", got.code, output)
	}
	link.Cut()
	client := kit.Connect(t, kit.StartProxy(t, redistest.URLs(masters), "--upstream", "redis://"+link.Addr(),
		"--upstream-timeout", "200ms"))
	kit.Must(t, link.Heal())
	kit.Eventually(t, func() error {
		if reply := fmt.Sprint(kit.Do(t, client, "FLUSHALL")); !strings.Contains(reply, "it is the lock master") {
			return fmt.Errorf("FLUSHALL: %s", reply)
		}
		return nil
	})
	if stats, err := kit.QueryDatabase(masters[1], "0", "INFO", "commandstats"); err != nil ||
		strings.Contains(fmt.Sprint(stats), "cmdstat_flushall") {
		t.Errorf("the master was flushed: %v", err)
	}
}

// TestReloadMakesUpstreamMaster checks that a reload that names the upstream as a master, under
// another name, is refused, and changes nothing.
func TestReloadMakesUpstreamMaster(t *testing.T) {
	t.Parallel()
	r := startReloadRig(t, nil)
	_, port, err := net.SplitHostPort(r.upstream.Addr())
	kit.Must(t, err)
	urls := redistest.URLs(r.masters)
	urls[len(urls)-1] = "redis://:one@localhost:" + port
	before := r.settings["master"]
	r.settings["master"] = yamlList(urls)
	r.write()
	kit.WantPrefix(t, r.operator, "PROXY RELOAD", "ERR the configuration was not reloaded: master: upstream "+
		r.upstream.Addr()+": it is the lock master localhost:"+port+": clients would change locks past the proxy; name another Redis")
	kit.WantPrefix(t, r.operator, "SET a 1", "OK")
	kit.WantPrefix(t, r.operator, "LOCK k t PX 60000", "5")
	r.settings["master"] = before
	r.write()
	r.reload(r.operator)
}
