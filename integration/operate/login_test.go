//go:build integration

package operate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// TestLoginOfTheUpstreamURL checks that clients without a login do not use the password in the
// upstream's URL unless a setting allows it. If the setting allows it, a warning is logged.
func TestLoginOfTheUpstreamURL(t *testing.T) {
	t.Parallel()
	masters, upstream := redistest.URLs(kit.StartMasters(t)), kit.StartRedis(t, "--requirepass", "secret")
	url := "redis://:secret@" + upstream.Addr()
	var flags []string
	for _, master := range masters {
		flags = append(flags, "--master", master)
	}
	const refusal = " has a login, which every client of the proxy would use; require a login with acl-file or client-password-file, " +
		"or set share-upstream-login: true, or remove the login from the URL, so that clients log in with their own"
	for _, command := range []string{"serve", "check"} {
		wantFailure(t, runProxy(t, append([]string{command, "--upstream", url}, flags...)...),
			`redlock-proxy: --upstream: "redis://:xxxxx@`+upstream.Addr()+`"`+refusal)
	}
	const warning = "share-upstream-login: every client that reaches "
	if got := runProxy(t, append([]string{"check", "--upstream", url, "--share-upstream-login", "--lock-keys",
		"lock:*"}, flags...)...); !strings.Contains(got.stdout, "warning: "+warning) {
		t.Errorf("check says %+v", got)
	}
	sharedProxy := kit.StartProxy(t, masters, "--upstream", url, "--share-upstream-login", "--lock-keys", "lock:*")
	kit.WantLogged(t, sharedProxy, warning)
	kit.WantPrefix(t, kit.Dial(t, sharedProxy.Addr()), "CONFIG GET requirepass", "[requirepass secret]")

	file := filepath.Join(t.TempDir(), "password")
	wantFailure(t, runProxy(t, append([]string{"serve", "--upstream", url, "--client-password-file", file}, flags...)...),
		"redlock-proxy: client-password-file: open "+file+": no such file or directory")
	kit.Must(t, os.WriteFile(file, []byte("sesame\n"), 0o600))
	proxy := kit.StartProxy(t, masters, "--upstream", url, "--client-password-file", file, "--lock-keys", "lock:*")
	client := kit.Dial(t, proxy.Addr())
	const noAuth = "NOAUTH Authentication required."
	for _, step := range [][2]string{
		{"CONFIG GET requirepass", noAuth}, {"LOCK k t PX 60000", noAuth}, {"DEL lock:a", noAuth},
		{"AUTH secret", "WRONGPASS"}, {"CONFIG GET requirepass", noAuth},
		{"AUTH sesame", "OK"}, {"CONFIG GET maxclients", "[maxclients"}, {"LOCK k t PX 60000", "5"},
		{"SET lock:a v PX 60000", "OK"},
	} {
		kit.WantPrefix(t, client, step[0], step[1])
	}
	if got := runProxy(t, "healthcheck", "--listen", proxy.Addr()); got != (outcome{}) {
		t.Errorf("healthcheck: %+v", got)
	}
	if strings.Contains(proxy.Log()+sharedProxy.Log(), "secret") || strings.Contains(proxy.Log(), "sesame") {
		t.Error("the log has a password")
	}
}
