package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// acyclicFolders lists the packages whose files must not depend on each other in a cycle.
var acyclicFolders = []string{"../proxy"}

// TestFileCycles checks that the files of the packages in acyclicFolders do not depend on
// each other in a cycle.
func TestFileCycles(t *testing.T) {
	for _, folder := range acyclicFolders {
		uses := fileUses(t, folder)
		if len(uses) < 20 {
			t.Errorf("%s: only %d files use names of another file", folder, len(uses))
		}
		done := map[string]bool{}
		for _, file := range slices.Sorted(maps.Keys(uses)) {
			if cycle := findCycle(uses, done, nil, file); cycle != nil {
				t.Fatalf("%s: a cycle of files: %s", folder, strings.Join(cycle, " uses "))
			}
		}
	}
}

// findCycle returns a cycle that is reachable from a file, or nil. uses holds the files on which
// each file depends. path holds the files on the way to this file, and done the files from which no
// cycle is reachable.
func findCycle(uses map[string]map[string]bool, done map[string]bool, path []string, file string) []string {
	path = append(path, file)
	if at := slices.Index(path, file); at < len(path)-1 {
		return path[at:]
	}
	if done[file] {
		return nil
	}
	for _, other := range slices.Sorted(maps.Keys(uses[file])) {
		if cycle := findCycle(uses, done, path, other); cycle != nil {
			return cycle
		}
	}
	done[file] = true
	return nil
}

// fileUses returns, for each file of a package, the files on which it depends. A file depends on
// another file if it uses a function, type, method, field, constant or variable that the other file
// declares.
func fileUses(t *testing.T, folder string) map[string]map[string]bool {
	t.Helper()
	paths, err := filepath.Glob(folder + "/*.go")
	if err != nil {
		t.Fatal(err)
	}
	set, files := token.NewFileSet(), []*ast.File(nil)
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	// Imported names do not resolve, so Check returns errors, which do not matter.
	checker := types.Config{Importer: emptyPackages{}, Error: func(error) {}}
	own, _ := checker.Check(folder, set, files, info)
	uses := map[string]map[string]bool{}
	for name, used := range info.Uses {
		from, to := set.Position(name.Pos()).Filename, set.Position(used.Pos()).Filename
		if used.Pkg() != own || from == to {
			continue
		}
		if uses[from] == nil {
			uses[from] = map[string]bool{}
		}
		uses[from][to] = true
	}
	return uses
}

// emptyPackages implements types.Importer. It returns an empty package for each path.
type emptyPackages struct{}

func (emptyPackages) Import(path string) (*types.Package, error) {
	pkg := types.NewPackage(path, path[strings.LastIndex(path, "/")+1:])
	pkg.MarkComplete()
	return pkg, nil
}
