package cell_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"redlock-proxy/quorum/cell"
)

// TestAllScriptsAreListed checks that a proxy can load every script of this package beforehand.
func TestAllScriptsAreListed(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	made := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		made += strings.Count(string(text), "= luascript.New(")
	}
	if listed := len(cell.Scripts()); listed != made {
		t.Errorf("Scripts lists %d scripts; the package has %d", listed, made)
	}
}
