package suite

import (
	"context"
	"io"

	"github.com/urfave/cli/v2"
)

// Run runs one benchmark with these arguments. It prints tables to out and progress to log.
func Run(ctx context.Context, command *cli.Command, out, log io.Writer, args ...string) error {
	app := App(command)
	app.Writer, app.ErrWriter = out, log
	return app.RunContext(ctx, append([]string{app.Name, command.Name}, args...))
}

// ParseSettings parses the arguments of a benchmark with read, without running the benchmark.
func ParseSettings[T any](command *cli.Command, read func(*cli.Context) (T, error), args ...string) (set T, err error) {
	reading := Command(command.Name, "", command.Flags, func(c *cli.Context) (err error) {
		set, err = read(c)
		return err
	})
	err = Run(context.Background(), reading, io.Discard, io.Discard, args...)
	return set, err
}
