// Command bench runs benchmarks on real servers, and prints Markdown tables:
//
//	go run ./integration/bench all       the main figures with goals, in one table
//	go run ./integration/bench locks     lock and unlock, compared with redsync and a single Redis
//	go run ./integration/bench faults    LOCK while two of five masters fail
//	go run ./integration/bench handover  one lock that passes between clients, beside redsync
//	go run ./integration/bench idle      memory per idle client
//	go run ./integration/bench relay     relaying to an upstream, compared with other proxies
//	go run ./integration/bench scripts   LOCK while clients run endless scripts
//
// --help lists the flags of each benchmark. Its package comment describes the measurement.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"redlock-proxy/integration/bench/all"
	"redlock-proxy/integration/bench/faults"
	"redlock-proxy/integration/bench/handover"
	"redlock-proxy/integration/bench/idle"
	"redlock-proxy/integration/bench/locks"
	"redlock-proxy/integration/bench/relay"
	"redlock-proxy/integration/bench/scripts"
	"redlock-proxy/integration/bench/suite"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process immediately
	app := suite.App(
		all.Command(), locks.Command(), faults.Command(), handover.Command(),
		idle.Command(), relay.Command(), scripts.Command(),
	)
	if err := app.RunContext(ctx, os.Args); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}
