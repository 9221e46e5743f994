package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/redis/go-redis/v9"
	"github.com/urfave/cli/v2"

	"redlock-proxy/cli/describe"
	"redlock-proxy/conf"
	"redlock-proxy/internal/escape"
)

// programName is the name of the program.
const programName = "redlock-proxy"

// Main runs a command line, which begins with the name of the program, and returns its exit code.
func Main(b Build, args []string) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if !isLockCommand(args) {
		handleSignals(cancel)
	}
	redis.SetLogger(discardLogger{}) // the cluster logs each change of a master's state itself
	app := newApp(b, os.Stdout, os.Stderr)
	err := app.RunContext(ctx, lockArguments(args))
	if err != nil && !errors.Is(err, errReported) {
		fmt.Fprintln(app.ErrWriter, "redlock-proxy:", err)
	}
	return exitCode(err)
}

// handleSignals calls shutDown at the first signal, and ends the process at the second.
func handleSignals(shutDown func()) {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		shutDown()
		<-signals
		os.Exit(1)
	}()
}

// discardLogger drops go-redis' own log lines.
type discardLogger struct{}

// Printf implements the logger interface of go-redis.
func (discardLogger) Printf(context.Context, string, ...any) {}

// newApp returns the program. It escapes everything that it prints, because texts may come from
// servers.
func newApp(b Build, stdout, stderr io.Writer) *cli.App {
	return &cli.App{
		Name:  programName,
		Usage: "distributed locks over N Redis masters, for every Redis client",
		Description: describe.Wrap("It speaks the Redis protocol: it keeps locks on independent Redis servers, "+
			"the masters, by majority, and sends every other command to the upstream, an ordinary Redis. "+
			"Every setting is a flag, an environment variable and a key of a YAML file; a flag beats the "+
			"environment, and the environment beats the file.", ""),
		Version:                   b.Version,
		Metadata:                  map[string]any{buildKey: b},
		HideVersion:               true,
		DisableSliceFlagSeparator: true, // a password may contain a comma
		Writer:                    escape.NewWriter(stdout),
		ErrWriter:                 escape.NewWriter(stderr),
		ExitErrHandler:            func(*cli.Context, error) {},
		OnUsageError:              usageError,
		Action:                    helpAction,
		Flags: []cli.Flag{&cli.BoolFlag{
			Name: "version", Aliases: []string{"v"}, Usage: "print version, commit and Go version",
			DisableDefaultText: true,
		}},
		Commands: withHelp(append([]*cli.Command{
			newCommand("serve", "serve clients", serveFlags(), serveAction),
			newCommand("demo", "run a demo: the proxy, its masters and an upstream in one process",
				demoFlags(), demoAction),
			newCommand("check", "inspect every master and the upstream, report problems, and say what to do next",
				checkFlags(), checkAction),
			newCommand("init", "initialize new masters, or set the wait after a majority lost its data",
				initFlags(), initAction),
			newCommand("healthcheck",
				"ask a running proxy whether it is alive or, with --ready, whether locks are available",
				healthFlags(), healthcheckAction),
			lockCommand(),
			newCommand("move", "move the locks from the upstream to the masters, or back, for all proxies",
				moveFlags(), moveAction),
			newCommand("version", "print version, commit and Go version", nil, versionAction),
		}, documentationCommands()...)),
	}
}

// withHelp gives each command its help text. Only the help of serve lists the settings; the other
// commands refer to it.
func withHelp(commands []*cli.Command) []*cli.Command {
	for _, c := range commands {
		settingsIn := "serve"
		if c.Name == settingsIn {
			settingsIn = ""
		}
		c.CustomHelpTemplate = describe.Help(programName, c, settingFlags(), settingsIn)
	}
	return commands
}

// newCommand returns a command that takes flags and no arguments.
func newCommand(name, usage string, flags []cli.Flag, action cli.ActionFunc) *cli.Command {
	return &cli.Command{
		Name: name, Usage: usage, Flags: flags, HideHelpCommand: true, OnUsageError: usageError,
		Action: func(c *cli.Context) error {
			switch {
			case c.Bool("version"): // the flag of the program, given before the command
				return versionAction(c)
			case c.Args().Present():
				return fmt.Errorf("unexpected argument %q%s", c.Args().First(), boolFlagHint(c))
			}
			return action(c)
		},
	}
}

// helpAction runs if the user gave no command, or an unknown command.
func helpAction(c *cli.Context) error {
	switch {
	case c.Bool("version"):
		return versionAction(c)
	case c.Args().Present():
		return unknownCommandError(c)
	}
	return cli.ShowAppHelp(c)
}

// settingFlags returns a flag for every setting.
func settingFlags() []cli.Flag {
	flags := []cli.Flag{&cli.StringFlag{Name: conf.FileFlag, Usage: "`FILE`: YAML file with settings"}}
	for _, s := range conf.Settings() {
		usage := fmt.Sprintf("%s (%s)", s.Usage, s.Env())
		for _, name := range s.Names() {
			flags = append(flags, settingFlag(s, name, usage))
		}
	}
	return flags
}

// settingFlag returns the flag of a setting by one of its names. A former name is hidden.
func settingFlag(s conf.Setting, name, usage string) cli.Flag {
	hidden := name != s.Name
	switch {
	case s.IsList:
		return &cli.StringSliceFlag{Name: name, Usage: usage, Hidden: hidden}
	case s.IsBool:
		return &cli.BoolFlag{Name: name, Usage: usage, DefaultText: s.Default, Hidden: hidden}
	default:
		return &cli.StringFlag{Name: name, Usage: usage, DefaultText: s.Default, Hidden: hidden}
	}
}

// settingsSource returns the settings that the user gave: flags, environment and file.
func settingsSource(c *cli.Context) conf.Source {
	given := map[string][]string{}
	for _, s := range conf.Settings() {
		for _, name := range s.Names() {
			switch {
			case !c.IsSet(name):
			case s.IsList:
				given[name] = c.StringSlice(name)
			case s.IsBool:
				given[name] = []string{strconv.FormatBool(c.Bool(name))}
			default:
				given[name] = []string{c.String(name)}
			}
		}
	}
	return conf.Source{Flags: given, Environ: os.Environ(), File: c.String(conf.FileFlag)}
}

// loadConfig reads and checks the configuration.
func loadConfig(c *cli.Context) (conf.Config, error) { return conf.Load(settingsSource(c)) }
