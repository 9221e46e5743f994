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

// platforms are those that are released: each may link something else.
var platforms = [][2]string{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}}

// module is one that is linked, and its folder.
type module struct{ Path, Version, Dir string }

// legal are the folders of linked packages in a module, and those above them: any may have a
// licence of its own.
type legal map[string]bool

// add adds a package's folder and those above it, up to the module's.
func (l legal) add(folder, top string) {
	for l[folder] = true; folder != top && len(folder) > len(top); l[folder] = true {
		folder = filepath.Dir(folder)
	}
}

// use is a module of which something is linked.
type use struct {
	module
	folders legal
}

// linked are the modules of the program in a folder, and Go itself, in order.
func linked(folder string) ([]use, error) {
	found := map[string]use{}
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
	found["Go"] = use{module{Path: "Go's standard library and runtime", Dir: golang}, legal{golang: true}}
	return slices.SortedFunc(maps.Values(found), func(a, b use) int { return cmp.Compare(a.Path, b.Path) }), nil
}

// gather adds the modules of packages to what was found, but for the program's own.
func gather(packages []byte, found map[string]use) error {
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
		case p.Module == nil || p.Module.Main: // Go's, or ours
		case p.Module.Replace != nil:
			return fmt.Errorf("%s is replaced: whose licence holds?", p.Module.Path)
		default:
			m, known := found[p.Module.Path]
			if !known {
				m = use{p.Module.module, legal{}}
				found[p.Module.Path] = m
			}
			m.folders.add(p.Dir, p.Module.Dir)
		}
	}
}
