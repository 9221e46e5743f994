// Command notice writes NOTICE: what is linked into redlock-proxy, under which licences, and their
// texts, which come from the modules themselves. Run it in scripts/tools; with -check it reports
// whether the file is stale instead.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

// root is the repository, and file what is written.
const (
	root = "../.."
	file = root + "/NOTICE"
)

func main() {
	check := flag.Bool("check", false, "report whether NOTICE is stale, and write nothing")
	flag.Parse()
	if err := run(*check); err != nil {
		fmt.Fprintln(os.Stderr, "notice:", err)
		os.Exit(1)
	}
}

func run(check bool) error {
	modules, err := linked(root)
	if err != nil {
		return err
	}
	var parts []part
	for _, m := range modules {
		of, err := partOf(m)
		if err != nil {
			return err
		}
		parts = append(parts, of)
	}
	text := render(parts)
	if !check {
		return os.WriteFile(file, text, 0o644)
	}
	current, err := os.ReadFile(file)
	if err == nil && !bytes.Equal(current, text) {
		err = fmt.Errorf("%s is stale: make notice", filepath.Base(file))
	}
	return err
}
