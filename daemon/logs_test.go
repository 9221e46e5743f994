package daemon

import (
	"bytes"
	"strings"
	"testing"

	"redlock-proxy/conf"
)

// TestAuditLogger checks that the log contains audit lines at every level of the log.
func TestAuditLogger(t *testing.T) {
	for _, level := range []string{"debug", "error"} {
		cfg := conf.Default()
		cfg.LogLevel = level
		var out bytes.Buffer
		l := &Logs{out: &out}
		if err := l.apply(cfg); err != nil {
			t.Fatal(err)
		}
		auditLogger(l.Logger()).Info("audit", "key", "k")
		if !strings.HasSuffix(out.String(), "level=INFO msg=audit key=k\n") {
			t.Errorf("%s: %q", level, out.String())
		}
	}
}
