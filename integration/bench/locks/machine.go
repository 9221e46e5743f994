package locks

import (
	"fmt"
	"io"

	"redlock-proxy/integration/bench/figures"
)

// comparedModules returns the paths of the compared libraries.
func comparedModules() []string {
	return []string{"github.com/go-redsync/redsync/v4", "github.com/redis/go-redis/v9"}
}

func writeMachine(w io.Writer, m figures.Machine, set settings) {
	fmt.Fprintf(w, "## Benchmark: lock and unlock, proxy beside redsync and one Redis\n\n")
	fmt.Fprint(w, m.Header(fmt.Sprintf("load generator, proxy and all %d masters", set.masters)))
	for _, path := range comparedModules() {
		fmt.Fprintf(w, ", %s %s", path, m.Version(path))
	}
	fmt.Fprintf(w, ".\nMedians of %d rounds, %v per contender and round. Made by `%s`.\n",
		set.rounds, set.window, set.commandLine)
}
