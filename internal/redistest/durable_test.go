package redistest

import (
	"errors"
	"testing"
)

// TestRestartWithData checks that after a crash, a durable server has all data that it confirmed. A
// server without an append-only file has lost its data.
func TestRestartWithData(t *testing.T) {
	for _, test := range []struct {
		name      string
		args      []string
		wantValue any
	}{{"durable", DurableArgs(), "v"}, {"not durable", nil, nil}} {
		t.Run(test.name, func(t *testing.T) {
			server := New(t, Options{ExtraArgs: test.args})
			want(t, dial(t, server.Addr()), "OK", "SET", "k", "v", "PX", "600000")
			check(t, server.Kill())
			check(t, server.RestartWithData())
			want(t, dial(t, server.Addr()), test.wantValue, "GET", "k")
			check(t, server.Close())
			if err := server.RestartWithData(); !errors.Is(err, errClosed) {
				t.Errorf("a closed server: %v; want %v", err, errClosed)
			}
		})
	}
}
