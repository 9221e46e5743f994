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

// TestNewSettings: the masters refuse proxies whose settings differ from those of the running
// proxies, and check reports that, until an operator confirms the new settings. Then the masters
// refuse all commands of proxies with the earlier settings, even the first command after such a
// proxy was stopped for a while.
func TestNewSettings(t *testing.T) {
	t.Parallel()
	masters := kit.StartMasters(t)[:3]
	urls, setting := redistest.URLs(masters), "--key-prefix=p:"
	before := kit.StartProxy(t, urls)
	client := kit.Connect(t, before)
	kit.WantGrant(t, client, "LOCK", "k", "me", "PX", "60000")
	checkMasters(t, urls).wantVerdict(t, 0, "ok: 3 of 3 masters vote")

	const differs, cure = `key-prefix: the masters have "", this proxy has "p:"`, "redlock-proxy init --new-settings"
	got := checkMasters(t, urls, setting)
	got.wantVerdict(t, 5, "other settings: your settings differ from those of the running proxies: "+differs)
	got.wantRow(t, masters[0].Addr(), differs)
	if strings.Contains(got.stdout, cure) {
		t.Errorf("what would stop the running proxies is advised:\n%s", got.stdout)
	}
	wantInit(t, initMasters(t, masters, "--new-settings", setting), 2,
		"refused: 1 proxy with different settings is running and would lose its votes; stop it first")
	kit.WantGrant(t, client, "LOCK", "k1", "me", "PX", "60000")
	after := kit.StartProxy(t, urls, setting)
	kit.Soon(t, func() error { return wantUnlike(t, after, differs) })
	got = checkMasters(t, urls)
	got.wantVerdict(t, 4, "degraded: 3 of 3 masters vote; ")
	got.wantRow(t, masters[0].Addr(), "another proxy has different lock settings")

	// After a while, the masters treat a stopped proxy like one that has ended.
	kit.Must(t, before.Signal(syscall.SIGSTOP))
	said := initMasters(t, masters, "--new-settings", setting)
	wantInit(t, said, 0, masters[0].Addr()+": votes only for proxies with these settings (before: "+differs+")\n")
	afterwards := kit.Connect(t, after)
	kit.Soon(t, func() error {
		if reply := kit.Do(t, afterwards, "LOCK", "k", "you", "PX", "60000"); kit.Text(reply) < "1" ||
			kit.Text(reply) > ":" {
			return fmt.Errorf("LOCK: %v", reply)
		}
		return nil
	})
	kit.Must(t, client.Send([]byte("LOCK k2 me PX 60000\r\n")))
	kit.Must(t, before.Signal(syscall.SIGCONT))
	reply, err := client.Receive()
	if text := fmt.Sprint(reply); err != nil || !strings.HasPrefix(text, "NOQUORUM ") {
		t.Errorf("a proxy with the settings of before is told %s, %v", text, err)
	}
	kit.Soon(t, func() error { return wantUnlike(t, before, `key-prefix: the masters have "p:", this proxy has ""`) })
	checkMasters(t, urls).wantVerdict(t, 5, "other settings: your settings differ from those of the running proxies: ")
	kit.Must(t, before.Close())
	wantInit(t, initMasters(t, masters, "--new-settings", setting), 0,
		masters[0].Addr()+": votes only for proxies with these settings\n")
	kit.Soon(t, func() error {
		if got := checkMasters(t, urls, setting); got.code != 0 {
			return fmt.Errorf("check ends with %d:\n%s", got.code, got.stdout)
		}
		return nil
	})

	kit.Must(t, masters[2].Kill())
	said = initMasters(t, masters, "--new-settings", "--force")
	wantInit(t, said, 3, masters[2].Addr()+": connection refused\n")
	wantInit(t, said, 3, "not all masters were reached")
}

// wantUnlike returns an error unless the proxy refuses LOCK and names the differing setting.
func wantUnlike(t *testing.T, proxy *harness.Proxy, differs string) error {
	t.Helper()
	text := fmt.Sprint(kit.Do(t, kit.Connect(t, proxy), "LOCK", "k", "you", "PX", "60000"))
	if !strings.HasPrefix(text, "NOQUORUM 0 of 3 masters vote: 3 are in use by proxies with different settings") ||
		!strings.Contains(text, differs) {
		return fmt.Errorf("LOCK: %s", text)
	}
	return nil
}
