//go:build integration

package operate

import (
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"redlock-proxy/integration/harness"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// adminArgs lists the arguments that open an admin port.
var adminArgs = []string{"--admin", "127.0.0.1:0"}

// adminAddr returns the address of the admin port from the log.
func adminAddr(t *testing.T, proxy *harness.Proxy) string {
	t.Helper()
	line, err := proxy.WaitLog(`msg="serving health and metrics"`, kit.WaitLimit)
	kit.Must(t, err)
	return regexp.MustCompile(`admin=(\S+)`).FindStringSubmatch(line)[1]
}

// getAdminPage gets a page of an admin port.
func getAdminPage(addr, path string) (code int, body string, err error) {
	client := http.Client{Timeout: kit.WaitLimit, Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Get("http://" + addr + path)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), err
}

// awaitPage waits up to a minute until a page has the given status and lines.
func awaitPage(t *testing.T, addr, path string, code int, lines ...string) {
	t.Helper()
	want := strings.Join(lines, "\n") + "\n"
	kit.Eventually(t, func() error {
		got, body, err := getAdminPage(addr, path)
		if err == nil && (got != code || body != want) {
			err = fmt.Errorf("%s: got %d\n%swant %d\n%s", path, got, body, code, want)
		}
		return err
	})
}

// TestReadyz checks that a proxy is degraded without its upstream, and not ready without a
// majority.
func TestReadyz(t *testing.T) {
	t.Parallel()
	masters, upstream := kit.StartMasters(t), kit.StartRedis(t)
	proxy := kit.StartProxy(t, redistest.URLs(masters), append(adminArgs, "--upstream", upstream.URL())...)
	addr := adminAddr(t, proxy)
	const servedLine, upLine, liveLine = "[+]clients: served", "[+]upstream: up", "ok"
	awaitPage(t, addr, "/readyz", 200, servedLine, "[+]locks: available, 5 of 5 masters vote", upLine, "ready")
	kit.Must(t, masters[0].Kill())
	kit.Must(t, masters[1].Kill())
	awaitPage(t, addr, "/readyz", 200, servedLine, "[!]locks: available, 3 of 5 masters vote", upLine, "ready, but degraded")
	kit.Must(t, upstream.Kill())
	downLine := "[!]upstream: " + upstream.Addr() + ": connection refused"
	awaitPage(t, addr, "/readyz", 200, servedLine, "[!]locks: available, 3 of 5 masters vote", downLine, "ready, but degraded")
	kit.Must(t, masters[2].Kill())
	awaitPage(t, addr, "/readyz", 503, servedLine, "[-]locks: 2 of 5 masters vote, 3 needed", downLine, "not ready")
	awaitPage(t, addr, "/readyz?exclude=masters", 200, servedLine, downLine, "ready, but degraded")
	awaitPage(t, addr, "/livez", 200, liveLine)
	for _, master := range masters[:3] {
		kit.Must(t, master.Restart())
	}
	kit.Must(t, upstream.Restart())
	awaitPage(t, addr, "/readyz", 200, servedLine, "[+]locks: available, 5 of 5 masters vote", upLine, "ready")
}

// TestReadyzWhileStopping checks that a proxy is not ready when it no longer accepts clients. The
// admin port is available until the process ends.
func TestReadyzWhileStopping(t *testing.T) {
	t.Parallel()
	proxy := kit.StartProxy(t, redistest.URLs(kit.StartMasters(t)), append(adminArgs, "--drain-timeout", "1m")...)
	addr := adminAddr(t, proxy)
	busyClient := kit.ConnectWithoutReading(t, proxy)
	stop(t, proxy, syscall.SIGTERM)
	code, body, err := getAdminPage(addr, "/readyz")
	kit.Must(t, err)
	if code != 503 || !strings.HasPrefix(body, "[-]clients: draining, no new clients are served\n") {
		t.Errorf("/readyz: got %d, %s", code, body)
	}
	if got := metricsOf(t, addr)["redlock_client_unread_bytes"]; got == 0 {
		t.Error("nothing is unread")
	}
	kit.Must(t, busyClient.Close())
	wantExit(t, proxy, 0, kit.WaitLimit)
	if _, _, err := getAdminPage(addr, "/livez"); err == nil {
		t.Error("the port is still served")
	}
}

// TestAdminPortTaken checks that a proxy whose admin port is in use does not start, and reports
// why.
func TestAdminPortTaken(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	masters := kit.StartMasters(t)
	addr := adminAddr(t, kit.StartProxy(t, redistest.URLs(masters), adminArgs...))
	got := runProxyWith(t, []string{"REDLOCK_ADMIN=" + addr}, "serve", "--master", masters[0].URL(), "--listen",
		"127.0.0.1:0")
	if want := fmt.Sprintf("redlock-proxy: --admin: %q: address already in use\n", addr); got.code != 1 ||
		!strings.HasSuffix(got.stderr, want) {
		t.Errorf("got %+v, want it to end with %s", got, want)
	}
}

// metricsOf returns the metrics of a proxy by name and labels.
func metricsOf(t *testing.T, addr string) map[string]float64 {
	t.Helper()
	code, body, err := getAdminPage(addr, "/metrics")
	kit.Must(t, err)
	if code != 200 {
		t.Fatalf("/metrics: got %d, %s", code, body)
	}
	metrics := map[string]float64{}
	for line := range strings.Lines(body) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		end := strings.LastIndexByte(line, ' ')
		value, err := strconv.ParseFloat(strings.TrimSpace(line[end:]), 64)
		kit.Must(t, err)
		metrics[line[:end]] = value
	}
	return metrics
}

// wantGrowth fails the test unless metrics have grown by the values of want, and no other metrics
// of locks, scripts and keys have grown.
func wantGrowth(t *testing.T, before, after, want map[string]float64) {
	t.Helper()
	watched := regexp.MustCompile(`^redlock_(lock_(requests|no_quorum|withdrawals)_total|lock_(duration|wait|lease|held)_seconds_count|locks_|script_|uncovered_)`)
	for name := range after {
		if growth := after[name] - before[name]; watched.MatchString(name) && growth != want[name] {
			t.Errorf("%s has grown by %v, want %v", name, growth, want[name])
		}
	}
	for name := range want {
		if _, ok := after[name]; !ok {
			t.Errorf("there is no %s", name)
		}
	}
}

// requestMetrics returns the names of the metrics for the number of operations and for their time.
func requestMetrics(operation, result string) (countMetric, timeMetric string) {
	return fmt.Sprintf("redlock_lock_requests_total{operation=%q,result=%q}", operation, result),
		fmt.Sprintf("redlock_lock_duration_seconds_count{operation=%q}", operation)
}

// TestMetrics checks that each operation of a client changes exactly the metrics of this operation.
func TestMetrics(t *testing.T) {
	t.Parallel()
	masters, upstream := kit.StartMasters(t), kit.StartRedis(t)
	proxy := kit.StartProxy(t, redistest.URLs(masters), append(adminArgs, "--upstream", upstream.URL(), "--lock-keys",
		"lock:*")...)
	addr, client := adminAddr(t, proxy), kit.Connect(t, proxy)
	const release = `if redis.call("get",KEYS[1])==ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end`
	grantCount, acquireTime := requestMetrics("acquire", "ok")
	heldCount, _ := requestMetrics("acquire", "held")
	releaseCount, releaseTime := requestMetrics("release", "ok")
	notHeldCount, _ := requestMetrics("release", "not_held")
	extendCount, extendTime := requestMetrics("extend", "ok")
	readCount, readTime := requestMetrics("read", "ok")
	updateCount, updateTime := requestMetrics("update", "ok")
	const leaseCount, waitCount, holdCount, runCount = "redlock_lock_lease_seconds_count", "redlock_lock_wait_seconds_count",
		"redlock_lock_held_seconds_count", "redlock_script_runs_total"
	for _, c := range []struct {
		command string
		growth  map[string]float64
	}{
		{"LOCK a t PX 60000", map[string]float64{grantCount: 1, acquireTime: 1, leaseCount: 1}},
		{"LOCK a u PX 60000", map[string]float64{heldCount: 1, acquireTime: 1}},
		{"LOCK a u PX 60000 BLOCK 20", map[string]float64{heldCount: 1, waitCount: 1}},
		{"EXTEND a t PX 60000", map[string]float64{extendCount: 1, extendTime: 1}},
		{"UNLOCK a u", map[string]float64{notHeldCount: 1, releaseTime: 1}},
		{"UNLOCK a t", map[string]float64{releaseCount: 1, releaseTime: 1, holdCount: 1}},
		{"LOCK a t PX 60000 BLOCK 1000", map[string]float64{grantCount: 1, waitCount: 1, leaseCount: 1}},
		{"LOCK a t", nil},
		{"SET lock:a t NX PX 60000", map[string]float64{grantCount: 1, acquireTime: 1, leaseCount: 1}},
		{"GET lock:a", map[string]float64{readCount: 1, readTime: 1}},
		{"EVAL|" + release + "|1|lock:a|t", map[string]float64{releaseCount: 1, releaseTime: 1, holdCount: 1, runCount: 1}},
		{"SET lock:a t", map[string]float64{updateCount: 1, updateTime: 1, "redlock_locks_without_ttl_total": 1}},
		{"SET other t NX PX 60000", map[string]float64{"redlock_uncovered_locks_total": 1}},
		{"GET other", nil},
	} {
		before := metricsOf(t, addr)
		words := strings.Fields(c.command)
		if strings.Contains(c.command, "|") {
			words = strings.Split(c.command, "|")
		}
		kit.Do(t, client, words...)
		wantGrowth(t, before, metricsOf(t, addr), c.growth)
	}
}

// TestMetricsOfTheRelay checks that the metrics count bytes, and connected, parked and disconnected
// clients.
func TestMetricsOfTheRelay(t *testing.T) {
	t.Parallel()
	upstream := kit.StartRedis(t)
	proxy := kit.StartProxy(t, redistest.URLs(kit.StartMasters(t)), append(adminArgs, "--upstream", upstream.URL(),
		"--max-clients", "2")...)
	addr, client := adminAddr(t, proxy), kit.Connect(t, proxy)
	const toUpstream, toClients = `redlock_relay_bytes_total{direction="to_upstream"}`,
		`redlock_relay_bytes_total{direction="to_clients"}`
	kit.Want(t, client, "PONG", "PING")
	var before map[string]float64
	kit.Eventually(t, func() error { // the proxy counts bytes after it has sent them
		if before = metricsOf(t, addr); before[toClients] < float64(len("+PONG\r\n")) {
			return fmt.Errorf("%s is %v", toClients, before[toClients])
		}
		return nil
	})
	value := strings.Repeat("x", 1<<20)
	kit.Want(t, client, "OK", "SET", "k", value)
	kit.Want(t, client, any(value), "GET", "k")
	sentBytes := len("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1048576\r\n") + len(value) + 2 + len("*2\r\n$3\r\nGET\r\n$1\r\nk\r\n")
	receivedBytes := len("+OK\r\n$1048576\r\n") + len(value) + 2
	kit.Eventually(t, func() error {
		return checkMetrics(metricsOf(t, addr), map[string]float64{toUpstream: before[toUpstream] + float64(sentBytes),
			toClients: before[toClients] + float64(receivedBytes)})
	})
	second := kit.Connect(t, proxy)
	kit.Want(t, second, "PONG", "PING")
	third := kit.Connect(t, proxy)
	if _, err := third.ReceiveAll(); err != nil {
		t.Error(err)
	}
	kit.Eventually(t, func() error {
		got := metricsOf(t, addr)
		return checkMetrics(got, map[string]float64{
			"redlock_client_connections": 2, "redlock_client_connections_parked": 2, "redlock_client_connections_limit": 2,
			"redlock_client_connections_accepted_total": 2, "redlock_client_connections_refused_total": 1,
			"redlock_upstream_up": 1,
		})
	})
	kit.Want(t, second, "PONG", "PING") // wakes the parked connection
	kit.Must(t, second.Close())
	kit.Eventually(t, func() error {
		return checkMetrics(metricsOf(t, addr), map[string]float64{"redlock_client_connections": 1,
			"redlock_client_connections_parked": 1})
	})
}

// checkMetrics returns an error for a metric with a wrong value, if there is one.
func checkMetrics(got, want map[string]float64) error {
	for name, value := range want {
		if got[name] != value {
			return fmt.Errorf("%s is %v, want %v", name, got[name], value)
		}
	}
	return nil
}

// TestMetricsOfMasters checks that the metrics show unavailable masters, and count the resulting
// refusals by cause. They also count the catch-up of a master that is available again.
func TestMetricsOfMasters(t *testing.T) {
	t.Parallel()
	masters := kit.StartMasters(t)
	proxy := kit.StartProxy(t, redistest.URLs(masters), adminArgs...)
	addr, client := adminAddr(t, proxy), kit.Connect(t, proxy)
	kit.WantGrant(t, client, "LOCK", "k", "t", "PX", "1000")
	metricName := func(metric string, i int) string {
		return fmt.Sprintf("redlock_master_%s{master=%q}", metric, masters[i].Addr())
	}
	kit.Eventually(t, func() error { // a majority granted the LOCK, possibly without this master
		if got := metricsOf(t, addr); got[metricName("round_trip_seconds_count", 0)] < 1 ||
			got[metricName("clock_offset_seconds", 0)] > 1 || got[metricName("clock_offset_seconds", 0)] < -1 {
			return fmt.Errorf("%s is %v, the clock is off by %v", metricName("round_trip_seconds_count", 0),
				got[metricName("round_trip_seconds_count", 0)], got[metricName("clock_offset_seconds", 0)])
		}
		return nil
	})
	for _, master := range masters[:3] {
		kit.Must(t, master.Kill())
	}
	kit.Eventually(t, func() error {
		return checkMetrics(metricsOf(t, addr), map[string]float64{
			"redlock_masters": 5, "redlock_majority": 3, "redlock_masters_voting": 2, "redlock_quorum": 0,
			metricName("up", 0): 0, metricName("votes", 0): 0, metricName("up", 3): 1, metricName("votes", 3): 1,
		})
	})
	if got := kit.FirstWord(kit.ReplyText(kit.Do(t, client, "LOCK", "j", "t", "PX", "60000"))); got != "NOQUORUM" {
		t.Errorf("got %s", got)
	}
	want := map[string]float64{`redlock_lock_requests_total{operation="acquire",result="no_quorum"}`: 1,
		`redlock_lock_no_quorum_total{cause="down"}`: 1}
	kit.Must(t, checkMetrics(metricsOf(t, addr), want))
	kit.Must(t, masters[0].Restart())
	kit.Must(t, masters[1].Restart())
	kit.Must(t, masters[2].Restart())
	kit.Eventually(t, func() error {
		return checkMetrics(metricsOf(t, addr), map[string]float64{"redlock_masters_voting": 5, "redlock_quorum": 1})
	})
	kit.Must(t, masters[4].Kill())
	kit.Must(t, masters[4].Restart())
	kit.Await(t, "a catch-up", func() bool { return metricsOf(t, addr)[metricName("catch_ups_total", 4)] > 0 })
}

// TestAdminShowsNoSecrets checks that no page contains a key, a token, a client or a password.
func TestAdminShowsNoSecrets(t *testing.T) {
	t.Parallel()
	const key, token, password = "lock:kEy4Q", "tOkEn7Z", "pAsSwOrD9"
	url := func() string {
		return "redis://:" + password + "@" + kit.StartRedis(t, "--requirepass", password).Addr()
	}
	proxy := kit.StartProxy(t, []string{url(), url(), url()}, append(adminArgs, "--admin-pprof", "--upstream", url(),
		"--share-upstream-login", "--lock-keys", "lock:*")...)
	addr, client := adminAddr(t, proxy), kit.Connect(t, proxy)
	for _, command := range []string{
		"CLIENT SETNAME " + token, "LOCK " + key + " " + token + " PX 60000", "LOCK " + key + " u PX 60000", "UNLOCK " +
			key + " " + token,
		"SET " + key + " " + token, "GET " + key, "SET other:kEy4Q " + token + " NX PX 60000", "EVAL return " + key,
		"NOSUCH " + key,
	} {
		kit.Do(t, client, strings.Fields(command)...)
	}
	localAddr := client.LocalAddr()
	for _, path := range []string{"/livez", "/readyz", "/", "/status/v1", "/status/v1/locks", "/metrics", "/metrics?" +
		key, "/debug/pprof/", "/debug/pprof/cmdline", "/debug/pprof/goroutine?debug=2", "/" + key} {
		_, body, err := getAdminPage(addr, path)
		kit.Must(t, err)
		for _, secret := range []string{"kEy4Q", token, password, localAddr} {
			if strings.Contains(body, secret) {
				t.Errorf("%s tells %q:\n%s", path, secret, body)
			}
		}
	}
	if log := proxy.Log(); strings.Contains(log, password) {
		t.Error("the log tells the password")
	}
}

// TestPromtool checks the metrics with promtool.
func TestPromtool(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("promtool"); err != nil {
		redistest.SkipMissing(t, "promtool: apt-get install prometheus")
	}
	upstream := kit.StartRedis(t)
	masters := kit.StartMasters(t)
	proxy := kit.StartProxy(t, redistest.URLs(masters), append(adminArgs, "--upstream", upstream.URL())...)
	addr := adminAddr(t, proxy)
	kit.Must(t, masters[0].Restart())
	body, err := "", error(nil)
	// The test waits for a master in quarantine, so that all existing metrics are checked.
	kit.Await(t, "a master to be in quarantine", func() (inQuarantine bool) {
		_, body, err = getAdminPage(addr, "/metrics")
		return err == nil && strings.Contains(body, "redlock_master_quarantined{")
	})
	check := exec.Command("promtool", "check", "metrics")
	check.Stdin = strings.NewReader(body)
	if output, err := check.CombinedOutput(); err != nil || len(output) > 0 {
		t.Errorf("promtool: %v, %s", err, output)
	}
}
