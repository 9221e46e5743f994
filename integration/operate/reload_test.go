//go:build integration

package operate

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"redlock-proxy/integration/harness"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// reloadRig is a proxy with a configuration file, five masters, and an upstream with a password.
type reloadRig struct {
	t        *testing.T
	file     string
	settings map[string]string // as written in the file
	masters  []*redistest.Server
	upstream *redistest.Server
	proxy    *harness.Proxy
	operator *redistest.Client // connects before the first reload
}

// startReloadRig starts a reloadRig. The given settings override the default settings.
func startReloadRig(t *testing.T, settings map[string]string) *reloadRig {
	t.Helper()
	r := &reloadRig{t: t, file: filepath.Join(t.TempDir(), "conf.yaml"), masters: kit.StartMasters(t),
		upstream: kit.StartRedis(t, "--requirepass", "one")}
	r.settings = map[string]string{
		"listen": "127.0.0.1:0", "fresh-start": "true", "master-timeout": "5s", "master": yamlList(redistest.URLs(r.masters)),
		"upstream": "redis://:one@" + r.upstream.Addr(), "share-upstream-login": "true", "lock-keys": `["lock:*"]`,
	}
	maps.Copy(r.settings, settings)
	r.write()
	r.proxy = kit.StartConfigured(t, r.file)
	r.operator = kit.Connect(t, r.proxy)
	return r
}

func yamlList(values []string) string { return `["` + strings.Join(values, `", "`) + `"]` }

// write writes the settings into the file, in one step.
func (r *reloadRig) write() {
	r.t.Helper()
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(r.settings)) {
		fmt.Fprintf(&text, "%s: %s\n", name, r.settings[name])
	}
	r.replace(text.String())
}

// replace replaces the text of the file.
func (r *reloadRig) replace(text string) {
	r.t.Helper()
	kit.Must(r.t, kit.ReplaceFile(r.file, text))
}

// set changes settings, given as alternating names and values, and reloads. It fails the test
// unless exactly these settings change and no setting needs a restart.
func (r *reloadRig) set(pairs ...string) {
	r.t.Helper()
	var want []string
	for i := 0; i < len(pairs); i += 2 {
		r.settings[pairs[i]] = pairs[i+1]
		want = append(want, pairs[i])
	}
	r.write()
	changed, pending := r.reload(r.operator)
	if got := settingsIn(changed); !sameWords(got, want) || len(pending) > 0 {
		r.t.Errorf("%v: changed %q, pending %q", pairs, changed, pending)
	}
}

// reload sends PROXY RELOAD, and fails the test unless it succeeds.
func (r *reloadRig) reload(client *redistest.Client) (changed, pending []string) {
	r.t.Helper()
	got := kit.Do(r.t, client, "PROXY", "RELOAD")
	reply, _ := got.([]any)
	if len(reply) != 4 || reply[0] != "changed" || reply[2] != "needs_restart" {
		r.t.Fatalf("PROXY RELOAD: %v", got)
	}
	return stringItems(reply[1]), stringItems(reply[3])
}

// awaitLog waits until the log contains each of the parts.
func (r *reloadRig) awaitLog(parts ...string) {
	r.t.Helper()
	for _, part := range parts {
		if _, err := r.proxy.WaitLog(part, kit.WaitLimit); err != nil {
			r.t.Errorf("the log has no %q", part)
		}
	}
}

func stringItems(array any) (items []string) {
	for _, item := range array.([]any) {
		items = append(items, item.(string))
	}
	return items
}

// settingsIn returns the names of the settings in the lines of a reply.
func settingsIn(lines []string) (names []string) {
	for _, line := range lines {
		name, _, _ := strings.Cut(line, ":")
		names = append(names, name)
	}
	return names
}

func sameWords(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// TestReload checks that PROXY RELOAD and SIGHUP have the same effect. The reply and the log name
// the changed settings and the settings that need a restart, and show no password. An invalid
// configuration changes nothing, and its error contains the position.
func TestReload(t *testing.T) {
	t.Parallel()
	r := startReloadRig(t, map[string]string{"max-ttl": "1h"})
	const longLock = "LOCK k t PX 7200000"
	kit.WantPrefix(t, r.operator, longLock, "ERR")
	changed, pending := r.reload(r.operator)
	if len(changed)+len(pending) > 0 {
		t.Errorf("without a change: %q, %q", changed, pending)
	}
	r.settings["max-ttl"], r.settings["listen"] = "3h", "127.0.0.1:1"
	r.write()
	changed, pending = r.reload(r.operator)
	if fmt.Sprint(changed) != `[max-ttl: "1h" -> "3h"]` ||
		fmt.Sprint(pending) != `[listen: "127.0.0.1:0" -> "127.0.0.1:1"]` {
		t.Errorf("changed %q, pending %q", changed, pending)
	}
	kit.WantPrefix(t, r.operator, longLock, "7")
	r.awaitLog(`level=INFO msg="configuration reloaded" by="PROXY RELOAD from 127.0.0.1:`,
		`changed="max-ttl: \"1h\" -> \"3h\""`,
		`level=WARN msg="changed settings need a restart" by="PROXY RELOAD from 127.0.0.1:`,
		`settings="listen: \"127.0.0.1:0\" -> \"127.0.0.1:1\""`)

	for _, invalid := range []struct{ text, want string }{
		{"max-ttl: 12x\n", r.file + `:1: max-ttl: "12x" is not a duration`},
		{"max-tll: 1h\n", r.file + ":1: max-tll: unknown setting (did you mean max-ttl?)"},
		{"max-ttl: [\n", r.file + ":"},
		{"max-ttl: 1h\n", "master: no master is given"},
		{"master: redis://:hunter2@a\n", r.file + `:1: master: "redis://:xxxxx@a" is one value`},
		{"", "master: no master is given"},
	} {
		r.replace(invalid.text)
		kit.WantPrefix(t, r.operator, "PROXY RELOAD", "ERR the configuration was not reloaded: "+invalid.want)
		kit.WantPrefix(t, r.operator, longLock, "nil")
	}
	r.settings["tls-cert"], r.settings["tls-key"], r.settings["max-ttl"] = "/none", "/none", "1m"
	r.write()
	kit.WantPrefix(t, r.operator, "PROXY RELOAD", "ERR the configuration was not reloaded: tls-cert: open /none: no such file or directory")
	kit.Must(t, os.Remove(r.file))
	kit.WantPrefix(t, r.operator, "PROXY RELOAD", "ERR the configuration was not reloaded: --config: open "+r.file+": no such file or directory")
	kit.WantPrefix(t, r.operator, longLock, "nil")
	r.awaitLog(`level=ERROR msg="the configuration was not reloaded: nothing was changed" by="PROXY RELOAD from 127.0.0.1:`)

	delete(r.settings, "tls-cert")
	delete(r.settings, "tls-key")
	r.write()
	kit.Must(t, r.proxy.Signal(syscall.SIGHUP))
	_, err := r.proxy.WaitLog(`msg="configuration reloaded" by=SIGHUP changed="max-ttl: \"3h\" -> \"1m\""`,
		kit.WaitLimit)
	kit.Must(t, err)
	kit.WantPrefix(t, r.operator, longLock, "ERR invalid expire time in 'lock' command: the TTL exceeds max-ttl (60000 ms)")
	if log := r.proxy.Log(); strings.Contains(log, "hunter2") || strings.Contains(log, ":one@") {
		t.Error("the log has a password")
	}
}

// TestReloadPermissions checks that a user of the upstream may reload the proxy only if the user
// may change the settings of the upstream.
func TestReloadPermissions(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	r := startReloadRig(t, nil)
	kit.Must(t, r.doAtUpstream("ACL", "SETUSER", "app", "on", ">app", "~*", "+@all", "-@admin"))
	kit.Must(t, r.doAtUpstream("ACL", "SETUSER", "ops", "on", ">ops", "+@connection", "+acl|whoami", "+multi",
		"+discard", "+config|set"))
	before := kit.Do(t, r.operator, "CONFIG", "GET", "*")
	app, ops := kit.Connect(t, r.proxy), kit.Connect(t, r.proxy)
	kit.WantPrefix(t, app, "AUTH app app", "OK")
	kit.WantPrefix(t, ops, "AUTH ops ops", "OK")
	kit.WantPrefix(t, app, "PROXY RELOAD", "NOPERM")
	kit.WantPrefix(t, r.operator, "PROXY RELOAD now", "ERR wrong number of arguments for 'proxy|reload' command")
	kit.WantPrefix(t, app, "LOCK k t PX 60000", "5")
	kit.WantPrefix(t, ops, "LOCK l t PX 60000", "NOPERM")
	r.reload(ops)
	if after := kit.Do(t, r.operator, "CONFIG", "GET", "*"); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Error("the question of the right changed the upstream's settings")
	}
	r.awaitLog(`by user \"ops\"`)
}

// TestReloadOfBlockingFile checks that a FIFO in place of a file is refused immediately. The next
// reload works when the file is right again.
func TestReloadOfBlockingFile(t *testing.T) {
	t.Parallel()
	users := filepath.Join(t.TempDir(), "users.acl")
	kit.Must(t, os.WriteFile(users, []byte("user default on nopass ~* &* +@all\n"), 0o600))
	r := startReloadRig(t, map[string]string{"acl-file": users, "share-upstream-login": "false"})
	for _, file := range []string{users, r.file} {
		kit.Must(t, os.Rename(file, file+".right"))
		kit.Must(t, syscall.Mkfifo(file, 0o600))
		kit.WantPrefix(t, r.operator, "PROXY RELOAD", "ERR the configuration was not reloaded: ")
		if reply := kit.ReplyText(kit.Do(t, r.operator, "PROXY", "RELOAD")); !strings.HasSuffix(reply,
			"read "+file+": not a regular file; name a file, or a link to one") {
			t.Error(reply)
		}
		kit.Must(t, os.Remove(file))
		kit.Must(t, os.Symlink(file+".right", file)) // as Kubernetes mounts files
		r.reload(r.operator)
	}
}

// doAtUpstream sends a command to the upstream.
func (r *reloadRig) doAtUpstream(command ...string) error {
	r.t.Helper()
	client := kit.Dial(r.t, r.upstream.Addr())
	kit.WantPrefix(r.t, client, "AUTH "+upstreamPassword(r.settings["upstream"]), "OK")
	if refusal, isError := kit.Do(r.t, client, command...).(redistest.RespError); isError {
		return refusal
	}
	return nil
}

func upstreamPassword(url string) string {
	_, rest, _ := strings.Cut(url, "://:")
	password, _, _ := strings.Cut(rest, "@")
	return password
}

// TestMetricsOfReloads checks that the metrics show the result of the last reload, and the last
// success.
func TestMetricsOfReloads(t *testing.T) {
	t.Parallel()
	const successMetric, timeMetric = "redlock_config_last_reload_successful", "redlock_config_last_reload_success_timestamp_seconds"
	r := startReloadRig(t, map[string]string{"admin": "127.0.0.1:0"})
	addr := adminAddr(t, r.proxy)
	before := metricsOf(t, addr)
	if now := float64(time.Now().Unix()); before[successMetric] != 1 || before[timeMetric] < now-600 || before[timeMetric] > now+1 {
		t.Errorf("after the start: %v, at %v", before[successMetric], before[timeMetric])
	}
	r.settings["max-ttl"] = "no time"
	r.write()
	if _, isError := kit.Do(t, r.operator, "PROXY", "RELOAD").(redistest.RespError); !isError {
		t.Error("a broken configuration was taken")
	}
	if got := metricsOf(t, addr); got[successMetric] != 0 || got[timeMetric] != before[timeMetric] {
		t.Errorf("after one that was refused: %v, at %v", got[successMetric], got[timeMetric])
	}
	time.Sleep(1100 * time.Millisecond) // the metric is in whole seconds
	r.set("max-ttl", "1h")
	if got := metricsOf(t, addr); got[successMetric] != 1 || got[timeMetric] <= before[timeMetric] {
		t.Errorf("after a good one: %v, at %v; before %v", got[successMetric], got[timeMetric], before[timeMetric])
	}
}
