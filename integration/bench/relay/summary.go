package relay

import (
	"context"
	"io"

	"redlock-proxy/integration/bench/figures"
)

// sharedConnections is how many connections clients share of whom that is measured.
const sharedConnections = 8

// Summary is the speed that goals are set for, with so many requests of a run at -P 1 and the command line's other settings as they are
// without flags: of clients that have a connection to the upstream each, and of clients that share. Progress goes to log. An empty
// binary has the proxy built.
func Summary(ctx context.Context, binary string, rounds, requests int, log io.Writer) (lines []figures.Line, err error) {
	for _, connections := range []int{0, sharedConnections} {
		set := settings{
			rounds: rounds, requests: requests, clients: usualClients, threads: usualThreads, shared: connections, binary: binary, contenders: contenderNames(),
		}
		if err = withFleet(ctx, set, func(f *fleet) error {
			all, err := speedRounds(ctx, f, set, log)
			lines = append(lines, speedLines(all, connections > 0)...)
			return err
		}); err != nil {
			return lines, err
		}
	}
	return lines, nil
}
