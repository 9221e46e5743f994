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
	backFlag   = "back"
	abortFlag  = "abort"
	othersFlag = "even-if-others"
)

func moveFlags() []cli.Flag {
	return append([]cli.Flag{
		&cli.BoolFlag{Name: backFlag, Usage: "move the locks from the masters to the upstream"},
		&cli.BoolFlag{Name: abortFlag, Usage: "end a move that is under way: the locks stay where they were"},
		&cli.BoolFlag{Name: othersFlag, Usage: "move even if clients other than proxies are connected to the upstream, and end their connections; none of them may take locks there"},
		&cli.StringFlag{Name: addrFlag, Value: conf.Default().Listen, Usage: "`ADDR`: the proxy, as host:port or URL (redis://, rediss:// or unix://)"},
	}, loginFlags()...)
}

// moveAction has a running proxy move the locks, and prints what it says.
func moveAction(c *cli.Context) error {
	words := []any{"PROXY", "MOVE"}
	for _, flag := range []struct{ name, word string }{{backFlag, "BACK"}, {abortFlag, "ABORT"}, {othersFlag, "EVENIFOTHERS"}} {
		if c.Bool(flag.name) {
			words = append(words, flag.word)
		}
	}
	if c.Bool(abortFlag) && len(words) > 3 {
		return fmt.Errorf("--%s goes with none of --%s and --%s", abortFlag, backFlag, othersFlag)
	}
	opts, err := proxyOptions(c, c.String(addrFlag))
	if err != nil {
		return err
	}
	client := redis.NewClient(opts)
	defer client.Close()
	stop := context.AfterFunc(c.Context, func() { _ = client.Close() }) // the proxy sees us leave, and gives up
	defer stop()
	lines, err := client.Do(context.WithoutCancel(c.Context), words...).StringSlice()
	switch {
	case c.Context.Err() != nil:
		return errors.New("interrupted: the proxy gives up, if it was not done already; redlock-proxy check says where the locks are")
	case err != nil && strings.HasPrefix(err.Error(), "NOQUORUM "):
		return coded(exitUnavailable, err)
	case err != nil:
		return errors.New(refusal(c.Context, opts, err))
	}
	for _, line := range lines {
		if _, err := fmt.Fprintln(c.App.Writer, line); err != nil {
			return err
		}
	}
	return nil
}
