// Command redlock-proxy is a Redis-protocol proxy that gives every Redis client
// distributed locks over N independent Redis masters. See README.md.
package main

import (
	"os"

	"redlock-proxy/cli"
)

// version is set only in this line, which the Makefile and scripts/release read. docs/upgrade.md
// explains its numbers.
const version = "0.4.0-dev"

// commit names the commit of this build. The linker sets it.
var commit string

func main() { os.Exit(cli.Main(cli.Build{Version: version, Commit: commit}, os.Args)) }
