//go:build integration

package operate

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"redlock-proxy/integration/harness"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// TestReportedLockStorage checks that proxies and check report the location of the locks before a
// move, after it, and after the move back. After the move, the proxies detect clients that lock at
// the upstream directly.
func TestReportedLockStorage(t *testing.T) {
	t.Parallel()
	masters, upstream := kit.StartMasters(t), kit.StartRedis(t)
	args := append(kit.LockKeyArgs(upstream), append(adminArgs, "--move-from-upstream")...)
	var proxies []*harness.Proxy
	for range 2 {
		proxies = append(proxies, kit.StartProxy(t, redistest.URLs(masters), append(args, "--fresh-start")...))
	}
	check := func(extra ...string) outcome {
		return checkMasters(t, redistest.URLs(masters), append(kit.LockKeyArgs(upstream), extra...)...)
	}
	wantLine := func(got outcome, line string) {
		t.Helper()
		if !strings.Contains(got.stdout, "\n"+line+"\n") {
			t.Errorf("check prints\n%swant %s", got.stdout, line)
		}
	}
	wantLockStorage(t, proxies, "upstream", 0, "off")
	got := check("--move-from-upstream")
	got.wantVerdict(t, 0, "ok: 5 of 5 masters vote")
	wantLine(got, "locks: at the upstream (move-from-upstream) until redlock-proxy move moves them to the masters")
	if got := check(); got.code != 5 || strings.Contains(got.stdout, "init") ||
		!strings.Contains(got.stdout, "move-from-upstream: the masters have true, this proxy has false") {
		t.Errorf("the settings differ, and check ends with %d:\n%s", got.code, got.stdout)
	}

	client := kit.Connect(t, proxies[0])
	kit.Want(t, client, "OK", "SET", "lock:a", "token", "NX", "PX", "600000")
	kit.Do(t, client, "PROXY", "MOVE")
	wantLockStorage(t, proxies, "masters", 0, "tracking")
	got = check("--move-from-upstream")
	got.wantVerdict(t, 0, "ok: 5 of 5 masters vote")
	wantLine(got, "locks: at the masters (era 2); move-from-upstream has no effect any more")
	wantLine(check(), "locks: at the masters (era 2)")

	directClient := kit.Dial(t, upstream.Addr())
	kit.Do(t, directClient, "CLIENT", "SETNAME", "culprit")
	kit.Want(t, directClient, "OK", "SET", "lock:b", "token", "NX", "PX", "600000")
	wantLockStorage(t, proxies, "masters", 1, "tracking")
	for _, proxy := range proxies {
		line, err := proxy.WaitLog("lock keys are used at the upstream directly", kit.WaitLimit)
		kit.Must(t, err)
		for _, word := range []string{"lock_keys=lock:*", "key=lock:b", "seen=1", directClient.LocalAddr(), "name=culprit"} {
			if !strings.Contains(line, word) {
				t.Errorf("the log says %s without %s", line, word)
			}
		}
	}
	got = check()
	got.wantVerdict(t, 4, "degraded: 5 of 5 masters vote; upstream "+upstream.Addr()+`: 1 lock key is at the upstream while the locks are at the masters, such as "lock:b"`)
	kit.Do(t, directClient, "DEL", "lock:b")
	kit.Must(t, directClient.Close())

	kit.Do(t, client, "PROXY", "MOVE", "BACK")
	wantLockStorage(t, proxies, "upstream", 1, "off")
	kit.Want(t, client, "token", "GET", "lock:a")
	kit.Must(t, kit.SendToMaster(upstream, "SET", "lock:c", "token"))
	wantLockStorage(t, proxies, "upstream", 1, "off")
	wantLine(check("--move-from-upstream"),
		"locks: at the upstream (era 4); move-from-upstream has no effect any more")

	for _, master := range masters[:3] {
		kit.Must(t, master.Kill())
	}
	if got := check("--json"); !strings.Contains(got.stdout, `"locks_at": "unknown"`) {
		t.Errorf("too few masters answer, and check prints\n%s", got.stdout)
	}
}

// wantLockStorage waits until INFO of all proxies reports the given lock storage, number of direct
// locks, and mode of the watch for direct locks. The metrics and the status page must have the
// first two values, too.
func wantLockStorage(t *testing.T, proxies []*harness.Proxy, storage string, directLocks int, watchMode string) {
	t.Helper()
	for _, proxy := range proxies {
		client := kit.Connect(t, proxy)
		kit.Eventually(t, func() error {
			for _, command := range [][]string{{"PROXY", "INFO"}, {"INFO", "redlock"}} {
				info := fmt.Sprint(kit.Do(t, client, command...))
				for _, line := range []string{"redlock_lock_storage:" + storage,
					fmt.Sprintf("redlock_direct_locks_total:%d", directLocks), "redlock_direct_lock_watch:" + watchMode} {
					if !strings.Contains(info, "\n"+line+"\r\n") {
						return fmt.Errorf("%v: no %s in\n%s", command, line, info)
					}
				}
			}
			return nil
		})
		addr := adminAddr(t, proxy)
		metrics := metricsOf(t, addr)
		if metrics[fmt.Sprintf("redlock_lock_storage{place=%q}", storage)] != 1 ||
			metrics["redlock_direct_locks_total"] != float64(directLocks) {
			t.Errorf("the metrics are %v", metrics)
		}
		_, body, err := getAdminPage(addr, "/status/v1")
		kit.Must(t, err)
		var page struct {
			Proxy struct {
				Storage     string `json:"locks_at"`
				DirectLocks int    `json:"stray_locks"`
			} `json:"proxy"`
		}
		kit.Must(t, json.Unmarshal([]byte(body), &page))
		if page.Proxy.Storage != storage || page.Proxy.DirectLocks != directLocks {
			t.Errorf("the page has %+v", page.Proxy)
		}
	}
}
