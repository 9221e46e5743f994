package upstream

import (
	"context"
	"crypto/tls"
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
	"sync/atomic"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"redlock-proxy/internal/resp"
	"redlock-proxy/internal/scheme"
	"redlock-proxy/proxy/track"
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
	// upstreamProbe is how often the upstream is asked for a sign of life.
	upstreamProbe = 2 * time.Second
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
	// term counts how often another server became the upstream, or this one was found not to be alone. What was connected in an earlier one is to be ended:
	// moved is called then. parted has Run do so.
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
	// advice is what to do about the scheme of the URL, as long as no probe was answered; nil: nothing.
	advice error
	modes  modes

	probes atomic.Uint64
	// lets is LetsIn.
	lets atomic.Bool
	// stale: all and lets are the word of a master before, which holds until the one of now has been reached.
	stale bool
}

// New takes a redis, rediss or unix URL. What it holds of user, password
// and database is sent first on every connection. The timeout bounds connecting;
// 0 is DefaultTimeout.
func New(url string, timeout time.Duration, log *slog.Logger) (*Upstream, error) {
	opts, err := parse(url, timeout)
	if err != nil {
		return nil, err
	}
	u := &Upstream{name: opts.Addr, log: log, dials: make(chan struct{}, maxDials), moved: func() {}, parted: make(chan struct{}, 1)}
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
// those that there are stay as they are. The URL must be that of New but for the password. It may be
// called at any time, by any goroutine.
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

// Error is a failure of the upstream as clients see it.
type Error struct {
	name string
	err  error
}

// Error names the upstream and the cause.
func (e *Error) Error() string { return "upstream " + e.name + ": " + e.err.Error() }

// Unwrap is the cause.
func (e *Error) Unwrap() error { return e.err }

// Reply is the error reply for it: that of an upstream that is busy with a script is its own.
func (e *Error) Reply() string {
	if b, is := e.err.(busy); is {
		return string(b)
	}
	return "ERR " + e.Error()
}

// plain is a cause in plain words.
type plain struct {
	text  string
	cause error
}

func (p *plain) Error() string { return p.text }

func (p *plain) Unwrap() error { return p.cause }

// ErrGone is the cause where the upstream closed the connection.
var ErrGone error = &plain{"the upstream closed the connection", io.EOF}

var errNoAnswer error = &plain{"no answer in time", os.ErrDeadlineExceeded}

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
		u.lets.Store(false)
	}
}

// ConnectAnd makes a connection on which these commands were granted. Where one is refused, that is the error, and says nothing of other
// connections.
func (u *Upstream) ConnectAnd(ctx context.Context, commands [][]string) (net.Conn, error) {
	conn, err := u.Connect(ctx)
	if err != nil {
		return nil, err
	}
	for _, words := range commands {
		answer, err := u.exchange(conn, words...)
		if err == nil && answer[0] == '-' {
			err = refusalOf(words, answer)
		}
		if err != nil {
			_ = conn.Close()
			return nil, u.Failure(err)
		}
	}
	return conn, nil
}

// AskBusy has an upstream that is busy with a script carry out a command, on a connection that begins with the URL's login and with nothing that it
// would refuse. The answer is whole.
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

// ConnectAs makes a connection that speaks this protocol and uses this database.
func (u *Upstream) ConnectAs(ctx context.Context, proto, db int) (net.Conn, error) {
	return u.ConnectAnd(ctx, track.Profile{Proto: proto, DB: db}.Commands(u.DB()))
}

// refusalOf is the error for what was answered to a command that is needed.
func refusalOf(words []string, answer []byte) error {
	text := strings.TrimPrefix(strings.TrimSpace(string(answer)), "-")
	if strings.HasPrefix(text, "BUSY ") {
		return busy(text)
	}
	return fmt.Errorf("%s: %s", words[0], text)
}

// busy is what an upstream says to every command, but a few, while a script runs too long.
type busy string

func (b busy) Error() string { return string(b) }

// IsBusy reports whether the upstream is there and says so.
func (e *Error) IsBusy() bool {
	_, is := e.err.(busy)
	return is
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

// plainCause says what happened, without the addresses that net puts around it.
func plainCause(err error) error {
	var op *net.OpError
	var call *os.SyscallError
	var named *Error
	switch {
	case errors.As(err, &named):
		return named.err
	case errors.Is(err, syscall.ECONNREFUSED):
		return errors.New("connection refused")
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return errNoAnswer
	case errors.Is(err, io.EOF):
		return ErrGone
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

// Run watches the upstream until ctx ends: whether it is up, and whether everything is
// allowed there to whoever connects.
func (u *Upstream) Run(ctx context.Context) error {
	var nudge chan struct{}
	if u.following != nil {
		var follows sync.WaitGroup
		follows.Go(func() { u.follow(ctx) })
		defer follows.Wait()
		nudge = u.following.nudge
	}
	tick := time.NewTicker(upstreamProbe)
	defer tick.Stop()
	for {
		u.Probe(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-nudge:
		case <-u.parted:
			u.moved()
		case <-tick.C:
		}
	}
}

// Probe asks the upstream for a sign of life, on a connection like those that
// clients get, and what may be done on it. From then on clients are asked about anew.
func (u *Upstream) Probe(ctx context.Context) {
	term := u.Term()
	found, err := u.examine(ctx)
	if err != nil {
		err = u.advised(ctx, err)
	}
	name := u.Name()
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case term != u.Term(): // of which server it tells is not known, and the next probe is under way
		return
	case ctx.Err() != nil:
		return
	case err != nil && (u.err == nil || !u.probed):
		u.log.Warn("upstream down", "upstream", name, "cause", plainCause(err))
	case err == nil && (u.err != nil || !u.probed):
		u.log.Info("upstream up", "upstream", name)
	}
	u.probed, u.err = true, nil
	if err != nil {
		u.err = plainCause(err)
		u.unasked, u.vouched = 0, false
		u.modes.found = u.modes.found && errors.Is(err, ErrCluster) // else another server may be there next
	} else {
		u.all, u.demands, u.known, u.advice = found.all, found.demands, true, nil
		u.lets.Store(!found.demands)
		u.probes.Add(1)
	}
}

// advised is the error of a probe of an upstream that was never reached: where its URL has the wrong scheme, that says so, and so do all errors
// that clients get from now on.
func (u *Upstream) advised(ctx context.Context, err error) error {
	u.mu.Lock()
	settled := u.known || u.following != nil || u.advice != nil && errors.Is(err, u.advice)
	u.mu.Unlock()
	if settled {
		return err
	}
	is := u.options.Load()
	advice := scheme.Advice(ctx, scheme.Server{Network: is.Network, Addr: is.Addr, TLS: is.TLSConfig != nil}, u.Timeout(), err)
	u.mu.Lock()
	defer u.mu.Unlock()
	u.advice = nil
	if advice == "" {
		return err
	}
	u.advice = errors.New(advice)
	return u.advice
}

// access is what may be done on a new connection, before a login: everything, or nothing.
type access struct{ all, demands bool }

// examine finds out what may be done on a new connection. Nothing but the
// upstream's own word for it counts: what it answers otherwise may be any trouble that
// it has. The error says that it does not answer at all; one that goes away while it is
// asked is asked once more, for only a new connection tells whether it is gone.
func (u *Upstream) examine(ctx context.Context) (found access, err error) {
	found, broken, err := u.examineOnce(ctx)
	if broken {
		found, _, err = u.examineOnce(ctx)
	}
	return found, err
}

// examineOnce is examine on one connection; broken: it ended on the way.
func (u *Upstream) examineOnce(ctx context.Context) (found access, broken bool, err error) {
	conn, err := u.Connect(ctx)
	if err != nil {
		return found, false, err
	}
	conn = u.own.connections.add(conn)
	defer conn.Close()
	if err := u.askMode(conn); err != nil {
		return found, false, err
	}
	pong, err := u.exchange(conn, "PING")
	if err == nil && resp.Begins(pong, "-BUSY ") { // it tells nothing of rights, and nobody can change one there
		err = refusalOf([]string{"PING"}, pong)
	}
	if err != nil {
		return found, false, err
	}
	found.demands = resp.Begins(pong, "-NOAUTH")
	name, err := u.exchange(conn, "ACL", "WHOAMI")
	switch {
	case err != nil:
		return found, true, nil
	case name[0] == '-':
		info, err := u.exchange(conn, "INFO", "server")
		found.all = err == nil && resp.Begins(pong, "+PONG") && PredatesACL(info)
		return found, err != nil, nil
	}
	user, err := u.exchange(conn, "ACL", "GETUSER", strings.Join(resp.Texts(name), ""))
	found.all = err == nil && MayAll(user)
	return found, err != nil, nil
}

// Probes counts the probes that were answered.
func (u *Upstream) Probes() uint64 { return u.probes.Load() }

// OpensAll reports whether a client may do everything on a connection as the upstream
// gives it. It is false where that is not known. While the upstream does not answer, what
// it said last holds: a client that needed no login goes on, and one that has to log in waits for it.
func (u *Upstream) OpensAll() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.all
}

// DemandsLogin reports whether a new connection may do nothing before a login. Known is false as
// long as the upstream was never reached; while it does not answer, what it said last holds.
func (u *Upstream) DemandsLogin() (demands, known bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.demands, u.known
}

// LetsIn reports whether a new connection is known to be logged in as it is given. While the upstream does not answer, what it
// said last holds.
func (u *Upstream) LetsIn() bool { return u.lets.Load() }

// Status is the state of the upstream: its address, and why it is down, if it is.
func (u *Upstream) Status() (name string, err error) {
	name = u.Name()
	u.mu.Lock()
	defer u.mu.Unlock()
	return name, u.err
}
