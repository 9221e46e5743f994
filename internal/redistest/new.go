package redistest

import (
	"errors"
	"testing"
)

// New starts a redis-server that ends with the test. A machine without one skips the test; see Absent.
func New(t testing.TB, opts Options) *Server {
	t.Helper()
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
