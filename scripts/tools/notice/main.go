// Command notice writes NOTICE: the modules that redlock-proxy links, their licences, and the texts
// of the licences, which it reads from the modules. Run it in scripts/tools. With -check, notice
// only reports whether NOTICE is stale.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

// repositoryRoot is the folder of the repository, and noticeFile the output.
const (
	repositoryRoot = "../.."
	noticeFile     = repositoryRoot + "/NOTICE"
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
	modules, err := linkedModules(repositoryRoot)
	if err != nil {
		return err
	}
	var sections []section
	for _, m := range modules {
		s, err := sectionOf(m)
		if err != nil {
			return err
		}
		sections = append(sections, s)
	}
	text := render(sections)
	if !check {
		return os.WriteFile(noticeFile, text, 0o644)
	}
	current, err := os.ReadFile(noticeFile)
	if err == nil && !bytes.Equal(current, text) {
		err = fmt.Errorf("%s is stale; run make notice", filepath.Base(noticeFile))
	}
	return err
}
