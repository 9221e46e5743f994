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

// adminPort is the list of arguments that open an admin port.
var adminPort = []string{"--admin", "127.0.0.1:0"}

// adminOf returns the address of the admin port from the log.
func adminOf(t *testing.T, proxy *harness.Proxy) string {
	t.Helper()
	line, err := proxy.WaitLog(`msg="serving health and metrics"`, kit.Patience)
	kit.Must(t, err)
	return regexp.MustCompile(`admin=(\S+)`).FindStringSubmatch(line)[1]
}

// askAdmin gets a page of an admin port.
func askAdmin(addr, path string) (code int, body string, err error) {
	client := http.Client{Timeout: kit.Patience, Transport: &http.Transport{DisableKeepAlives: true}}
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
	kit.Soon(t, func() error {
		got, body, err := askAdmin(addr, path)
		if err == nil && (got != code || body != want) {
			err = fmt.Errorf("%s: got %d\n%swant %d\n%s", path, got, body, code, want)
		}
		return err
	})
}

// TestReadyz: without its upstream a proxy is degraded, without a majority it is not ready.
func TestReadyz(t *testing.T) {
	t.Parallel()
	masters, upstream := kit.StartMasters(t), kit.StartRedis(t)
	proxy := kit.StartProxy(t, redistest.URLs(masters), append(adminPort, "--upstream", upstream.URL())...)
	addr := adminOf(t, proxy)
	const served, up, live = "[+]clients: served", "[+]upstream: up", "ok"
	awaitPage(t, addr, "/readyz", 200, served, "[+]locks: available, 5 of 5 masters vote", up, "ready")
	kit.Must(t, masters[0].Kill())
	kit.Must(t, masters[1].Kill())
	awaitPage(t, addr, "/readyz", 200, served, "[!]locks: available, 3 of 5 masters vote", up, "ready, but degraded")
	kit.Must(t, upstream.Kill())
	down := "[!]upstream: " + upstream.Addr() + ": connection refused"
	awaitPage(t, addr, "/readyz", 200, served, "[!]locks: available, 3 of 5 masters vote", down, "ready, but degraded")
	kit.Must(t, masters[2].Kill())
	awaitPage(t, addr, "/readyz", 503, served, "[-]locks: 2 of 5 masters vote, 3 needed", down, "not ready")
	awaitPage(t, addr, "/readyz?exclude=masters", 200, served, down, "ready, but degraded")
	awaitPage(t, addr, "/livez", 200, live)
	for _, master := range masters[:3] {
		kit.Must(t, master.Restart())
	}
	kit.Must(t, upstream.Restart())
	awaitPage(t, addr, "/readyz", 200, served, "[+]locks: available, 5 of 5 masters vote", up, "ready")
}

// TestReadyzWhileStopping: when the proxy no longer accepts clients, it is not ready; the admin
// port is available until the process ends.
func TestReadyzWhileStopping(t *testing.T) {
	t.Parallel()
	proxy := kit.StartProxy(t, redistest.URLs(kit.StartMasters(t)), append(adminPort, "--drain-timeout", "1m")...)
	addr := adminOf(t, proxy)
	busy := kit.Busy(t, proxy)
	stop(t, proxy, syscall.SIGTERM)
	code, body, err := askAdmin(addr, "/readyz")
	kit.Must(t, err)
	if code != 503 || !strings.HasPrefix(body, "[-]clients: draining, no new clients are served\n") {
		t.Errorf("/readyz: got %d, %s", code, body)
	}
	if got := metricsOf(t, addr)["redlock_client_unread_bytes"]; got == 0 {
		t.Error("nothing is unread")
	}
	kit.Must(t, busy.Close())
	wantExit(t, proxy, 0, kit.Patience)
	if _, _, err := askAdmin(addr, "/livez"); err == nil {
		t.Error("the port is still served")
	}
}

// TestAdminPortTaken: if the admin port is in use, a proxy does not start, and reports why.
func TestAdminPortTaken(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	masters := kit.StartMasters(t)
	addr := adminOf(t, kit.StartProxy(t, redistest.URLs(masters), adminPort...))
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
	code, body, err := askAdmin(addr, "/metrics")
	kit.Must(t, err)
	if code != 200 {
		t.Fatalf("/metrics: got %d, %s", code, body)
	}
	all := map[string]float64{}
	for line := range strings.Lines(body) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		end := strings.LastIndexByte(line, ' ')
		value, err := strconv.ParseFloat(strings.TrimSpace(line[end:]), 64)
		kit.Must(t, err)
		all[line[:end]] = value
	}
	return all
}

// wantMoved fails the test unless metrics have grown by the values of want, and no other metrics of
// locks, scripts and keys have grown.
func wantMoved(t *testing.T, before, after, want map[string]float64) {
	t.Helper()
	watched := regexp.MustCompile(`^redlock_(lock_(requests|no_quorum|withdrawals)_total|lock_(duration|wait|lease)_seconds_count|locks_|script_|uncovered_)`)
	for name := range after {
		if moved := after[name] - before[name]; watched.MatchString(name) && moved != want[name] {
			t.Errorf("%s has grown by %v, want %v", name, moved, want[name])
		}
	}
	for name := range want {
		if _, there := after[name]; !there {
			t.Errorf("there is no %s", name)
		}
	}
}

// requests returns the names of the metrics for the number of operations and for their time.
func requests(operation, result string) (count, took string) {
	return fmt.Sprintf("redlock_lock_requests_total{operation=%q,result=%q}", operation, result),
		fmt.Sprintf("redlock_lock_duration_seconds_count{operation=%q}", operation)
}

// TestMetrics: each operation of a client changes exactly the metrics of this operation.
func TestMetrics(t *testing.T) {
	t.Parallel()
	masters, upstream := kit.StartMasters(t), kit.StartRedis(t)
	proxy := kit.StartProxy(t, redistest.URLs(masters), append(adminPort, "--upstream", upstream.URL(), "--lock-keys",
		"lock:*")...)
	addr, client := adminOf(t, proxy), kit.Connect(t, proxy)
	const release = `if redis.call("get",KEYS[1])==ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end`
	granted, acquired := requests("acquire", "ok")
	held, _ := requests("acquire", "held")
	released, freed := requests("release", "ok")
	notHeld, _ := requests("release", "not_held")
	extended, extending := requests("extend", "ok")
	read, reading := requests("read", "ok")
	updated, updating := requests("update", "ok")
	const lease, waited, runs = "redlock_lock_lease_seconds_count", "redlock_lock_wait_seconds_count",
		"redlock_script_runs_total"
	for _, c := range []struct {
		command string
		moved   map[string]float64
	}{
		{"LOCK a t PX 60000", map[string]float64{granted: 1, acquired: 1, lease: 1}},
		{"LOCK a u PX 60000", map[string]float64{held: 1, acquired: 1}},
		{"LOCK a u PX 60000 BLOCK 20", map[string]float64{held: 1, waited: 1}},
		{"EXTEND a t PX 60000", map[string]float64{extended: 1, extending: 1}},
		{"UNLOCK a u", map[string]float64{notHeld: 1, freed: 1}},
		{"UNLOCK a t", map[string]float64{released: 1, freed: 1}},
		{"LOCK a t PX 60000 BLOCK 1000", map[string]float64{granted: 1, waited: 1, lease: 1}},
		{"LOCK a t", nil},
		{"SET lock:a t NX PX 60000", map[string]float64{granted: 1, acquired: 1, lease: 1}},
		{"GET lock:a", map[string]float64{read: 1, reading: 1}},
		{"EVAL|" + release + "|1|lock:a|t", map[string]float64{released: 1, freed: 1, runs: 1}},
		{"SET lock:a t", map[string]float64{updated: 1, updating: 1, "redlock_locks_without_ttl_total": 1}},
		{"SET other t NX PX 60000", map[string]float64{"redlock_uncovered_locks_total": 1}},
		{"GET other", nil},
	} {
		before := metricsOf(t, addr)
		words := strings.Fields(c.command)
		if strings.Contains(c.command, "|") {
			words = strings.Split(c.command, "|")
		}
		kit.Do(t, client, words...)
		wantMoved(t, before, metricsOf(t, addr), c.moved)
	}
}

// TestMetricsOfTheRelay: the metrics count bytes, and connected, parked and disconnected clients.
func TestMetricsOfTheRelay(t *testing.T) {
	t.Parallel()
	upstream := kit.StartRedis(t)
	proxy := kit.StartProxy(t, redistest.URLs(kit.StartMasters(t)), append(adminPort, "--upstream", upstream.URL(),
		"--max-clients", "2")...)
	addr, client := adminOf(t, proxy), kit.Connect(t, proxy)
	kit.Want(t, client, "PONG", "PING")
	before := metricsOf(t, addr)
	value := strings.Repeat("x", 1<<20)
	kit.Want(t, client, "OK", "SET", "k", value)
	kit.Want(t, client, any(value), "GET", "k")
	const there, back = `redlock_relay_bytes_total{direction="to_upstream"}`,
		`redlock_relay_bytes_total{direction="to_clients"}`
	sent := len("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1048576\r\n") + len(value) + 2 + len("*2\r\n$3\r\nGET\r\n$1\r\nk\r\n")
	got := len("+OK\r\n$1048576\r\n") + len(value) + 2
	kit.Soon(t, func() error { // clients are counted when they have disconnected
		return differ(metricsOf(t, addr), map[string]float64{there: before[there] + float64(sent),
			back: before[back] + float64(got)})
	})
	second := kit.Connect(t, proxy)
	kit.Want(t, second, "PONG", "PING")
	third := kit.Connect(t, proxy)
	if _, err := third.ReceiveAll(); err != nil {
		t.Error(err)
	}
	kit.Soon(t, func() error {
		got := metricsOf(t, addr)
		return differ(got, map[string]float64{
			"redlock_client_connections": 2, "redlock_client_connections_parked": 2, "redlock_client_connections_limit": 2,
			"redlock_client_connections_accepted_total": 2, "redlock_client_connections_refused_total": 1,
			"redlock_upstream_up": 1,
		})
	})
	kit.Want(t, second, "PONG", "PING") // this wakes the connection
	kit.Must(t, second.Close())
	kit.Soon(t, func() error {
		return differ(metricsOf(t, addr), map[string]float64{"redlock_client_connections": 1,
			"redlock_client_connections_parked": 1})
	})
}

// differ returns the metrics that have wrong values.
func differ(got, want map[string]float64) error {
	for name, value := range want {
		if got[name] != value {
			return fmt.Errorf("%s is %v, want %v", name, got[name], value)
		}
	}
	return nil
}

// TestMetricsOfMasters: the metrics show unavailable masters, count the resulting refusals by
// cause, and count the catch-up of a master that is available again.
func TestMetricsOfMasters(t *testing.T) {
	t.Parallel()
	masters := kit.StartMasters(t)
	proxy := kit.StartProxy(t, redistest.URLs(masters), adminPort...)
	addr, client := adminOf(t, proxy), kit.Connect(t, proxy)
	kit.WantGrant(t, client, "LOCK", "k", "t", "PX", "1000")
	of := func(metric string, i int) string {
		return fmt.Sprintf("redlock_master_%s{master=%q}", metric, masters[i].Addr())
	}
	kit.Soon(t, func() error { // a majority granted the LOCK, possibly without this master
		if got := metricsOf(t, addr); got[of("round_trip_seconds_count", 0)] < 1 ||
			got[of("clock_offset_seconds", 0)] > 1 || got[of("clock_offset_seconds", 0)] < -1 {
			return fmt.Errorf("%s is %v, the clock is off by %v", of("round_trip_seconds_count", 0),
				got[of("round_trip_seconds_count", 0)], got[of("clock_offset_seconds", 0)])
		}
		return nil
	})
	for _, master := range masters[:3] {
		kit.Must(t, master.Kill())
	}
	kit.Soon(t, func() error {
		return differ(metricsOf(t, addr), map[string]float64{
			"redlock_masters": 5, "redlock_majority": 3, "redlock_masters_voting": 2, "redlock_quorum": 0,
			of("up", 0): 0, of("votes", 0): 0, of("up", 3): 1, of("votes", 3): 1,
		})
	})
	if got := kit.FirstWord(kit.Text(kit.Do(t, client, "LOCK", "j", "t", "PX", "60000"))); got != "NOQUORUM" {
		t.Errorf("got %s", got)
	}
	want := map[string]float64{`redlock_lock_requests_total{operation="acquire",result="no_quorum"}`: 1,
		`redlock_lock_no_quorum_total{cause="down"}`: 1}
	kit.Must(t, differ(metricsOf(t, addr), want))
	kit.Must(t, masters[0].Restart())
	kit.Must(t, masters[1].Restart())
	kit.Must(t, masters[2].Restart())
	kit.Soon(t, func() error {
		return differ(metricsOf(t, addr), map[string]float64{"redlock_masters_voting": 5, "redlock_quorum": 1})
	})
	kit.Must(t, masters[4].Kill())
	kit.Must(t, masters[4].Restart())
	kit.Await(t, "a catch-up", func() bool { return metricsOf(t, addr)[of("catch_ups_total", 4)] > 0 })
}

// TestAdminTellsNoSecrets: no page contains a key, a token, a client or a password.
func TestAdminTellsNoSecrets(t *testing.T) {
	t.Parallel()
	const key, token, password = "lock:kEy4Q", "tOkEn7Z", "pAsSwOrD9"
	url := func() string {
		return "redis://:" + password + "@" + kit.StartRedis(t, "--requirepass", password).Addr()
	}
	proxy := kit.StartProxy(t, []string{url(), url(), url()}, append(adminPort, "--admin-pprof", "--upstream", url(),
		"--share-upstream-login", "--lock-keys", "lock:*")...)
	addr, client := adminOf(t, proxy), kit.Connect(t, proxy)
	for _, command := range []string{
		"CLIENT SETNAME " + token, "LOCK " + key + " " + token + " PX 60000", "LOCK " + key + " u PX 60000", "UNLOCK " +
			key + " " + token,
		"SET " + key + " " + token, "GET " + key, "SET other:kEy4Q " + token + " NX PX 60000", "EVAL return " + key,
		"NOSUCH " + key,
	} {
		kit.Do(t, client, strings.Fields(command)...)
	}
	local := client.LocalAddr()
	for _, path := range []string{"/livez", "/readyz", "/", "/status/v1", "/status/v1/locks", "/metrics", "/metrics?" +
		key, "/debug/pprof/", "/debug/pprof/cmdline", "/debug/pprof/goroutine?debug=2", "/" + key} {
		_, body, err := askAdmin(addr, path)
		kit.Must(t, err)
		for _, secret := range []string{"kEy4Q", token, password, local} {
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
	proxy := kit.StartProxy(t, redistest.URLs(masters), append(adminPort, "--upstream", upstream.URL())...)
	addr := adminOf(t, proxy)
	kit.Must(t, masters[0].Restart())
	body, err := "", error(nil)
	kit.Await(t, "a master to be in quarantine", func() (seen bool) { // so that all existing metrics are checked
		_, body, err = askAdmin(addr, "/metrics")
		return err == nil && strings.Contains(body, "redlock_master_quarantined{")
	})
	check := exec.Command("promtool", "check", "metrics")
	check.Stdin = strings.NewReader(body)
	if output, err := check.CombinedOutput(); err != nil || len(output) > 0 {
		t.Errorf("promtool: %v, %s", err, output)
	}
}
