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

// proxyStartTimeout is the default time that a proxy has to print its ready line, also where the
// processors are busy.
const proxyStartTimeout = time.Minute

// ErrNoListen is returned when a ready line names no address.
var ErrNoListen = errors.New("the ready line has no listen=ADDR")

// Both handlers of slog, text (msg="clients are served" listen=ADDR) and JSON; proxies up to 0.3
// say ready.
var (
	readyPattern  = regexp.MustCompile(`\bmsg"?[=:]("clients are served"|ready|"ready")(\s|,|}|$)`)
	listenPattern = regexp.MustCompile(`\blisten"?[=:]"?([^"\s,}]+)`)
)

// ProxyOptions say how to start a proxy.
type ProxyOptions struct {
	Binary       string        // path of the program; default: BuildProxy
	Masters      []string      // URLs, one --master each
	Config       string        // path of a configuration file, which then says all: of the flags only Args are given
	Args         []string      // further arguments of serve; a later --listen wins over ours
	Env          []string      // NAME=value, added to the environment without the REDLOCK_ variables of this process
	StartTimeout time.Duration // default one minute
}

// Proxy is a running proxy process.
type Proxy struct {
	process *process.Process
	addr    string
	clock   *ownClock // once it was suspended
}

// StartProxy runs serve on a free port of 127.0.0.1 and returns when the proxy says that it is
// ready. Masters that are all empty vote at once, or after 3 s where the arguments have
// --fresh-start, unless they say otherwise.
func StartProxy(opts ProxyOptions) (*Proxy, error) {
	if err := opts.fill(); err != nil {
		return nil, err
	}
	processMasters.markNew(opts.Masters, !opts.saysWhoVotes())
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

// Addr returns the host:port that the proxy listens on.
func (p *Proxy) Addr() string { return p.addr }

// PID returns the process id, for what /proc knows beyond CPU and RSS.
func (p *Proxy) PID() int { return p.process.PID() }

// Log returns what the proxy has written (the last megabytes of it).
func (p *Proxy) Log() string { return p.process.Log() }

// WaitLog returns the first log line that contains text, also one from before the call.
func (p *Proxy) WaitLog(text string, timeout time.Duration) (string, error) {
	match := func(line string) bool { return strings.Contains(line, text) }
	return p.process.WaitLine(match, timeout)
}

// Signal sends sig to the proxy.
func (p *Proxy) Signal(sig os.Signal) error { return p.process.Signal(sig) }

// Wait returns the exit code (-1: ended by a signal) when the proxy has ended, or ErrStillRunning
// after timeout.
func (p *Proxy) Wait(timeout time.Duration) (int, error) { return p.process.Wait(timeout) }

// Kill ends the proxy as a crash would (SIGKILL) and waits until it is gone.
func (p *Proxy) Kill() error { return p.process.Kill() }

// Close kills the proxy; it may be called again. A test of the graceful stop uses Signal and Wait.
func (p *Proxy) Close() error { return p.process.Kill() }

// CPU returns the user and system time since the start, in steps of 10 ms. It needs /proc and a
// living proxy.
func (p *Proxy) CPU() (time.Duration, error) { return p.process.CPU() }

// RSS returns the resident memory in bytes. It needs /proc and a living proxy.
func (p *Proxy) RSS() (int64, error) { return p.process.RSS() }

// Descriptors returns the number of open file descriptors. It needs /proc and a living proxy.
func (p *Proxy) Descriptors() (int, error) { return p.process.Descriptors() }

func (p *Proxy) waitReady(timeout time.Duration) (string, error) {
	line, err := p.process.WaitLine(readyPattern.MatchString, timeout)
	if err != nil {
		return "", err
	}
	return listenAddr(line)
}

// listenAddr takes the address from the ready line.
func listenAddr(line string) (string, error) {
	match := listenPattern.FindStringSubmatch(line)
	if match == nil {
		return "", fmt.Errorf("%w: %s", ErrNoListen, line)
	}
	return match[1], nil
}

// saysWhoVotes reports whether the arguments say how masters begin to vote, or that they do anyway.
func (o *ProxyOptions) saysWhoVotes() bool {
	return slices.ContainsFunc(o.Args, func(arg string) bool { return strings.HasPrefix(arg, "--fresh-start") || arg == "--guard=false" })
}

// fill resolves the defaults.
func (o *ProxyOptions) fill() (err error) {
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

// Environ is the environment without the settings that happen to be set where the tests run, for
// any command of the proxy.
func Environ() []string {
	return slices.DeleteFunc(os.Environ(), func(entry string) bool { return strings.HasPrefix(entry, "REDLOCK_") })
}
