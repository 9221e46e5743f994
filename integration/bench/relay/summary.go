package relay

import (
	"context"
	"io"

	"redlock-proxy/integration/bench/figures"
)

// Summary is the speed that goals are set for, with so many requests of a run at -P 1 and the
// command line's other settings as they are without flags. Progress goes to log. An empty binary
// has the proxy built.
func Summary(ctx context.Context, binary string, rounds, requests int, log io.Writer) (lines []figures.Line, err error) {
	set := settings{rounds: rounds, requests: requests, clients: usualClients, threads: usualThreads, binary: binary, contenders: contenderNames()}
	err = withFleet(ctx, set, func(f *fleet) error {
		all, err := speedRounds(ctx, f, set, log)
		lines = speedLines(set, all)
		return err
	})
	return lines, err
}
