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
	// DefaultTimeout limits connecting to the upstream.
	DefaultTimeout = 5 * time.Second
	// maxDials limits the number of simultaneous dials, so that clients that reconnect together do
	// not overload the upstream.
	maxDials = 64
	// dialPause is the average time for which a failed dial's error is returned without another
	// dial.
	dialPause = 50 * time.Millisecond
	// maxExchangedReply limits a reply that exchange reads, in bytes.
	maxExchangedReply = 64 << 10
)

// Upstream connects to the Redis that gets all commands except the proxy's own. Each client has its
// own connection to that Redis.
type Upstream struct {
	name string
	// options holds the current options. Only the password and the timeout ever change.
	options atomic.Pointer[redis.Options]
	addTLS  func(*tls.Config) // completes the TLS settings; nil if there is nothing to add
	log     *slog.Logger
	dials   chan struct{}
	pool    *pool
	// discovery is set if Sentinels report the address, node for a node of a cluster; else the
	// address is fixed.
	discovery *discovery
	node      *node
	// proxyID is the proxy's identity; if it is empty, the proxy does not check the upstream
	// (verify).
	proxyID string
	// mustBeStandalone is set if the proxy refuses a cluster's node or a Sentinel as upstream.
	mustBeStandalone bool
	// term counts how often another server became the upstream, or the current server turned out to
	// be unusable. onFailover ends the connections of earlier terms. A value in disconnectRequested
	// makes Run call onFailover.
	term                atomic.Uint64
	onFailover          func()
	disconnectRequested chan struct{}

	mu sync.Mutex
	// uncheckedRemaining is the number of connections until the next check of the upstream.
	uncheckedRemaining int
	// verified is set if the upstream was checked since it came up.
	verified     bool
	dialErr      error // the error of a dial that has just failed, until dialErrUntil
	dialErrUntil time.Time
	probed       bool
	err          error // the error of the last probe
	// grantsAll is set if a new connection may do everything, requiresLogin if it must log in
	// first.
	grantsAll, requiresLogin bool
	// probeAnswered is set once a probe was answered.
	probeAnswered bool
	// advice names the right scheme if the URL has a wrong scheme; otherwise it is nil. A probe
	// that is answered sets it to nil.
	advice error
	mode   modeState
	trials trials

	probes atomic.Uint64
	// hasOldRights is set while grantsAll describes an earlier master, until the current master is
	// reached.
	hasOldRights bool
	// masterName returns a lock master's name, empty for other servers; see RefuseMasters.
	masterName func(runID, addr string) string
}

// New returns the upstream for a redis, rediss or unix URL. Every connection begins with the URL's
// login and database. The timeout limits connecting to the upstream; 0 means DefaultTimeout.
func New(url string, timeout time.Duration, log *slog.Logger) (*Upstream, error) {
	opts, err := parse(url, timeout)
	if err != nil {
		return nil, err
	}
	u := &Upstream{
		name: opts.Addr, log: log, dials: make(chan struct{}, maxDials),
		onFailover: func() {}, disconnectRequested: make(chan struct{}, 1),
		trials: trials{enabled: func() bool { return false }, trialRequested: make(chan struct{}, 1)},
	}
	u.options.Store(opts)
	u.pool = newPool(u)
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

// errNeedsRestart refuses a URL that differs in more than the password.
var errNeedsRestart = errors.New("upstream: changing the server, database or user requires a restart")

// Apply changes the password in the URL and the timeout for all later connections. Existing
// connections stay as they are. The URL may differ from that of New only in the password. Any
// goroutine may call it at any time.
func (u *Upstream) Apply(url string, timeout time.Duration) error {
	next, err := parse(url, timeout)
	if err != nil {
		return err
	}
	opts := u.options.Load()
	if next.Addr != opts.Addr || next.DB != opts.DB ||
		next.Username != opts.Username ||
		(next.Password == "") != (opts.Password == "") ||
		(next.TLSConfig == nil) != (opts.TLSConfig == nil) {
		return errNeedsRestart
	}
	u.options.Store(next)
	return nil
}

// SetTLS sets a function that completes the TLS settings of each new connection: the certificate to
// show, and the certificate authorities to trust. SetTLS must be called before all other methods.
func (u *Upstream) SetTLS(addTLS func(*tls.Config)) { u.addTLS = addTLS }

// dial connects as go-redis would.
func (u *Upstream) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	opts := *u.options.Load()
	if opts.TLSConfig != nil {
		opts.TLSConfig = opts.TLSConfig.Clone()
		u.setServerName(opts.TLSConfig, addr)
		if u.addTLS != nil {
			u.addTLS(opts.TLSConfig)
		}
	}
	return redis.NewDialer(&opts)(ctx, network, addr)
}

// dialNow connects to the current upstream.
func (u *Upstream) dialNow(ctx context.Context) (net.Conn, error) {
	addr, err := u.Locate(ctx)
	if err != nil {
		return nil, err
	}
	return u.dial(ctx, u.options.Load().Network, addr)
}

// Failure returns the error for a cause, in plain words.
func (u *Upstream) Failure(cause error) *Error {
	u.mu.Lock()
	advice := u.advice
	u.mu.Unlock()
	if advice != nil && scheme.MayBeWrongScheme(cause) {
		return &Error{u.PublicName(), advice}
	}
	if u.node != nil {
		return &Error{u.PublicName(), publicCause(cause)}
	}
	return &Error{u.PublicName(), plainCause(cause)}
}

// PublicName returns the upstream's name for clients. The name of a cluster's node contains no
// address.
func (u *Upstream) PublicName() string {
	if u.node != nil {
		return u.node.publicName()
	}
	return u.Name()
}

// Name returns the upstream's address. If the Sentinels have not reported an address yet, it
// returns the master's name.
func (u *Upstream) Name() string {
	switch {
	case u.discovery != nil:
		return u.discovery.name()
	case u.node != nil:
		return u.node.name()
	}
	return u.name
}

// DB returns the database that every connection begins with.
func (u *Upstream) DB() int { return u.options.Load().DB }

// Timeout returns the limit for connecting, and for each internal command.
func (u *Upstream) Timeout() time.Duration { return u.options.Load().DialTimeout }

// Connect makes a connection that is ready for a client's commands.
func (u *Upstream) Connect(ctx context.Context) (net.Conn, error) {
	select {
	case u.dials <- struct{}{}:
		defer func() { <-u.dials }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if err := u.recentFailure(); err != nil {
		return nil, err
	}
	conn, err := u.dialNow(ctx)
	if err == nil {
		if err = u.handshake(conn); err == nil {
			err = u.verify(conn)
		}
		if err == nil {
			err = u.checkRole(conn)
		}
		if err == nil {
			u.forgetOldMaster()
			return conn, nil
		}
		_ = conn.Close()
	}
	return nil, u.recordFailure(err)
}

// forgetOldMaster forgets the rights at an earlier master, because the current master can be asked.
func (u *Upstream) forgetOldMaster() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.hasOldRights {
		u.hasOldRights, u.grantsAll = false, false
	}
}

// AskBusy sends a command to an upstream that is busy with a script, and returns the whole reply.
// The connection begins only with the URL's login, which a busy upstream accepts.
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
	if words := u.LoginCommand(); words != nil {
		if err := u.requireOK(conn, words); err != nil {
			return nil, u.Failure(err)
		}
	}
	if answer, err = u.exchangeFrame(conn, frame); err != nil {
		return nil, u.Failure(err)
	}
	return answer, nil
}

// Watch connects to a database. The caller uses the connection only to learn which keys change.
func (u *Upstream) Watch(ctx context.Context, db int) (net.Conn, error) {
	conn, err := u.Connect(ctx)
	if err != nil {
		return nil, err
	}
	if db != u.DB() {
		err = u.requireOK(conn, []string{"SELECT", strconv.Itoa(db)})
	}
	if err != nil {
		_ = conn.Close()
		return nil, u.Failure(err)
	}
	return u.pool.connections.add(conn), nil
}

// recentFailure returns the error of a dial that has just failed; nil if there is none.
func (u *Upstream) recentFailure() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.dialErr != nil && time.Now().Before(u.dialErrUntil) {
		return u.dialErr
	}
	return nil
}

func (u *Upstream) recordFailure(err error) error {
	failure := u.Failure(err)
	if u.discovery != nil {
		u.discovery.recordReconnectFailure()
	}
	if u.node != nil {
		u.node.onUnreachable()
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.dialErr = failure
	u.dialErrUntil = time.Now().Add(pauseAfter(err) + rand.N(dialPause))
	return u.dialErr
}

// handshake logs in, and selects the URL's database.
func (u *Upstream) handshake(conn net.Conn) error {
	var commands [][]string
	if words := u.LoginCommand(); words != nil {
		commands = append(commands, words)
	}
	if db := u.DB(); db != 0 {
		commands = append(commands, []string{"SELECT", strconv.Itoa(db)})
	}
	for _, words := range commands {
		if err := u.requireOK(conn, words); err != nil {
			return err
		}
	}
	return nil
}

// requireOK sends a command that must succeed.
func (u *Upstream) requireOK(conn net.Conn, words []string) error {
	answer, err := u.exchange(conn, words...)
	if err == nil && !resp.HasPrefix(answer, "+OK") {
		err = refusalOf(words, answer)
	}
	return err
}

// LoginCommand returns the AUTH command of the URL's login; nil if the URL has no login.
func (u *Upstream) LoginCommand() []string {
	opts := u.options.Load()
	return loginWords(opts.Username, opts.Password)
}

var errLongAnswer = errors.New("its answer is too long")

// exchange sends a command and returns its whole reply, which is never empty.
func (u *Upstream) exchange(conn net.Conn, words ...string) ([]byte, error) {
	return u.exchangeFrame(conn, resp.AppendWords(nil, words...))
}

// exchangeFrame sends a command in RESP, and returns its whole reply.
func (u *Upstream) exchangeFrame(conn net.Conn, frame []byte) ([]byte, error) {
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
		case len(answer) > maxExchangedReply:
			return nil, errLongAnswer
		}
	}
}
