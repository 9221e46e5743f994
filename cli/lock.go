package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/urfave/cli/v2"

	"redlock-proxy/conf"
	"redlock-proxy/daemon"
	"redlock-proxy/internal/certs"
	"redlock-proxy/internal/escape"
	"redlock-proxy/internal/lease"
	"redlock-proxy/internal/scheme"
	"redlock-proxy/quorum/master"
)

// lockCommandName is the name of the command that holds a lock.
const lockCommandName = "lock"

// passwordEnv names the environment variable with the password. redis-cli reads it, too.
const passwordEnv = "REDISCLI_AUTH"

func lockCommand() *cli.Command {
	return &cli.Command{
		Name: lockCommandName, Usage: "hold a lock at a running proxy while a command runs",
		ArgsUsage:       "KEY … -- COMMAND [ARGUMENT …]",
		HideHelpCommand: true, OnUsageError: usageError, Action: lockAction,
		Flags: append([]cli.Flag{
			&cli.DurationFlag{Name: "ttl", Value: 30 * time.Second,
				Usage: "`DURATION`: TTL of the lock, which the proxy renews while the command runs; if the proxy fails, " +
					"another one must take over within the TTL"},
			&cli.DurationFlag{Name: "wait", Value: 10 * time.Second,
				Usage: "`DURATION`: how long to wait while another client holds the lock; 0s does not wait"},
			&cli.IntFlag{Name: slotsFlag, DefaultText: "exclusive",
				Usage: "`NUMBER`: number of clients that may hold the lock at the same time; all clients must use the same number"},
			&cli.BoolFlag{Name: sharedFlag, Usage: "hold the lock together with all clients that also use --shared"},
			&cli.BoolFlag{Name: fenceFlag, Usage: "request a fence, which the command gets in $" + conf.LockFenceEnv},
			&cli.DurationFlag{Name: "grace", Value: 5 * time.Second,
				Usage: "`DURATION`: how long the command may continue after the SIGTERM that it gets when the lock " +
					"is lost"},
			&cli.StringSliceFlag{Name: addrFlag, Value: cli.NewStringSlice(conf.Default().Listen),
				Usage: "`ADDR`: a proxy, as host:port or URL (redis://, rediss:// or unix://); may be repeated: " +
					"if one proxy fails, the next one takes over"},
		}, loginFlags()...),
	}
}

// The flags for the kind of the lock.
const (
	slotsFlag  = "slots"
	sharedFlag = "shared"
	fenceFlag  = "fence"
)

// addrFlag is the flag with the address of the proxy, or of several proxies.
const addrFlag = "addr"

// loginFlags returns the flags for TLS and for the login at a running proxy.
func loginFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "ca", Usage: "`FILE`: PEM file with certificate authorities to trust for rediss://, " +
			"in addition to the system's"},
		&cli.StringFlag{Name: "client-cert", Usage: "`FILE`: PEM file with the certificate to present to a proxy " +
			"that requires one"},
		&cli.StringFlag{Name: "client-key", Usage: "`FILE`: PEM file with the key of client-cert"},
		&cli.StringFlag{Name: "user", Usage: "`NAME`: user to log in as"},
		&cli.StringFlag{Name: "password-file", Usage: "`FILE`: file with the password (default: $" + passwordEnv + ")"},
	}
}

// lockArguments moves the flags of the lock command before its keys, where the flag parser expects
// them. Users write KEY --ttl 30s -- COMMAND.
func lockArguments(args []string) []string {
	if !isLockCommand(args) {
		return args
	}
	var flags, rest []string
	for i := 2; i < len(args); i++ {
		switch arg := args[i]; {
		case arg == "--":
			return slices.Concat(args[:2], flags, []string{"--"}, rest, args[i:])
		case strings.HasPrefix(arg, "-") && takesValue(arg) && i+1 < len(args):
			flags = append(flags, arg, args[i+1])
			i++
		case strings.HasPrefix(arg, "-"):
			flags = append(flags, arg)
		default:
			rest = append(rest, arg)
		}
	}
	return slices.Concat(args[:2], flags, []string{"--"}, rest)
}

// takesValue reports whether the word after the flag is its value.
func takesValue(flag string) bool {
	name := strings.TrimLeft(flag, "-")
	return slices.ContainsFunc(lockCommand().Flags, func(f cli.Flag) bool {
		d, documented := f.(cli.DocGenerationFlag)
		return documented && d.TakesValue() && slices.Contains(f.Names(), name)
	})
}

// isLockCommand reports whether a command line runs the lock command, which passes signals to the
// command that it runs.
func isLockCommand(args []string) bool { return len(args) > 1 && args[1] == lockCommandName }

func lockAction(c *cli.Context) error {
	keys, command, err := splitLockArguments(c.Args().Slice())
	if err != nil {
		return err
	}
	request, err := lockRequest(c, keys)
	if err != nil {
		return err
	}
	var opts []*redis.Options
	var proxyList []lease.Proxy
	for _, addr := range c.StringSlice(addrFlag) {
		options, err := proxyOptions(c, addr)
		if err != nil {
			return err
		}
		opts, proxyList = append(opts, options), append(proxyList, lease.Proxy{
			Network: cmp.Or(options.Network, "tcp"), Addr: options.Addr, TLS: options.TLSConfig, Username: options.Username,
			Password: options.Password, ClientName: options.ClientName, DB: options.DB,
		})
	}
	proxies := lease.NewProxies(proxyList...)
	defer proxies.Close()
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = withoutLockVariables(os.Environ())
	job := lease.Job{
		Request: request, Proxies: proxies, Command: cmd, Environ: lockVariables, GracePeriod: c.Duration("grace"),
		Signals: signals, Report: func(err error) { fmt.Fprintln(c.App.ErrWriter, "redlock-proxy:", err) },
	}
	state, err := job.Run(c.Context)
	return lockError(keys, state, err, func() string { return refusalText(c.Context, opts[proxies.LastIndex()], err) })
}

// splitLockArguments splits KEY … -- COMMAND … into the keys and the command.
func splitLockArguments(args []string) (keys, command []string, err error) {
	keys = args
	if i := slices.Index(args, "--"); i >= 0 {
		keys, command = args[:i], args[i+1:]
	}
	switch {
	case len(keys) == 0:
		return nil, nil, errors.New("no key is given; usage: redlock-proxy lock KEY … -- COMMAND")
	case slices.Contains(keys, ""):
		return nil, nil, errors.New("the key is empty")
	case len(command) == 0:
		return nil, nil, errors.New("no command is given; usage: redlock-proxy lock KEY … -- COMMAND")
	}
	return keys, command, nil
}

// lockRequest returns the request that the flags describe.
func lockRequest(c *cli.Context, keys []string) (lease.Request, error) {
	for name, least := range map[string]time.Duration{"ttl": time.Millisecond, "wait": 0, "grace": 0} {
		if d := c.Duration(name); d < least {
			return lease.Request{}, fmt.Errorf("--%s: %v is less than %v", name, d, least)
		}
	}
	r := lease.Request{Keys: keys, TTL: c.Duration("ttl"), Wait: c.Duration("wait")}
	isShared, hasSlots := c.Bool(sharedFlag), c.IsSet(slotsFlag)
	switch {
	case isShared && hasSlots:
		return lease.Request{}, errors.New("--shared and --slots cannot be combined; use one of them")
	case (isShared || hasSlots) && len(keys) > 1:
		return lease.Request{}, errors.New("--shared and --slots are for one key; lock several keys without them")
	case hasSlots && c.Int(slotsFlag) < 1:
		return lease.Request{}, fmt.Errorf("--slots: %d is less than 1", c.Int(slotsFlag))
	case isShared:
		r.Options = append(r.Options, "SHARED")
	case hasSlots:
		r.Options = append(r.Options, "SLOTS", c.Int(slotsFlag))
	}
	if c.Bool(fenceFlag) {
		r.Options = append(r.Options, "FENCE")
	}
	return r, nil
}

// lockVariables returns the environment variables that describe the lock to the command that runs
// under it. Each key has a line.
func lockVariables(l *lease.Lock) []string {
	variables := []string{conf.LockKeyEnv + "=" + strings.Join(l.Keys, "\n"), conf.LockTokenEnv + "=" + l.Token}
	if l.Fence != 0 {
		variables = append(variables, fmt.Sprintf("%s=%d", conf.LockFenceEnv, l.Fence))
	}
	return variables
}

// withoutLockVariables returns an environment without the variables of another lock, under which
// this process may run.
func withoutLockVariables(environ []string) []string {
	return slices.DeleteFunc(environ, func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return conf.IsLockVariable(name)
	})
}

// proxyOptions returns the options for a connection to the proxy at addr.
func proxyOptions(c *cli.Context, addr string) (*redis.Options, error) {
	opts := &redis.Options{Addr: daemon.ConnectAddress(addr)}
	if strings.Contains(addr, "://") {
		var err error
		if opts, err = redis.ParseURL(addr); err != nil {
			return nil, fmt.Errorf("--addr: %s is not the URL of a proxy", conf.Redact(addr))
		}
	} else if _, _, err := net.SplitHostPort(addr); err != nil {
		return nil, fmt.Errorf("--addr: %q is not host:port", addr)
	}
	if user := c.String("user"); user != "" {
		opts.Username = user
	}
	if password := os.Getenv(passwordEnv); password != "" {
		opts.Password = password
	}
	if file := c.String("password-file"); file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("--password-file: %w", err)
		}
		opts.Password = strings.TrimRight(string(text), "\r\n")
	}
	return opts, addCertificates(c, opts)
}

// addCertificates adds the certificates that the flags name: the certificate authorities to trust,
// and the certificate that the client presents.
func addCertificates(c *cli.Context, opts *redis.Options) error {
	files := certs.Files{CA: c.String("ca"), ClientCert: c.String("client-cert"), ClientKey: c.String("client-key")}
	switch {
	case files == certs.Files{}:
		return nil
	case opts.TLSConfig == nil:
		return errors.New("--ca, --client-cert and --client-key need TLS; use --addr rediss://…")
	case (files.ClientCert == "") != (files.ClientKey == ""):
		return errors.New("only one of --client-cert and --client-key is set; set both or neither")
	}
	read, err := certs.Load(files)
	if err != nil {
		return err
	}
	read.ConfigureDial(opts.TLSConfig)
	return nil
}

// lockError returns the error for the outcome of a job, with its exit code. cause returns the
// reason if the lock was not granted.
func lockError(keys []string, state *os.ProcessState, err error, cause func() string) error {
	var lostErr *lease.LostError
	var interruptedErr *lease.InterruptedError
	var startErr *lease.StartError
	switch {
	case err == nil:
		return commandError(state)
	case errors.Is(err, lease.ErrHeld):
		return withCode(exitHeld, heldError(keys))
	case errors.As(err, &lostErr):
		return withCode(exitLost, err)
	case errors.As(err, &interruptedErr):
		if s, ok := interruptedErr.Signal.(syscall.Signal); ok {
			return withCode(exitSignalled+int(s), err)
		}
		return err
	case errors.As(err, &startErr) && (errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist)):
		return withCode(exitNotFound, fmt.Errorf("the command %q was not found", startErr.Command))
	case errors.As(err, &startErr):
		return withCode(exitCannotRun, err)
	default:
		return withCode(exitNotGranted, refusedError(keys, cause()))
	}
}

// heldError returns the error if another client held one of the keys.
func heldError(keys []string) error {
	if len(keys) > 1 {
		return fmt.Errorf("one of the keys %s is held by another client", quoteAll(keys))
	}
	return fmt.Errorf("the lock %s is held by another client", quoteAll(keys))
}

// refusedError returns the error if no proxy granted the lock. cause begins with the address of the
// proxy.
func refusedError(keys []string, cause string) error {
	if len(keys) > 1 {
		return fmt.Errorf("the locks %s were not granted by %s", quoteAll(keys), cause)
	}
	return fmt.Errorf("the lock %s was not granted by %s", quoteAll(keys), cause)
}

// quoteAll returns the keys in quotes, with commas between them.
func quoteAll(keys []string) string {
	var quoted []string
	for _, key := range keys {
		quoted = append(quoted, strconv.Quote(key))
	}
	return strings.Join(quoted, ", ")
}

// schemeTimeout limits the check whether --addr has the wrong scheme.
const schemeTimeout = 2 * time.Second

// maxReply limits the printed bytes of a proxy's error reply, which may name many connections or
// keys before its remedy.
const maxReply = 4 << 10

// replyText returns the text of an error that a proxy replied, or the cause of any other error.
func replyText(err error) string {
	reply, ok := errors.AsType[redis.Error](err)
	if !ok {
		return master.CauseText(err)
	}
	head, _ := escape.Cut(reply.Error(), maxReply)
	return escape.Text(head, `\`)
}

// refusalText returns the address of the proxy, and the reason for its refusal.
func refusalText(ctx context.Context, opts *redis.Options, err error) string {
	text := strings.TrimSpace(replyText(err))
	if strings.HasPrefix(text, "ERR unknown command") || strings.HasPrefix(text, "ERR syntax error") {
		text += " (--addr must be the address of a redlock-proxy of version 0.4.0 or later)"
	}
	server := scheme.Server{Network: cmp.Or(opts.Network, "tcp"), Addr: opts.Addr, TLS: opts.TLSConfig != nil}
	return opts.Addr + ": " + cmp.Or(scheme.Advice(ctx, server, schemeTimeout, err), text)
}

// commandError returns an error with the exit code that a shell reports for an ended command, or
// nil for code 0.
func commandError(state *os.ProcessState) error {
	code := state.ExitCode()
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		code = exitSignalled + int(status.Signal())
	}
	if code == 0 {
		return nil
	}
	return withCode(code, errReported)
}
