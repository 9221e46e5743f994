package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// platforms lists the released platforms. Each may link different packages.
var platforms = [][2]string{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}}

// module names a linked module and its folder.
type module struct{ Path, Version, Dir string }

// licenceFolders holds the folders of a module's linked packages, and their parents. Each folder
// may have a licence of its own.
type licenceFolders map[string]bool

// add adds a package's folder and its parents, up to the module's folder top.
func (l licenceFolders) add(folder, top string) {
	for l[folder] = true; folder != top && len(folder) > len(top); l[folder] = true {
		folder = filepath.Dir(folder)
	}
}

// linkedModule holds a module and the folders that may have its licences.
type linkedModule struct {
	module
	folders licenceFolders
}

// linkedModules returns the modules of the program in a folder, and Go itself, ordered by path.
func linkedModules(folder string) ([]linkedModule, error) {
	found := map[string]linkedModule{}
	for _, p := range platforms {
		list := exec.Command("go", "list", "-deps", "-json=Dir,Module", ".")
		list.Dir, list.Stderr = folder, os.Stderr
		list.Env = append(os.Environ(), "GOOS="+p[0], "GOARCH="+p[1], "CGO_ENABLED=0")
		out, err := list.Output()
		if err != nil {
			return nil, fmt.Errorf("go list for %s/%s: %w", p[0], p[1], err)
		}
		if err := gather(out, found); err != nil {
			return nil, err
		}
	}
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, err
	}
	golang := string(bytes.TrimSpace(goroot))
	found["Go"] = linkedModule{
		module{Path: "Go's standard library and runtime", Dir: golang}, licenceFolders{golang: true},
	}
	return slices.SortedFunc(maps.Values(found), func(a, b linkedModule) int {
		return cmp.Compare(a.Path, b.Path)
	}), nil
}

// gather adds the modules of packages to found, except the program's own. packages is the JSON
// output of go list.
func gather(packages []byte, found map[string]linkedModule) error {
	for decoder := json.NewDecoder(bytes.NewReader(packages)); ; {
		var p struct {
			Dir    string
			Module *struct {
				module
				Main    bool
				Replace *module
			}
		}
		switch err := decoder.Decode(&p); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case p.Module == nil || p.Module.Main: // the standard library, or the program
		case p.Module.Replace != nil:
			return fmt.Errorf("%s is replaced in go.mod: cannot tell which licence applies", p.Module.Path)
		default:
			m, known := found[p.Module.Path]
			if !known {
				m = linkedModule{p.Module.module, licenceFolders{}}
				found[p.Module.Path] = m
			}
			m.folders.add(p.Dir, p.Module.Dir)
		}
	}
}
