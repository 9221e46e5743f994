package users

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLoadFailures checks that the errors of ACL LOAD have Redis' wording.
func TestLoadFailures(t *testing.T) {
	dir := t.TempDir()
	large := filepath.Join(dir, "large.acl")
	if err := os.WriteFile(large, []byte(strings.Repeat("\n", maxFile+1)), 0o600); err != nil {
		t.Fatal(err)
	}
	missing := filepath.Join(dir, "missing.acl")
	for path, want := range map[string]string{
		missing: "Error loading ACLs, opening file '" + missing + "': No such file or directory",
		large:   " bytes. WARNING: ACL errors detected, no change to the previously active ACL rules was performed",
	} {
		u := &Users{path: path}
		if err := u.Reload(); err == nil || !strings.HasSuffix(loadFailure(err), want) {
			t.Errorf("%s: %v; want an error that ends with %q", path, err, want)
		}
	}
}
