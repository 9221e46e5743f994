package redistest

import (
	"errors"
	"path/filepath"
	"testing"
)

// TestRestoreFolder checks that RestoreFolder restores the data that the server had at CopyFolder,
// and nothing newer.
func TestRestoreFolder(t *testing.T) {
	server, folder := New(t, Options{ExtraArgs: DurableArgs()}), filepath.Join(t.TempDir(), "copy")
	want(t, dial(t, server.Addr()), "OK", "SET", "old", "v")
	check(t, server.CopyFolder(folder))
	want(t, dial(t, server.Addr()), "OK", "SET", "new", "v")
	check(t, server.RestoreFolder(folder))
	want(t, dial(t, server.Addr()), "v", "GET", "old")
	want(t, dial(t, server.Addr()), nil, "GET", "new")
	check(t, server.Close())
	if err := server.RestoreFolder(folder); !errors.Is(err, errClosed) {
		t.Errorf("a closed server: %v; want %v", err, errClosed)
	}
}
