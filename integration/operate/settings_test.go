//go:build integration

package operate

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"redlock-proxy/integration/harness"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// TestNewSettings checks that the masters refuse proxies whose settings differ from the running
// proxies' settings, and that check reports the difference. When an operator confirms the new
// settings, the masters accept them. Then the masters refuse all commands of proxies with the
// earlier settings. They refuse even the first command after such a proxy was stopped for a while.
func TestNewSettings(t *testing.T) {
	t.Parallel()
	masters := kit.StartMasters(t)[:3]
	urls, newSetting := redistest.URLs(masters), "--key-prefix=p:"
	oldProxy := kit.StartProxy(t, urls)
	client := kit.Connect(t, oldProxy)
	kit.WantGrant(t, client, "LOCK", "k", "me", "PX", "60000")
	checkMasters(t, urls).wantVerdict(t, 0, "ok: 3 of 3 masters vote")

	const difference, remedy = `key-prefix: the masters have "", this proxy has "p:"`, "redlock-proxy init --new-settings"
	got := checkMasters(t, urls, newSetting)
	got.wantVerdict(t, 5, "other settings: your settings differ from those of the running proxies: "+difference)
	got.wantRow(t, masters[0].Addr(), difference)
	if strings.Contains(got.stdout, remedy) {
		t.Errorf("what would stop the running proxies is advised:\n%s", got.stdout)
	}
	wantInit(t, initMasters(t, masters, "--new-settings", newSetting), 2,
		"refused: 1 proxy with different settings is running and would lose its votes; stop it first")
	kit.WantGrant(t, client, "LOCK", "k1", "me", "PX", "60000")
	newProxy := kit.StartProxy(t, urls, newSetting)
	kit.Eventually(t, func() error { return checkSettingsRefused(t, newProxy, difference) })
	got = checkMasters(t, urls)
	got.wantVerdict(t, 4, "degraded: 3 of 3 masters vote; ")
	got.wantRow(t, masters[0].Addr(), "another proxy has different lock settings")

	// After a while, the masters treat a stopped proxy like an ended proxy.
	kit.Must(t, oldProxy.Signal(syscall.SIGSTOP))
	initResult := initMasters(t, masters, "--new-settings", newSetting)
	wantInit(t, initResult, 0, masters[0].Addr()+": votes only for proxies with these settings (before: "+difference+")\n")
	newClient := kit.Connect(t, newProxy)
	kit.Eventually(t, func() error {
		if reply := kit.Do(t, newClient, "LOCK", "k", "you", "PX", "60000"); kit.ReplyText(reply) < "1" ||
			kit.ReplyText(reply) > ":" {
			return fmt.Errorf("LOCK: %v", reply)
		}
		return nil
	})
	kit.Must(t, client.Send([]byte("LOCK k2 me PX 60000\r\n")))
	kit.Must(t, oldProxy.Signal(syscall.SIGCONT))
	reply, err := client.Receive()
	if text := fmt.Sprint(reply); err != nil || !strings.HasPrefix(text, "NOQUORUM ") {
		t.Errorf("a proxy with the settings of before is told %s, %v", text, err)
	}
	kit.Eventually(t, func() error {
		return checkSettingsRefused(t, oldProxy, `key-prefix: the masters have "p:", this proxy has ""`)
	})
	checkMasters(t, urls).wantVerdict(t, 5, "other settings: your settings differ from those of the running proxies: ")
	kit.Must(t, oldProxy.Close())
	wantInit(t, initMasters(t, masters, "--new-settings", newSetting), 0,
		masters[0].Addr()+": votes only for proxies with these settings\n")
	kit.Eventually(t, func() error {
		if got := checkMasters(t, urls, newSetting); got.code != 0 {
			return fmt.Errorf("check ends with %d:\n%s", got.code, got.stdout)
		}
		return nil
	})

	kit.Must(t, masters[2].Kill())
	initResult = initMasters(t, masters, "--new-settings", "--force")
	wantInit(t, initResult, 3, masters[2].Addr()+": connection refused\n")
	wantInit(t, initResult, 3, "not all masters were reached")
	checkMasters(t, urls).wantVerdict(t, 5, "other settings: the masters do not vote for the running proxies: ")
}

// checkSettingsRefused returns an error unless the proxy refuses LOCK and names the differing
// setting.
func checkSettingsRefused(t *testing.T, proxy *harness.Proxy, difference string) error {
	t.Helper()
	text := fmt.Sprint(kit.Do(t, kit.Connect(t, proxy), "LOCK", "k", "you", "PX", "60000"))
	if !strings.HasPrefix(text, "NOQUORUM 0 of 3 masters vote: 3 are in use by proxies with different settings") ||
		!strings.Contains(text, difference) {
		return fmt.Errorf("LOCK: %s", text)
	}
	return nil
}

// TestNewSettingsKeepsLocks checks that, while proxies run, init --new-settings changes neither the
// location of the locks nor the list of masters.
func TestNewSettingsKeepsLocks(t *testing.T) {
	t.Parallel()
	masters, upstream := kit.StartMasters(t), kit.StartRedis(t)
	for _, c := range []struct {
		name                           string
		startedMasters, refusedMasters []*redistest.Server
		setting, differentSetting      string
		remedy                         string
	}{
		{"from the upstream", masters[:3], masters[:3], "--move-from-upstream", "--move-from-upstream=false",
			"move-from-upstream: the masters have true, this proxy has false"},
		{"from the masters", masters[:3], masters[:3], "--move-from-upstream=false", "--move-from-upstream",
			"move-from-upstream: the masters have false, this proxy has true"},
		{"a different master", masters[:3], []*redistest.Server{masters[0], masters[1], masters[3]}, "--key-prefix=", "--key-prefix=",
			"masters: the masters have "},
		{"two different masters", masters[:3], masters[2:], "--key-prefix=", "--key-prefix=", "masters: the masters have "},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, master := range masters {
				kit.Must(t, kit.SendToMaster(master, "FLUSHALL"))
			}
			f := &kit.Fleet{Masters: c.startedMasters}
			f.Proxies = append(f.Proxies, kit.StartProxy(t, redistest.URLs(c.startedMasters), append(kit.LockKeyArgs(upstream), c.setting)...))
			f.WantVoting(t, 3)
			client := kit.Connect(t, f.Proxies[0])
			kit.Want(t, client, "OK", "SET", "lock:"+c.name, "me", "NX", "PX", "60000")
			args := append(kit.LockKeyArgs(upstream), c.differentSetting)
			wantInit(t, initMasters(t, c.refusedMasters, append(args, "--new-settings")...), 2, "refused: 1 proxy with different settings is running")
			kit.Want(t, client, "OK", "SET", "lock:more "+c.name, "me", "NX", "PX", "60000")
			checkMasters(t, redistest.URLs(c.refusedMasters), args...).wantVerdict(t, 5,
				"other settings: your settings differ from those of the running proxies: "+c.remedy)
			if c.setting == c.differentSetting {
				return
			}
			text := fmt.Sprint(kit.Do(t, kit.Connect(t, kit.StartProxy(t, redistest.URLs(c.refusedMasters), args...)), "SET", "lock:"+c.name, "you", "NX"))
			if !strings.HasPrefix(text, "NOQUORUM ") || !strings.Contains(text, c.remedy) || strings.Contains(text, "init") {
				t.Errorf("a proxy with the other setting replies %s", text)
			}
		})
	}
}

// TestNewSettingsAlone checks that init --new-settings refuses flags that it would ignore.
func TestNewSettingsAlone(t *testing.T) {
	t.Parallel()
	masters := kit.StartMasters(t)[:1]
	for _, flag := range []string{"--longest-ttl", "--once"} {
		wantInit(t, initMasters(t, masters, "--new-settings", flag, "0s"), 1, "--new-settings and "+flag+" exclude each other")
	}
}
