// Package scripts has what the Makefile runs, and its tests.
package scripts

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestLongAreThere: what scripts/unit begins with exists.
func TestLongAreThere(t *testing.T) {
	text, err := os.ReadFile("unit")
	if err != nil {
		t.Fatal(err)
	}
	long := regexp.MustCompile(`(?m)^long='([^']+)'$`).FindSubmatch(text)
	if long == nil {
		t.Fatal("scripts/unit has no list long")
	}
	for _, folder := range strings.Fields(string(long[1])) {
		if files, err := filepath.Glob(filepath.Join("..", folder, "*_test.go")); err != nil || len(files) == 0 {
			t.Errorf("%s, named in scripts/unit, has no tests: %v", folder, err)
		}
	}
}
