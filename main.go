// Command redlock-proxy is a Redis-protocol proxy that gives every Redis client
// distributed locks over N independent Redis masters. See README.md.
package main

import (
	"os"

	"redlock-proxy/cli"
)

// version is set by the linker.
var version = "dev"

func main() { os.Exit(cli.Main(version, os.Args)) }
