package daemon

import (
	"strings"
	"testing"

	"redlock-proxy/conf"
	"redlock-proxy/internal/certs"
)

// TestTrialKey checks that the key is a lock key if a glob allows a name that no client uses, and
// that the masters' key has their prefix.
func TestTrialKey(t *testing.T) {
	for _, c := range []struct{ globs, prefix, suffix string }{
		{"", "redlock-proxy:trial:", ""}, {"lock", "redlock-proxy:trial:", ""},
		{"lock lock:*", "lock:redlock-proxy:trial:", ""},
		{"a[bc]* *:lock", "redlock-proxy:trial:", ":lock"},
	} {
		cfg := conf.Config{LockKeys: strings.Fields(c.globs), KeyPrefix: "{app}"}
		for prefix, key := range map[string]string{
			"":      UpstreamAccess(cfg, &certs.Certificates{}).TrialKey,
			"{app}": MasterAccess(cfg, &certs.Certificates{}).TrialKey,
		} {
			if !strings.HasPrefix(key, prefix+c.prefix) || !strings.HasSuffix(key, c.suffix) {
				t.Errorf("%q: %q", c.globs, key)
			}
		}
	}
}
