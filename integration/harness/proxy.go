package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"redlock-proxy/internal/process"
)

// proxyStartTimeout is the default limit of the time until a proxy prints its ready line. It is
// long enough for a busy machine.
const proxyStartTimeout = time.Minute

// ErrNoListen means that a ready line contains no address.
var ErrNoListen = errors.New("the ready line has no listen=ADDR")

// The patterns match both formats of slog, text (msg="serving clients" listen=ADDR) and JSON.
// Proxies up to 0.3 print only "ready".
var (
	readyPattern  = regexp.MustCompile(`\bmsg"?[=:]("serving clients"|ready|"ready")(\s|,|}|$)`)
	listenPattern = regexp.MustCompile(`\blisten"?[=:]"?([^"\s,}]+)`)
)

// ProxyOptions configures a proxy.
type ProxyOptions struct {
	Binary  string   // path of the program; default: BuildProxy
	Masters []string // URLs, one --master each
	// Config is the path of a complete configuration file. If it is set, StartProxy passes only
	// Args as flags.
	Config string
	Args   []string // further arguments of serve; a --listen among them replaces the default
	// Env holds NAME=value, added to the environment of this process without its REDLOCK_
	// variables.
	Env          []string
	StartTimeout time.Duration // default one minute
}

// Proxy controls a running proxy process.
type Proxy struct {
	process *process.Process
	addr    string
	clock   *processClock // nil before the first Suspend
}

// StartProxy runs serve on a free port of 127.0.0.1 and returns when the proxy is ready. If all
// masters in opts.Masters are new, empty and without persistence, they vote immediately. If
// opts.Args contains --fresh-start, new masters vote after 3 s; with --fresh-start=false, they do
// not vote.
func StartProxy(opts ProxyOptions) (*Proxy, error) {
	if err := opts.setDefaults(); err != nil {
		return nil, err
	}
	startedMasters.markNew(opts.Masters, !opts.controlsVoting())
	process, err := process.Start(opts.Binary, opts.arguments(), opts.environment())
	if err != nil {
		return nil, err
	}
	p := &Proxy{process: process}
	if p.addr, err = p.waitReady(opts.StartTimeout); err != nil {
		return nil, errors.Join(fmt.Errorf("proxy is not ready: %w", err), process.Kill())
	}
	return p, nil
}

// Addr returns the host:port on which the proxy listens.
func (p *Proxy) Addr() string { return p.addr }

// PID returns the process ID.
func (p *Proxy) PID() int { return p.process.PID() }

// Log returns the proxy's output: the last 2 to 4 MB.
func (p *Proxy) Log() string { return p.process.Log() }

// WaitLog returns the first log line that contains text; the line may be older than the call. It
// returns an error after timeout.
func (p *Proxy) WaitLog(text string, timeout time.Duration) (string, error) {
	match := func(line string) bool { return strings.Contains(line, text) }
	return p.process.WaitLine(match, timeout)
}

// Signal sends sig to the proxy.
func (p *Proxy) Signal(sig os.Signal) error { return p.process.Signal(sig) }

// Wait waits for the end of the proxy and returns its exit code, or -1 if a signal ended it. After
// timeout the error is process.ErrStillRunning.
func (p *Proxy) Wait(timeout time.Duration) (int, error) { return p.process.Wait(timeout) }

// Kill ends the proxy as a crash would (SIGKILL) and waits until it has ended.
func (p *Proxy) Kill() error { return p.process.Kill() }

// Close kills the proxy. It may be called again. Tests of a graceful stop use Signal and Wait.
func (p *Proxy) Close() error { return p.process.Kill() }

// CPU returns the user and system time since the start, in steps of 10 ms. It needs /proc and a
// running proxy.
func (p *Proxy) CPU() (time.Duration, error) { return p.process.CPU() }

// RSS returns the resident memory in bytes. It needs /proc and a running proxy.
func (p *Proxy) RSS() (int64, error) { return p.process.RSS() }

// Descriptors returns the number of open file descriptors. It needs /proc and a running proxy.
func (p *Proxy) Descriptors() (int, error) { return p.process.Descriptors() }

func (p *Proxy) waitReady(timeout time.Duration) (string, error) {
	line, err := p.process.WaitLine(readyPattern.MatchString, timeout)
	if err != nil {
		return "", err
	}
	return listenAddr(line)
}

// listenAddr returns the address in the ready line.
func listenAddr(line string) (string, error) {
	match := listenPattern.FindStringSubmatch(line)
	if match == nil {
		return "", fmt.Errorf("%w: %s", ErrNoListen, line)
	}
	return match[1], nil
}

// controlsVoting reports whether the arguments determine how new masters begin to vote, or disable
// the guard.
func (o *ProxyOptions) controlsVoting() bool {
	return slices.ContainsFunc(o.Args, func(arg string) bool {
		return strings.HasPrefix(arg, "--fresh-start") || arg == "--guard=false"
	})
}

// setDefaults sets the defaults.
func (o *ProxyOptions) setDefaults() (err error) {
	if o.StartTimeout == 0 {
		o.StartTimeout = proxyStartTimeout
	}
	if o.Binary == "" {
		o.Binary, err = BuildProxy(context.Background())
	}
	return err
}

func (o *ProxyOptions) arguments() []string {
	if o.Config != "" {
		return append([]string{"serve", "--config", o.Config}, o.Args...)
	}
	args := []string{"serve", "--listen", "127.0.0.1:0", "--fresh-start"}
	for _, master := range o.Masters {
		args = append(args, "--master", master)
	}
	return append(args, o.Args...)
}

func (o *ProxyOptions) environment() []string { return append(Environ(), o.Env...) }

// Environ returns the environment of this process without the proxy's settings. Commands of the
// proxy's program run in this environment.
func Environ() []string {
	return slices.DeleteFunc(os.Environ(), func(entry string) bool { return strings.HasPrefix(entry, "REDLOCK_") })
}
