package redistest

import (
	"errors"
	"os"
	"testing"
)

// New starts a redis-server that ends with the test. A machine without one skips the test; see
// Absent.
func New(t testing.TB, opts Options) *Server {
	t.Helper()
	if all := os.Getenv("REDLOCK_TEST_SERVERS"); opts.Clock != nil && opts.Version == "" && all != "" {
		t.Skipf("SKIPPED, NOT TESTED: %s cannot have a clock of its own: libfaketime goes with the libraries of this machine, not with those of another release", all)
	}
	server, err := Start(opts)
	if errors.Is(err, ErrNoRedis) || errors.Is(err, ErrNoVersion) {
		Absent(t, err.Error())
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
