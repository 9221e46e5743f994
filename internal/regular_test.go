//go:build unix

package internal

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"redlock-proxy/internal/regular"
)

// TestRegularFiles checks that Read reads regular files, and links to them, up to the limit. Read
// refuses a FIFO, a device and a directory without waiting.
func TestRegularFiles(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	for _, err := range []error{
		os.WriteFile(path("file"), []byte("text"), 0o600), os.Symlink("file", path("link")),
		syscall.Mkfifo(path("fifo"), 0o600), os.Symlink("fifo", path("link to fifo")), os.Symlink(dir, path("folder")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"file", "link"} {
		if content, err := regular.Read(path(name), 4); err != nil || string(content) != "text" {
			t.Errorf("%s: %q, %v", name, content, err)
		}
		if _, err := regular.Read(path(name), 3); err == nil || !strings.HasSuffix(err.Error(), name+": it is larger than 3 bytes") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{path("fifo"), path("link to fifo"), path("folder"), "/dev/zero"} {
		if _, err := regular.Read(name, 4); err == nil || err.Error() != "read "+name+": not a regular file; name a file, or a link to one" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := regular.Read(path("absent"), 4); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
