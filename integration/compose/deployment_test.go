//go:build integration

package compose

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// testStart starts docker-compose.yml on empty volumes.
func testStart(t *testing.T, p *project) {
	began := time.Now()
	p.runCompose(t, "up", "--detach")
	p.wantLock(t, 1, "first") // right after up, without waiting
	returned := time.Since(began)
	p.awaitHealthy(t)
	t.Logf("up returned, and a lock was granted, after %s; all %d services were healthy after %s",
		seconds(returned), len(services()), seconds(time.Since(began)))
	p.wantNoWarnings(t)
	p.wantOnlyProxiesReachable(t)
	p.wantSafeMasters(t)
}

// testLifecycle tests a running deployment from its start to its end.
func testLifecycle(t *testing.T, p *project) {
	t.Parallel()
	p.testClients(t)
	p.mustRunRedisCLI(t, 1, "SET", "greeting", "hello")
	p.testMasterFailures(t)
	p.testUpstreamFailure(t)
	p.wantLock(t, 1, "kept")
	p.runCompose(t, "restart")
	p.wantLockKept(t, "restart")
	p.runCompose(t, "down")
	p.runCompose(t, "up", "--detach")
	p.wantLockKept(t, "down and up")
	if got := p.mustRunRedisCLI(t, 2, "UNLOCK", "kept", "me"); got != "1" {
		t.Errorf("UNLOCK of the lock that was kept: got %q, want 1", got)
	}
	p.testMasterDataLoss(t)
}

// testMasterDataLoss lets all masters lose their data while no proxy that knows of locks runs. The
// masters must not count as new again.
func (p *project) testMasterDataLoss(t *testing.T) {
	t.Helper()
	p.runCompose(t, "kill", "proxy-1", "proxy-2")
	for i := 1; i <= 5; i++ {
		if output, err := p.execIn(fmt.Sprintf("lock-%d", i), "redis-cli", "-e", "FLUSHALL"); err != nil {
			t.Errorf("FLUSHALL: %v: %s", err, output)
		}
	}
	p.runCompose(t, "up", "--detach")
	p.awaitHealthy(t)
	wantParts(t, "init", p.runCompose(t, "logs", "--no-color", "init"),
		"nothing to do: init has run before (/var/lib/redlock-proxy/initialised exists)")
	wantParts(t, "LOCK on masters that lost their data", p.mustRunRedisCLI(t, 1, "LOCK", "kept", "you", "EX", "600"),
		"NOQUORUM 0 of 5 masters vote", "redlock-proxy init")
	if output, err := p.execIn("proxy-1", "/redlock-proxy", "healthcheck", "--ready"); err == nil {
		t.Errorf("healthcheck --ready: got success and %s", output)
	}
}

// warningPattern matches words that a new user should not see in the logs.
var warningPattern = regexp.MustCompile(`(?i)warn|error|fail|fatal|panic|denied|refused|not found|no such|cannot|can't|timeout`)

// hostWarningPattern matches warnings about settings of the host, which a container cannot change.
// The warnings concern Redis' memory (see docs/deploy.md), and the proxy's limit of open files.
var hostWarningPattern = regexp.MustCompile(`WARNING Memory overcommit must be enabled!|max-clients is reduced:`)

// wantNoWarnings fails the test if the logs of a first start contain warnings or errors.
func (p *project) wantNoWarnings(t *testing.T) {
	t.Helper()
	lines := 0
	for line := range strings.Lines(p.runCompose(t, "logs", "--no-color")) {
		lines++
		if warningPattern.MatchString(line) && !hostWarningPattern.MatchString(line) {
			t.Errorf("a healthy start has logged: %s", line)
		}
	}
	if lines < len(services()) {
		t.Errorf("%d services have logged %d lines", len(services()), lines)
	}
}

// wantOnlyProxiesReachable checks all networks and ports: only the proxies have ports, on loopback,
// and only the proxies' network leads out.
func (p *project) wantOnlyProxiesReachable(t *testing.T) {
	t.Helper()
	want := map[string]string{"redis": "data:", "init": "data masters:", "proxy-1": "data front masters: " + p.addrs[0],
		"proxy-2": "data front masters: " + p.addrs[1]}
	for service, id := range p.containers(t) {
		if strings.HasPrefix(service, "lock-") {
			want[service] = "masters:"
		}
		got := p.runDocker(t, "inspect", "--format", `{{range $name, $_ := .NetworkSettings.Networks}}{{$name}} {{end}}:`+
			`{{range .NetworkSettings.Ports}}{{range .}} {{.HostIp}}:{{.HostPort}}{{end}}{{end}}`, id)
		got = strings.ReplaceAll(strings.ReplaceAll(got, p.name+"_", ""), " :", ":")
		if got != want[service] {
			t.Errorf("%s: is on networks and ports %q, want %q", service, got, want[service])
		}
	}
	for network, internal := range map[string]string{"front": "false", "masters": "true", "data": "true"} {
		if got := p.runDocker(t, "network", "inspect", "--format", "{{.Internal}}", p.name+"_"+network); got != internal {
			t.Errorf("network %s: internal is %s, want %s", network, got, internal)
		}
	}
}

// wantSafeMasters runs the command check in the container of a proxy. It repeats the command if
// masters reply too late on a busy machine.
func (p *project) wantSafeMasters(t *testing.T) {
	t.Helper()
	for until := time.Now().Add(time.Minute); ; {
		output, err := p.execIn("proxy-1", "/redlock-proxy", "check")
		switch {
		case err == nil && strings.Count(output, " always ") == 5 && strings.Count(output, " ok\n") == 6 &&
			strings.Contains(output, "\nverdict: ok: 5 of 5 masters vote\nnext: "):
			return
		case !strings.Contains(output, "no answer in time"), time.Now().After(until):
			t.Errorf("check: got %v and\n%swant five masters and an upstream that are ok", err, output)
			return
		}
	}
}

// testClients lets redis-cli and a client library take one lock in turn, through either proxy.
func (p *project) testClients(t *testing.T) {
	t.Helper()
	for i, addr := range p.addrs {
		library := redis.NewClient(&redis.Options{Addr: addr})
		t.Cleanup(func() { _ = library.Close() })
		p.wantLock(t, 2-i, "turn")
		if got, err := library.Do(t.Context(), "LOCK", "turn", "you", "EX", 600).Result(); err != redis.Nil {
			t.Errorf("LOCK of what another holds, at %s: got %v, %v, want nil", addr, got, err)
		}
		if got := p.mustRunRedisCLI(t, 2-i, "UNLOCK", "turn", "me"); got != "1" {
			t.Errorf("UNLOCK: got %q, want 1", got)
		}
		if validity, err := library.Do(t.Context(), "LOCK", "turn", "you", "EX", 600).Int(); err != nil || validity <= 0 {
			t.Errorf("LOCK of what is free, at %s: got %d, %v, want a validity", addr, validity, err)
		}
		if got := p.mustRunRedisCLI(t, 2-i, "LOCK", "turn", "me", "EX", "600"); got != "" {
			t.Errorf("LOCK of what the library holds: got %q, want nil", got)
		}
		p.testLibraryData(t, library)
		if n, err := library.Do(t.Context(), "UNLOCK", "turn", "you").Int(); err != nil || n != 1 {
			t.Errorf("UNLOCK at %s: got %d, %v, want 1", addr, n, err)
		}
	}
}

// testLibraryData lets the library use the Redis behind the proxy.
func (p *project) testLibraryData(t *testing.T, library *redis.Client) {
	t.Helper()
	var visits *redis.IntCmd
	_, err := library.TxPipelined(t.Context(), func(pipe redis.Pipeliner) error {
		pipe.Set(t.Context(), "visits", 1, 0)
		visits = pipe.Incr(t.Context(), "visits")
		return nil
	})
	if err != nil || visits.Val() != 2 {
		t.Errorf("MULTI, SET, INCR, EXEC: got %v, %v, want 2", visits, err)
	}
}

// testMasterFailures kills two masters and a proxy, then a third master, and restarts them.
func (p *project) testMasterFailures(t *testing.T) {
	t.Helper()
	p.runCompose(t, "kill", "proxy-2", "lock-1", "lock-2")
	p.wantLock(t, 1, "with three masters")
	p.runCompose(t, "kill", "lock-3")
	waitFor(t, func() error {
		reply := p.mustRunRedisCLI(t, 1, "LOCK", "with two masters", "me", "EX", "600")
		for _, part := range []string{"NOQUORUM 2 of 5 masters answered, 3 needed", "lock-1:6379: ", "lock-2:6379: ",
			"lock-3:6379: "} {
			if !strings.Contains(reply, part) {
				return fmt.Errorf("LOCK while three of five masters are dead: got %q, want it to say %q", reply, part)
			}
		}
		return nil
	})
	if got := p.mustRunRedisCLI(t, 1, "GET", "greeting"); got != "hello" {
		t.Errorf("GET while there is no quorum: got %q, want hello", got)
	}
	p.runCompose(t, "start", "lock-1", "lock-2", "lock-3", "proxy-2")
	for proxy := range p.addrs {
		waitFor(t, func() error { return p.lock(proxy+1, fmt.Sprintf("again at proxy-%d", proxy+1)) })
	}
}

// testUpstreamFailure kills the Redis behind the proxies, and restarts it.
func (p *project) testUpstreamFailure(t *testing.T) {
	t.Helper()
	p.runCompose(t, "kill", "redis")
	p.wantLock(t, 1, "without an upstream")
	wantParts(t, "GET without an upstream", p.mustRunRedisCLI(t, 1, "GET", "greeting"), "ERR upstream redis:6379: ")
	p.runCompose(t, "start", "redis")
	waitFor(t, func() error { return p.checkValue("greeting", "hello") })
}

// wantLockKept fails the test if the lock or the data were lost.
func (p *project) wantLockKept(t *testing.T, event string) {
	t.Helper()
	p.awaitHealthy(t)
	for proxy := range p.addrs {
		waitFor(t, func() error { return p.lock(proxy+1, fmt.Sprintf("new at proxy-%d after %s", proxy+1, event)) })
		if got := p.mustRunRedisCLI(t, proxy+1, "LOCK", "kept", "you", "EX", "600"); got != "" {
			t.Errorf("LOCK of what was locked before %s, at proxy-%d: got %q, want nil", event, proxy+1, got)
		}
	}
	if err := checkGranted(p.mustRunRedisCLI(t, 1, "EXTEND", "kept", "me", "EX", "600")); err != nil {
		t.Errorf("EXTEND of what was locked before %s: %v", event, err)
	}
	if err := p.checkValue("greeting", "hello"); err != nil {
		t.Errorf("after %s: %v", event, err)
	}
}
