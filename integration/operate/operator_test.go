//go:build integration

package operate

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"redlock-proxy/integration/harness"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// TestTakenPort checks that the error names the setting if the port is in use.
func TestTakenPort(t *testing.T) {
	t.Parallel()
	masters := kit.StartMasters(t)
	addr := masters[0].Addr()
	got := runProxy(t, "serve", "--master", masters[1].URL(), "--listen", addr)
	if want := fmt.Sprintf("redlock-proxy: --listen: %q: address already in use\n", addr); got.code != 1 ||
		!strings.HasSuffix(got.stderr, want) {
		t.Errorf("got %+v, want it to end with %s", got, want)
	}
}

// TestHangup checks that each SIGHUP is logged, and does not stop the proxy. SIGTERM still stops
// it.
func TestHangup(t *testing.T) {
	t.Parallel()
	proxy := kit.StartProxy(t, redistest.URLs(kit.StartMasters(t)))
	client := kit.Connect(t, proxy)
	const line = `msg="configuration reloaded: no setting changed" by=SIGHUP`
	for n := 1; n <= 3; n++ {
		kit.Must(t, proxy.Signal(syscall.SIGHUP))
		kit.Eventually(t, func() error {
			if got := strings.Count(proxy.Log(), line); got != n {
				return fmt.Errorf("%d lines about SIGHUP, want %d", got, n)
			}
			return nil
		})
	}
	kit.WantGrant(t, client, "LOCK", "k", "t", "PX", "10000")
	kit.Must(t, proxy.Signal(syscall.SIGTERM))
	wantExit(t, proxy, 0, kit.WaitLimit)
}

// linesOf returns the log lines that name a server.
func linesOf(log, addr string) (lines []string) {
	for line := range strings.Lines(log) {
		if strings.Contains(line, addr) {
			lines = append(lines, line)
		}
	}
	return lines
}

// TestOneLinePerMaster checks that a start without problems logs one line for each master and one
// for the upstream. This holds at the first start, at the second start, and without the guard.
func TestOneLinePerMaster(t *testing.T) {
	t.Parallel()
	masters := kit.StartMasters(t)
	upstream := kit.StartRedis(t)
	for _, args := range [][]string{nil, nil, {"--guard=false"}} {
		if args != nil {
			wantInit(t, initMasters(t, masters, "--new-settings", args[0]), 0, "")
		}
		proxy := kit.StartProxy(t, redistest.URLs(masters), append(args, "--upstream", upstream.URL())...)
		kit.Eventually(t, func() error { return checkAllVote(proxy, len(masters)) })
		kit.Must(t, proxy.Signal(syscall.SIGTERM))
		wantExit(t, proxy, 0, kit.WaitLimit)
		for _, server := range append(masters, upstream) {
			if lines := linesOf(proxy.Log(), server.Addr()); len(lines) != 1 {
				t.Errorf("%v: %d lines about %s, want one:\n%s", args, len(lines), server.Addr(), strings.Join(lines, ""))
			}
		}
	}
}

// checkAllVote returns an error unless the given number of masters vote.
func checkAllVote(proxy *harness.Proxy, n int) error {
	client, err := redistest.Dial(proxy.Addr(), kit.WaitLimit)
	if err != nil {
		return err
	}
	defer client.Close()
	info, err := client.Do("PROXY", "INFO")
	if err == nil && !strings.Contains(fmt.Sprint(info), fmt.Sprintf("redlock_masters_voting:%d\r\n", n)) {
		err = fmt.Errorf("got %v, want %d that vote", info, n)
	}
	return err
}

// TestMastersDownAtStart checks that each of two proxies logs, at its start, a master that refuses
// the password. It also logs a master that does not listen. Neither master has ever been reachable.
func TestMastersDownAtStart(t *testing.T) {
	t.Parallel()
	masters := redistest.URLs(kit.StartMasters(t))
	passwordMaster := kit.StartRedis(t, "--requirepass", "right")
	masters[0], masters[1] = "redis://:wrong@"+passwordMaster.Addr(), "redis://127.0.0.1:"+kit.FreePort(t)
	for range 2 {
		proxy := kit.StartProxy(t, masters, "--fresh-start=false")
		for _, cause := range []string{`master=` + passwordMaster.Addr() + ` cause="WRONGPASS `, `cause="connection refused"`} {
			line, err := proxy.WaitLog(cause, kit.WaitLimit)
			kit.Must(t, err)
			if !strings.Contains(line, "master down") {
				t.Error(line)
			}
		}
	}
}

// TestLogUnits checks that durations have their unit in JSON, as in text.
func TestLogUnits(t *testing.T) {
	t.Parallel()
	masters := kit.StartMasters(t)
	proxy := kit.StartProxy(t, redistest.URLs(masters), "--log-format", "json")
	kit.Must(t, masters[0].Kill())
	_, err := proxy.WaitLog("master down", kit.WaitLimit)
	kit.Must(t, err)
	kit.Must(t, masters[0].Restart())
	line, err := proxy.WaitLog("was_down", kit.WaitLimit)
	kit.Must(t, err)
	var record struct {
		WasDown string `json:"was_down"`
		Cause   string `json:"cause"`
	}
	if err := json.Unmarshal([]byte(line), &record); err != nil {
		t.Fatalf("%v in %s", err, line)
	}
	if d, err := time.ParseDuration(record.WasDown); err != nil || d <= 0 {
		t.Errorf("was_down is %q (%v), want a duration with its unit", record.WasDown, err)
	}
}

// TestInfoOfDownServers checks that INFO shows in plain words the cause for which a master and an
// upstream are down. It also shows the time for which the master has been down.
func TestInfoOfDownServers(t *testing.T) {
	t.Parallel()
	masters := kit.StartMasters(t)
	upstream := kit.StartRedis(t)
	proxy := kit.StartProxy(t, redistest.URLs(masters), "--upstream", upstream.URL())
	client := kit.Connect(t, proxy)
	kit.Must(t, masters[0].Kill())
	kit.Must(t, upstream.Kill())
	want := []*regexp.Regexp{
		regexp.MustCompile(`redlock_master0:address=` +
			regexp.QuoteMeta(masters[0].Addr()) + `,state=down,cause=connection refused,for_seconds=\d+\r\n`),
		regexp.MustCompile(`upstream_address:` +
			regexp.QuoteMeta(upstream.Addr()) + `\r\nupstream_state:down\r\nupstream_cause:connection refused\r\n`),
	}
	kit.Eventually(t, func() error {
		info := fmt.Sprint(kit.Do(t, client, "PROXY", "INFO"))
		for _, pattern := range want {
			if !pattern.MatchString(info) {
				return fmt.Errorf("got %s\nwant %v", info, pattern)
			}
		}
		return nil
	})
}

// TestForSeconds checks that for_seconds restarts at 0 when a reachable master gets its vote.
func TestForSeconds(t *testing.T) {
	t.Parallel()
	f := kit.StartFleet(t, "--fresh-start")
	f.WantVoting(t, 5)
	client := kit.Connect(t, f.Proxies[0])
	info := fmt.Sprint(kit.Do(t, client, "PROXY", "INFO"))
	uptime := kit.ParseNumber(t, regexp.MustCompile(`proxy_uptime_in_seconds:(\d+)`).FindStringSubmatch(info)[1])
	states := regexp.MustCompile(`state=voting,round_trip_us=\d+,for_seconds=(\d+)`).FindAllStringSubmatch(info, -1)
	if len(states) != len(f.Masters) {
		t.Fatalf("not all of %d masters vote:\n%s", len(f.Masters), info)
	}
	for _, match := range states {
		// The masters have voted since the end of the fresh start, almost 3 s after the proxy's
		// start.
		if got := kit.ParseNumber(t, match[1]); got > uptime-2 {
			t.Errorf("votes for %d s of %d s, but began to only with the end of the fresh start:\n%s", got, uptime, info)
		}
	}
}

// TestLocksOutsideLockKeys checks that the proxy counts commands that use a key like a lock,
// although no lock-keys pattern matches it. It logs them once per pattern, without tokens. It does
// not count commands on matching keys.
func TestLocksOutsideLockKeys(t *testing.T) {
	t.Parallel()
	upstream := kit.StartRedis(t)
	proxy := kit.StartProxy(t, redistest.URLs(kit.StartMasters(t)), "--upstream", upstream.URL(), "--lock-keys", "lock:*")
	client := kit.Connect(t, proxy)
	const script = `if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end`
	for i := range 20 {
		for _, key := range []string{fmt.Sprintf("job:%d:lock", i), fmt.Sprintf("lock:%d", i)} {
			if got := kit.Do(t, client, "SET", key, "secret-token", "NX", "PX", "30000"); got != "OK" {
				t.Fatalf("SET %s: got %v", key, got)
			}
			if got := kit.Do(t, client, "EVAL", script, "1", key, "secret-token"); got != int64(1) {
				t.Fatalf("EVAL on %s: got %v", key, got)
			}
		}
	}
	info := fmt.Sprint(kit.Do(t, client, "PROXY", "INFO"))
	for _, want := range []string{"redlock_uncovered_locks_total:20\r\n", "redlock_uncovered_releases_total:20\r\n",
		"redlock_uncovered_pattern0:locks=20,releases=20,glob=job:*:lock\r\n"} {
		if !strings.Contains(info, want) {
			t.Errorf("got %s\nwant %q in it", info, want)
		}
	}
	log := proxy.Log()
	const line = `level=WARN msg="a key that lock-keys does not cover is used like a lock: only the upstream holds it" pattern=job:*:lock by="SET NX with an expiry"`
	if strings.Count(log, line) != 1 || strings.Count(log, "is used like a lock") != 1 ||
		strings.Contains(log, "secret-token") {
		t.Errorf("got the log\n%s\nwant one line %s", log, line)
	}
}
