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

// layered are the packages whose files use one another in one direction.
var layered = []string{"../proxy"}

// TestFilesPointOneWay: no file of these packages uses names of one that, directly or by others,
// uses its own.
func TestFilesPointOneWay(t *testing.T) {
	for _, folder := range layered {
		uses := usesOf(t, folder)
		if len(uses) < 20 {
			t.Errorf("%s: only %d files use others", folder, len(uses))
		}
		done := map[string]bool{}
		for _, file := range slices.Sorted(maps.Keys(uses)) {
			if circle := circleFrom(uses, done, nil, file); circle != nil {
				t.Fatalf("%s: a circle of files: %s", folder, strings.Join(circle, " uses "))
			}
		}
	}
}

// circleFrom is a circle that one comes to from a file; nil: there is none.
func circleFrom(uses map[string]map[string]bool, done map[string]bool, way []string, file string) []string {
	way = append(way, file)
	if at := slices.Index(way, file); at < len(way)-1 {
		return way[at:]
	}
	if done[file] {
		return nil
	}
	for _, other := range slices.Sorted(maps.Keys(uses[file])) {
		if circle := circleFrom(uses, done, way, other); circle != nil {
			return circle
		}
	}
	done[file] = true
	return nil
}

// usesOf are the files of a package with those that they use names of: functions, types, methods,
// fields, constants and variables.
func usesOf(t *testing.T, folder string) map[string]map[string]bool {
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
	checker := types.Config{Importer: emptyPackages{}, Error: func(error) {}} // what others declare is of no interest
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

// emptyPackages imports packages as if nothing was in them.
type emptyPackages struct{}

func (emptyPackages) Import(path string) (*types.Package, error) {
	pkg := types.NewPackage(path, path[strings.LastIndex(path, "/")+1:])
	pkg.MarkComplete()
	return pkg, nil
}
