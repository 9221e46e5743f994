package upstream

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"redlock-proxy/internal/resp"
	"redlock-proxy/internal/scheme"
)

const (
	// DefaultTimeout bounds connecting to the upstream.
	DefaultTimeout = 5 * time.Second
	// maxDials bounds how many connections are being made at a time, so that a
	// thousand clients that come back together do not bury the upstream.
	maxDials = 64
	// dialPause is how long after a failed dial the same answer is given without
	// another one, on the average.
	dialPause = 50 * time.Millisecond
	// maxProbeAnswer bounds an answer to a probe, in bytes.
	maxProbeAnswer = 64 << 10
)

// Upstream is the Redis that gets every command which is not the proxy's own.
// Each client has a connection of its own to it.
type Upstream struct {
	name string
	// options are those of now; of them only the password and the timeout ever change.
	options atomic.Pointer[redis.Options]
	secure  func(*tls.Config) // nil: nothing is added
	log     *slog.Logger
	dials   chan struct{}
	own     *pool
	// following is nil where the address is fixed.
	following *following
	// id is the proxy's identity; empty: no loop is looked for.
	id string
	// alone: a node of a cluster is refused.
	alone bool
	// term counts how often another server became the upstream, or this one was found not to be
	// alone. What was connected in an earlier one is to be ended: moved is called then. parted has
	// Run do so.
	term   atomic.Uint64
	moved  func()
	parted chan struct{}

	mu sync.Mutex
	// unasked is how many connections more need not ask whether they lead back here.
	unasked int
	// vouched: it was asked since it came up.
	vouched bool
	refusal error // what a dial that just failed said,
	until   time.Time
	probed  bool
	err     error // of the last probe
	// all: a new connection may do everything. demands: it may do nothing before a login.
	all, demands bool
	// known: a probe was answered.
	known bool
	// advice is what to do about the scheme of the URL, as long as no probe was answered; nil:
	// nothing.
	advice error
	modes  modes
	trials trials

	probes atomic.Uint64
	// stale: all is the word of a master before, which holds until the one of now has been reached.
	stale bool
	// master returns the name of the lock master that a server is; see RefuseMasters.
	master func(runID, addr string) string
}

// New takes a redis, rediss or unix URL. What it holds of user, password
// and database is sent first on every connection. The timeout bounds connecting;
// 0 is DefaultTimeout.
func New(url string, timeout time.Duration, log *slog.Logger) (*Upstream, error) {
	opts, err := parse(url, timeout)
	if err != nil {
		return nil, err
	}
	u := &Upstream{name: opts.Addr, log: log, dials: make(chan struct{}, maxDials), moved: func() {}, parted: make(chan struct{}, 1), trials: trials{wanted: func() bool { return false }}}
	u.options.Store(opts)
	u.own = newPool(u)
	return u, nil
}

func parse(url string, timeout time.Duration) (*redis.Options, error) {
	opts, err := redis.ParseURL(url)
	if err != nil {
		return nil, fmt.Errorf("upstream: %w", err)
	}
	opts.DialTimeout = timeout
	if timeout == 0 {
		opts.DialTimeout = DefaultTimeout
	}
	return opts, nil
}

// errOther refuses a URL that is more than another password.
var errOther = errors.New("upstream: another server, database or user needs a restart")

// Apply has the password of a URL and a timeout hold for all connections that are made from now on;
// those that there are stay as they are. The URL must be that of New but for the password. It may
// be called at any time, by any goroutine.
func (u *Upstream) Apply(url string, timeout time.Duration) error {
	next, err := parse(url, timeout)
	if err != nil {
		return err
	}
	is := u.options.Load()
	if next.Addr != is.Addr || next.DB != is.DB || next.Username != is.Username || (next.Password == "") != (is.Password == "") ||
		(next.TLSConfig == nil) != (is.TLSConfig == nil) {
		return errOther
	}
	u.options.Store(next)
	return nil
}

// Secure has add called with a copy of the TLS settings of each connection that is to be made, to
// say what to show the upstream and whom to believe. It is called before anything else.
func (u *Upstream) Secure(add func(*tls.Config)) { u.secure = add }

// dial connects as go-redis would.
func (u *Upstream) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	now := *u.options.Load()
	if now.TLSConfig != nil {
		now.TLSConfig = now.TLSConfig.Clone()
		u.named(now.TLSConfig, addr)
		if u.secure != nil {
			u.secure(now.TLSConfig)
		}
	}
	return redis.NewDialer(&now)(ctx, network, addr)
}

// dialNow connects to where the upstream is now.
func (u *Upstream) dialNow(ctx context.Context) (net.Conn, error) {
	addr, err := u.Locate(ctx)
	if err != nil {
		return nil, err
	}
	return u.dial(ctx, u.options.Load().Network, addr)
}

// Failure is the error for a cause, in plain words.
func (u *Upstream) Failure(cause error) *Error {
	u.mu.Lock()
	advice := u.advice
	u.mu.Unlock()
	if advice != nil && scheme.LeavesOpen(cause) {
		return &Error{u.Name(), advice}
	}
	return &Error{u.Name(), plainCause(cause)}
}

// Name is the upstream's address; of one that Sentinels have not told yet, its name there.
func (u *Upstream) Name() string {
	if u.following != nil {
		return u.following.name()
	}
	return u.name
}

// DB is the database that every connection begins with.
func (u *Upstream) DB() int { return u.options.Load().DB }

// Timeout bounds connecting.
func (u *Upstream) Timeout() time.Duration { return u.options.Load().DialTimeout }

// Connect makes a connection that is ready for a client's commands.
func (u *Upstream) Connect(ctx context.Context) (net.Conn, error) {
	select {
	case u.dials <- struct{}{}:
		defer func() { <-u.dials }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if err := u.refused(); err != nil {
		return nil, err
	}
	conn, err := u.dialNow(ctx)
	if err == nil {
		if err = u.greet(conn); err == nil {
			err = u.verify(conn)
		}
		if err == nil {
			err = u.checkRole(conn)
		}
		if err == nil {
			u.reached()
			return conn, nil
		}
		_ = conn.Close()
	}
	return nil, u.failed(err)
}

// reached forgets what a master before has said: the one of now can be asked.
func (u *Upstream) reached() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.stale {
		u.stale, u.all = false, false
	}
}

// AskBusy has an upstream that is busy with a script carry out a command, on a connection that
// begins with the URL's login and with nothing that it would refuse. The answer is whole.
func (u *Upstream) AskBusy(ctx context.Context, frame []byte) (answer []byte, err error) {
	select {
	case u.dials <- struct{}{}:
		defer func() { <-u.dials }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	conn, err := u.dialNow(ctx)
	if err != nil {
		return nil, u.Failure(err)
	}
	defer conn.Close()
	if words := u.Logins(); words != nil {
		if err := u.give(conn, words); err != nil {
			return nil, u.Failure(err)
		}
	}
	if answer, err = u.converse(conn, frame); err != nil {
		return nil, u.Failure(err)
	}
	return answer, nil
}

// Watch makes a connection to a database on which changes of keys can be reported: it is for
// nothing but that.
func (u *Upstream) Watch(ctx context.Context, db int) (net.Conn, error) {
	conn, err := u.Connect(ctx)
	if err != nil {
		return nil, err
	}
	if db != u.DB() {
		err = u.give(conn, []string{"SELECT", strconv.Itoa(db)})
	}
	if err != nil {
		_ = conn.Close()
		return nil, u.Failure(err)
	}
	return u.own.connections.add(conn), nil
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
	failure := u.Failure(err)
	if u.following != nil {
		u.following.doubt()
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.refusal = failure
	u.until = time.Now().Add(pauseAfter(err) + rand.N(dialPause))
	return u.refusal
}

// greet logs in and selects the database that the URL names.
func (u *Upstream) greet(conn net.Conn) error {
	var commands [][]string
	if words := u.Logins(); words != nil {
		commands = append(commands, words)
	}
	if db := u.DB(); db != 0 {
		commands = append(commands, []string{"SELECT", strconv.Itoa(db)})
	}
	for _, words := range commands {
		if err := u.give(conn, words); err != nil {
			return err
		}
	}
	return nil
}

// give sends a command that must be granted.
func (u *Upstream) give(conn net.Conn, words []string) error {
	answer, err := u.exchange(conn, words...)
	if err == nil && !resp.Begins(answer, "+OK") {
		err = refusalOf(words, answer)
	}
	return err
}

// Logins is the AUTH of the URL's user; nil where it names none.
func (u *Upstream) Logins() []string {
	is := u.options.Load()
	return loginWords(is.Username, is.Password)
}

var errLongAnswer = errors.New("an answer without an end")

// exchange sends a command and gives its whole reply, which is never empty.
func (u *Upstream) exchange(conn net.Conn, words ...string) ([]byte, error) {
	return u.converse(conn, resp.AppendWords(nil, words...))
}

// converse is exchange of a command in RESP.
func (u *Upstream) converse(conn net.Conn, frame []byte) ([]byte, error) {
	_ = conn.SetDeadline(time.Now().Add(u.Timeout()))
	defer func() { _ = conn.SetDeadline(time.Time{}) }()
	if _, err := conn.Write(frame); err != nil {
		return nil, err
	}
	var answer []byte
	for scanner := (resp.ReplyScanner{}); ; {
		var buf [512]byte
		n, err := conn.Read(buf[:])
		if err != nil {
			return nil, err
		}
		_, ended, err := scanner.Scan(buf[:n])
		answer = append(answer, buf[:n]...)
		switch {
		case err != nil:
			return nil, err
		case ended:
			return answer, nil
		case len(answer) > maxProbeAnswer:
			return nil, errLongAnswer
		}
	}
}
