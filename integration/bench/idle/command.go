package idle

import (
	"errors"
	"fmt"
	"strconv"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"redlock-proxy/integration/bench/suite"
	"redlock-proxy/integration/harness"
)

// Command returns the benchmark of idle clients.
func Command() *cli.Command {
	return suite.Command("idle", "the proxy's memory for each idle client", []cli.Flag{
		&cli.IntFlag{Name: "clients", Value: 10_000, Usage: "number of clients"},
		&cli.DurationFlag{Name: "settle", Value: 10 * time.Second, Usage: "pause before the memory is read"},
		suite.ProxyFlag(),
	}, run)
}

type settings struct {
	clients    int
	settleTime time.Duration
	binary     string // path of the proxy; empty: build it
}

// spareDescriptors is the number of file descriptors that a process needs in addition to the
// descriptors of the clients.
const spareDescriptors = 200

func run(c *cli.Context) (err error) {
	set := settings{clients: c.Int("clients"), settleTime: c.Duration("settle"), binary: suite.Binary(c)}
	if set.clients < 1 || set.settleTime < 0 {
		return errors.New("clients must be positive, settle not negative")
	}
	if err := raiseFileLimit(uint64(set.clients + spareDescriptors)); err != nil {
		return err
	}
	f, err := suite.StartFleet(5)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	proxy, err := f.StartProxy(harness.ProxyOptions{
		Binary: set.binary, Args: []string{"--max-clients", strconv.Itoa(set.clients)},
	})
	if err != nil {
		return err
	}
	return measure(c.Context, set, proxy, c.App.Writer)
}

// raiseFileLimit raises the limit of open files, which children inherit.
func raiseFileLimit(n uint64) error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	if limit.Cur >= n {
		return nil
	}
	limit.Cur, limit.Max = n, max(n, limit.Max) // only root may raise Max
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("%d open files are needed (ulimit -Hn %d): %w", n, n, err)
	}
	return nil
}
