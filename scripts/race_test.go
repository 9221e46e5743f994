// Package scripts has what the Makefile runs, and its tests.
package scripts

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// concurrent are packages that are of use only where there are several goroutines.
var concurrent = regexp.MustCompile(`^(sync|sync/atomic|testing/synctest|net|net/http|os/exec)$`)

// TestAloneIsAlone: what runs without the race detector starts no goroutine, and neither do its tests.
func TestAloneIsAlone(t *testing.T) {
	for _, folder := range named(t, "alone") {
		files, err := filepath.Glob(filepath.Join("..", folder, "*.go"))
		if err != nil || len(files) == 0 {
			t.Errorf("%s, named in scripts/race, has no files: %v", folder, err)
		}
		for _, file := range files {
			for _, found := range goroutines(t, file) {
				t.Errorf("%s, and scripts/race tests its package without the race detector", found)
			}
		}
	}
}

// TestLongAreThere: what scripts/race begins with exists.
func TestLongAreThere(t *testing.T) {
	for _, folder := range named(t, "long") {
		if files, err := filepath.Glob(filepath.Join("..", folder, "*_test.go")); err != nil || len(files) == 0 {
			t.Errorf("%s, named in scripts/race, has no tests: %v", folder, err)
		}
	}
}

// named are the words of a list in scripts/race.
func named(t *testing.T, list string) []string {
	t.Helper()
	text, err := os.ReadFile("race")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^` + list + `='([^']+)'$`).FindSubmatch(text)
	if found == nil {
		t.Fatalf("scripts/race has no list %s", list)
	}
	return strings.Fields(string(found[1]))
}

// goroutines tells where a file starts one, or imports what is for several.
func goroutines(t *testing.T, path string) []string {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	tell := func(node ast.Node, what string) {
		found = append(found, files.Position(node.Pos()).String()+" "+what)
	}
	for _, imported := range file.Imports {
		if name, _ := strconv.Unquote(imported.Path.Value); concurrent.MatchString(name) {
			tell(imported, "imports "+name)
		}
	}
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.GoStmt:
			tell(node, "starts a goroutine")
		case *ast.SelectorExpr:
			if name := node.Sel.Name; name == "Parallel" || name == "RunParallel" || name == "AfterFunc" {
				tell(node, "calls "+name)
			}
		}
		return true
	})
	return found
}
