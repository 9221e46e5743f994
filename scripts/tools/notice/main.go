// Command notice writes NOTICE: the modules that redlock-proxy links, their licences, and the texts
// of the licences, which it reads from the modules. Run it in scripts/tools. With -check, it only
// reports whether the file is stale.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

// root is the folder of the repository, and file the output.
const (
	root = "../.."
	file = root + "/NOTICE"
)

func main() {
	check := flag.Bool("check", false, "only report whether NOTICE is stale")
	flag.Parse()
	if err := run(*check); err != nil {
		fmt.Fprintln(os.Stderr, "notice:", err)
		os.Exit(1)
	}
}

func run(check bool) error {
	modules, err := linkedModules(root)
	if err != nil {
		return err
	}
	var parts []part
	for _, m := range modules {
		part, err := partOf(m)
		if err != nil {
			return err
		}
		parts = append(parts, part)
	}
	text := render(parts)
	if !check {
		return os.WriteFile(file, text, 0o644)
	}
	current, err := os.ReadFile(file)
	if err == nil && !bytes.Equal(current, text) {
		err = fmt.Errorf("%s is stale; run make notice", filepath.Base(file))
	}
	return err
}
