package relay

import (
	"context"
	"io"

	"redlock-proxy/integration/bench/figures"
)

// Summary measures the speed, with the given number of requests of a run at -P 1 and the defaults
// of the other flags. It returns the ratios with goals and prints progress to log. If binary is
// empty, it builds the proxy.
func Summary(
	ctx context.Context, binary string, rounds, requests int, log io.Writer,
) (lines []figures.Line, err error) {
	set := settings{
		rounds: rounds, requests: requests, clients: defaultClients, threads: defaultThreads,
		binary: binary, contenders: contenderNames(),
	}
	err = withFleet(ctx, set, func(f *fleet) error {
		all, err := runSpeedRounds(ctx, f, set, log)
		lines = speedLines(set, all)
		return err
	})
	return lines, err
}
