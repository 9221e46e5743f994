package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/tidwall/redcon"
)

const (
	// DefaultUpstreamTimeout bounds connecting to the upstream.
	DefaultUpstreamTimeout = 5 * time.Second
	// maxDials bounds how many connections are being made at a time, so that a
	// thousand clients that come back together do not bury the upstream.
	maxDials = 64
	// dialPause is how long after a failed dial the same answer is given without
	// another one, on the average.
	dialPause = 50 * time.Millisecond
	// upstreamProbe is how often the upstream is asked for a sign of life.
	upstreamProbe = 2 * time.Second
	// stallTime is how long a subscriber may leave what it gets unread, and how long
	// the last replies for a client that sends no more may stop to flow.
	stallTime = time.Minute
	// farewellTime is how long a client that sends no more is taken to be still there
	// while the upstream does not answer.
	farewellTime = 5 * time.Second
)

// Upstream is the Redis that gets every command which is not the proxy's own.
// Each client has a connection of its own to it.
type Upstream struct {
	name    string
	options *redis.Options
	dial    func(ctx context.Context, network, addr string) (net.Conn, error)
	log     *slog.Logger
	dials   chan struct{}
	aside   *aside
	// stall and farewell are stallTime and farewellTime, but in tests.
	stall, farewell time.Duration

	mu      sync.Mutex
	refusal error // what a dial that just failed said,
	until   time.Time
	probed  bool
	err     error // of the last probe
	// demands: a connection must log in before it may do anything.
	demands bool
}

// NewUpstream takes a redis, rediss or unix URL. What it holds of user, password
// and database is sent first on every connection. The timeout bounds connecting;
// 0 is DefaultUpstreamTimeout.
func NewUpstream(url string, timeout time.Duration, log *slog.Logger) (*Upstream, error) {
	opts, err := redis.ParseURL(url)
	if err != nil {
		return nil, fmt.Errorf("upstream: %w", err)
	}
	opts.DialTimeout = timeout
	if timeout == 0 {
		opts.DialTimeout = DefaultUpstreamTimeout
	}
	dial := redis.NewDialer(opts)
	return &Upstream{
		name: opts.Addr, options: opts, dial: dial, log: log,
		dials: make(chan struct{}, maxDials),
		aside: newAside(*opts, dial),
		stall: stallTime, farewell: farewellTime,
	}, nil
}

// upstreamError is a failure of the upstream as clients see it.
type upstreamError struct {
	name string
	err  error
}

// Error names the upstream and the cause.
func (e *upstreamError) Error() string { return "upstream " + e.name + ": " + e.err.Error() }

// Unwrap is the cause.
func (e *upstreamError) Unwrap() error { return e.err }

// reply is the error reply for it.
func (e *upstreamError) reply() string { return "ERR " + e.Error() }

// connect makes a connection that is ready for a client's commands.
func (u *Upstream) connect(ctx context.Context) (net.Conn, error) {
	select {
	case u.dials <- struct{}{}:
		defer func() { <-u.dials }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if err := u.refused(); err != nil {
		return nil, err
	}
	conn, err := u.dial(ctx, u.options.Network, u.options.Addr)
	if err == nil {
		if err = u.greet(conn); err == nil {
			return conn, nil
		}
		_ = conn.Close()
	}
	return nil, u.failed(err)
}

// refused is the error of a dial that failed just now.
func (u *Upstream) refused() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.refusal != nil && time.Now().Before(u.until) {
		return u.refusal
	}
	return nil
}

func (u *Upstream) failed(err error) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.refusal = &upstreamError{u.name, plainCause(err)}
	u.until = time.Now().Add(dialPause/2 + rand.N(dialPause))
	return u.refusal
}

// plainCause says what happened, without the addresses that net puts around it.
func plainCause(err error) error {
	var op *net.OpError
	var call *os.SyscallError
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return errors.New("connection refused")
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return errors.New("no answer in time")
	case errors.Is(err, io.EOF):
		return errUpstreamGone
	case errors.As(err, &call):
		return call.Err
	case errors.As(err, &op):
		return op.Err
	}
	return err
}

// greet logs in and selects the database that the URL names.
func (u *Upstream) greet(conn net.Conn) error {
	var commands [][]string
	switch {
	case u.options.Username != "":
		commands = append(commands, []string{"AUTH", u.options.Username, u.options.Password})
	case u.options.Password != "":
		commands = append(commands, []string{"AUTH", u.options.Password})
	}
	if u.options.DB != 0 {
		commands = append(commands, []string{"SELECT", strconv.Itoa(u.options.DB)})
	}
	for _, words := range commands {
		answer, err := u.exchange(conn, words)
		if err != nil {
			return err
		}
		if answer != "+OK" {
			return fmt.Errorf("%s: %s", words[0], strings.TrimPrefix(answer, "-"))
		}
	}
	return nil
}

// exchange sends a command whose answer is one line.
func (u *Upstream) exchange(conn net.Conn, words []string) (string, error) {
	_ = conn.SetDeadline(time.Now().Add(u.options.DialTimeout))
	defer func() { _ = conn.SetDeadline(time.Time{}) }()
	request := redcon.AppendArray(nil, len(words))
	for _, word := range words {
		request = redcon.AppendBulkString(request, word)
	}
	if _, err := conn.Write(request); err != nil {
		return "", err
	}
	var answer []byte
	for !bytes.HasSuffix(answer, []byte("\r\n")) {
		var buf [512]byte
		n, err := conn.Read(buf[:])
		if answer = append(answer, buf[:n]...); err != nil {
			return "", err
		}
	}
	return string(bytes.TrimSpace(answer)), nil
}

// Run watches the upstream until ctx ends: whether it is up, and whether it
// demands that clients log in.
func (u *Upstream) Run(ctx context.Context) error {
	tick := time.NewTicker(upstreamProbe)
	defer tick.Stop()
	for {
		u.Probe(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Probe asks the upstream for a sign of life, on a connection like those that
// clients get.
func (u *Upstream) Probe(ctx context.Context) {
	answer, err := u.ping(ctx)
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return
	case err != nil && (u.err == nil || !u.probed):
		u.log.Warn("upstream down", "upstream", u.name, "cause", plainCause(err))
	case err == nil && (u.err != nil || !u.probed):
		u.log.Info("upstream up", "upstream", u.name)
	}
	u.probed, u.err = true, err
	if err == nil {
		u.demands = strings.HasPrefix(answer, "-NOAUTH")
	}
}

func (u *Upstream) ping(ctx context.Context) (string, error) {
	conn, err := u.connect(ctx)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	return u.exchange(conn, []string{"PING"})
}

// demandsLogin reports whether a client must log in at the upstream before it may
// use the proxy's own commands. An upstream that never answered demands nothing:
// its absence must not stop locks, and there are no data to protect either.
func (u *Upstream) demandsLogin() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.demands
}

// Status is the state of the upstream: its address, and why it is down, if it is.
func (u *Upstream) Status() (name string, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.name, u.err
}
