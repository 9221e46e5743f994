package redistest

import (
	"errors"
	"os"
	"testing"
)

// New starts a redis-server, and closes it when the test ends. If the program of the requested
// version is missing, New skips the test; see SkipMissing.
func New(t testing.TB, opts Options) *Server {
	t.Helper()
	if servers := os.Getenv("REDLOCK_TEST_SERVERS"); opts.Clock != nil && opts.Version == "" && servers != "" {
		t.Skipf("SKIPPED, NOT TESTED: %s cannot have a clock of its own: "+
			"libfaketime matches the libraries of this machine, not the libraries of another release", servers)
	}
	server, err := Start(opts)
	if errors.Is(err, ErrNoRedis) || errors.Is(err, ErrNoVersion) {
		SkipMissing(t, err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	return server
}
