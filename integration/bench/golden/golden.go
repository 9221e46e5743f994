// Package golden compares the reports of benchmarks with golden files, for tests.
package golden

import (
	"bytes"
	"flag"
	"os"
	"testing"
)

var rewriteFiles = flag.Bool("rewrite", false, "rewrite the golden files")

// Want fails the test unless got equals the text of a file. With the flag -rewrite, it first writes
// got to the file.
func Want(t *testing.T, path string, got []byte) {
	t.Helper()
	if *rewriteFiles {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("differs from %s (go test -rewrite writes it anew):\n%s", path, got)
	}
}
