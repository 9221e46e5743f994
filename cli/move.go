package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/urfave/cli/v2"

	"redlock-proxy/conf"
)

// The flags of move.
const (
	backFlag         = "back"
	abortFlag        = "abort"
	evenIfOthersFlag = "even-if-others"
)

func moveFlags() []cli.Flag {
	return append([]cli.Flag{
		&cli.BoolFlag{Name: backFlag, Usage: "move the locks from the masters to the upstream"},
		&cli.BoolFlag{Name: abortFlag, Usage: "abort a move that is under way: the locks stay where they were"},
		&cli.BoolFlag{Name: evenIfOthersFlag, Usage: "move even if clients other than proxies are connected to the " +
			"upstream, and end their connections; none of these clients may take locks there"},
		&cli.StringFlag{Name: addrFlag, Value: conf.Default().Listen,
			Usage: "`ADDR`: the proxy, as host:port or URL (redis://, rediss:// or unix://)"},
	}, loginFlags()...)
}

// moveAction makes a running proxy move the locks, and prints the reply and the next step.
func moveAction(c *cli.Context) error {
	words := []any{"PROXY", "MOVE"}
	for _, flag := range []struct{ name, word string }{
		{backFlag, "BACK"}, {abortFlag, "ABORT"}, {evenIfOthersFlag, "EVENIFOTHERS"},
	} {
		if c.Bool(flag.name) {
			words = append(words, flag.word)
		}
	}
	if c.Bool(abortFlag) && len(words) > 3 {
		return fmt.Errorf("--%s cannot be combined with --%s or --%s", abortFlag, backFlag, evenIfOthersFlag)
	}
	opts, err := proxyOptions(c, c.String(addrFlag))
	if err != nil {
		return err
	}
	sendOnce(opts)
	client := redis.NewClient(opts)
	defer client.Close()
	// If the operator interrupts this command, the proxy notices the closed connection, and aborts
	// the move.
	stop := context.AfterFunc(c.Context, func() { _ = client.Close() })
	defer stop()
	lines, err := client.Do(context.WithoutCancel(c.Context), words...).StringSlice()
	switch {
	case c.Context.Err() != nil:
		return errors.New("interrupted: the proxy aborts the move unless it is complete; run redlock-proxy check " +
			"to see the location of the locks")
	case err != nil && strings.HasPrefix(err.Error(), "NOQUORUM "):
		return withCode(exitUnavailable, err)
	case err != nil:
		return errors.New(refusalText(c.Context, opts, err))
	}
	for _, line := range append(lines, "next: "+nextStepAfterMove(c)) {
		if _, err := fmt.Fprintln(c.App.Writer, line); err != nil {
			return err
		}
	}
	return nil
}

// sendOnce makes go-redis send each command once, and wait as long as the context allows.
func sendOnce(opts *redis.Options) {
	opts.Protocol = 2
	opts.DisableIdentity = true
	opts.MaxRetries = -1
	opts.DialerRetries = 1
	opts.ReadTimeout, opts.WriteTimeout = -1, -1
	opts.ContextTimeoutEnabled = true
	opts.PoolSize = 1
}

// nextStepAfterMove returns the step that the operator should take after a move that succeeded.
func nextStepAfterMove(c *cli.Context) string {
	const advice = "redlock-proxy check shows where the locks are; "
	switch {
	case c.Bool(abortFlag):
		return advice + "redlock-proxy move starts the move again"
	case c.Bool(backFlag):
		return advice + "to stop using the proxies, point all clients at the upstream first"
	default:
		return advice + "leave out move-from-upstream at the next restart of the proxies"
	}
}
