package daemon

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"redlock-proxy/quorum"
)

// TestLogOfFailedReload checks that the log does not say that nothing was changed if a change of
// the masters may continue.
func TestLogOfFailedReload(t *testing.T) {
	for _, test := range []struct {
		err  error
		want string
	}{
		{errors.New("max-ttl"), "level=ERROR msg=\"the configuration was not reloaded: nothing was changed\""},
		{fmt.Errorf("master: %w", quorum.ErrUndecided), "level=WARN msg=\"the configuration was not reloaded yet: " +
			"a change of the masters may continue by itself\""},
	} {
		var text bytes.Buffer
		d := &daemon{log: slog.New(slog.NewTextHandler(&text, nil))}
		d.logNotReloaded("SIGHUP", test.err)
		if !strings.Contains(text.String(), test.want) {
			t.Errorf("logged %s, want %s", text.String(), test.want)
		}
	}
}
