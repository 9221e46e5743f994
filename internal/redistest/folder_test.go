package redistest

import (
	"errors"
	"path/filepath"
	"testing"
)

// TestRestoreDir checks that RestoreDir restores the data that the server had at CopyDir,
// and nothing newer.
func TestRestoreDir(t *testing.T) {
	server, folder := New(t, Options{ExtraArgs: DurableArgs()}), filepath.Join(t.TempDir(), "copy")
	want(t, dial(t, server.Addr()), "OK", "SET", "old", "v")
	check(t, server.CopyDir(folder))
	want(t, dial(t, server.Addr()), "OK", "SET", "new", "v")
	check(t, server.RestoreDir(folder))
	want(t, dial(t, server.Addr()), "v", "GET", "old")
	want(t, dial(t, server.Addr()), nil, "GET", "new")
	check(t, server.Close())
	if err := server.RestoreDir(folder); !errors.Is(err, errClosed) {
		t.Errorf("a closed server: %v; want %v", err, errClosed)
	}
}
