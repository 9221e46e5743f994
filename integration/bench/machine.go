package main

import (
	"fmt"
	"io"
	"strings"

	"redlock-proxy/integration/harness/figures"
)

// comparedModules are the libraries that take part.
func comparedModules() []string {
	return []string{"github.com/go-redsync/redsync/v4", "github.com/redis/go-redis/v9"}
}

// writeMachine prints the header of the report.
func writeMachine(w io.Writer, m figures.Machine, set settings, args []string) {
	fmt.Fprintf(w, "## Benchmark: lock and unlock, proxy beside redsync and one Redis\n\n")
	fmt.Fprint(w, m.Header(fmt.Sprintf("load generator, proxy and all %d masters", set.masters)))
	for _, path := range comparedModules() {
		fmt.Fprintf(w, ", %s %s", path, m.Version(path))
	}
	fmt.Fprintf(w, ".\nMedians of %d rounds, %v per contender and round. Made by `go run ./integration/bench%s`.\n",
		set.rounds, set.window, strings.Join(append([]string{""}, args...), " "))
}
