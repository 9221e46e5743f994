package suite

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"redlock-proxy/integration/harness"
)

// Command returns a benchmark with flags and without arguments. action prints tables to the App's
// Writer and progress to its ErrWriter. After action, the command removes the proxy that it built.
func Command(name, usage string, flags []cli.Flag, action cli.ActionFunc) *cli.Command {
	return &cli.Command{
		Name: name, Usage: usage, Flags: flags, HideHelpCommand: true, OnUsageError: usageError,
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return fmt.Errorf("unexpected argument %q", c.Args().First())
			}
			return errors.Join(action(c), harness.RemoveBuild())
		},
	}
}

// App returns the program with these benchmarks.
func App(commands ...*cli.Command) *cli.App {
	return &cli.App{
		Name:            "bench",
		Usage:           "benchmarks of locks and relayed commands on real servers",
		HideVersion:     true,
		HideHelpCommand: true,
		Commands:        commands,
		OnUsageError:    usageError,
		ExitErrHandler:  func(*cli.Context, error) {},
		Action:          noBenchmarkError,
	}
}

// usageError returns only the error of a flag, without the help.
func usageError(_ *cli.Context, err error, _ bool) error { return err }

// noBenchmarkError returns the error for a command line without a benchmark.
func noBenchmarkError(c *cli.Context) error {
	var names []string
	for _, command := range c.App.VisibleCommands() {
		names = append(names, command.Name)
	}
	return fmt.Errorf("say which benchmark: %s", strings.Join(names, ", "))
}

// The names of the flags that several benchmarks have.
const (
	flagRounds  = "rounds"
	flagSeconds = "seconds"
	flagProxy   = "proxy"
)

// RoundsFlag returns the flag for the number of rounds; Rounds reads it.
func RoundsFlag(preset int) cli.Flag {
	return &cli.IntFlag{Name: flagRounds, Value: preset, Usage: "rounds; the figures are their medians"}
}

// SecondsFlag returns the flag for the duration of each measurement; Window reads it.
func SecondsFlag(preset float64) cli.Flag {
	return &cli.Float64Flag{
		Name: flagSeconds, Value: preset, Usage: "measured seconds of each contender or state in each round",
	}
}

// ProxyFlag returns the flag for the program of the proxy; Binary reads it.
func ProxyFlag() cli.Flag {
	return &cli.StringFlag{Name: flagProxy, Usage: "program of the proxy; built when not given"}
}

// Rounds returns the value of RoundsFlag.
func Rounds(c *cli.Context) int { return c.Int(flagRounds) }

// Window returns the value of SecondsFlag.
func Window(c *cli.Context) time.Duration {
	return time.Duration(c.Float64(flagSeconds) * float64(time.Second))
}

// Binary returns the value of ProxyFlag; empty means to build the proxy.
func Binary(c *cli.Context) string { return c.String(flagProxy) }

// CommandLine returns the command line that repeats a run.
func CommandLine(c *cli.Context) string {
	line := "go run ./integration/bench " + c.Command.Name
	for _, name := range c.LocalFlagNames() {
		if set, isSwitch := c.Value(name).(bool); isSwitch && set {
			line += " -" + name
		} else {
			line += fmt.Sprintf(" -%s %v", name, c.Value(name))
		}
	}
	return line
}
