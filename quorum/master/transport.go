package master

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"redlock-proxy/internal/resp"
	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/guard"
	"redlock-proxy/quorum/guard/script"
	"redlock-proxy/quorum/register"
)

// Transport connects to one master.
type Transport interface {
	guard.Conn
	// Dial opens a link to a database. An error that is a resp.Error is a reply of the server.
	Dial(ctx context.Context, db int) (Link, error)
	// Watch opens a connection to a database, logged in and otherwise unused. The caller reads and
	// writes it. An error that is a resp.Error is a reply of the server.
	Watch(ctx context.Context, db int) (net.Conn, error)
	// Probe checks that the server answers, loads the scripts, and measures the round trip.
	Probe(ctx context.Context) (roundTrip time.Duration, err error)
	// IsUnsupported reports whether the error means that the server did not execute an operation
	// because the server does not support the form of the operation. The caller can send the
	// operation in another form.
	IsUnsupported(err error) bool
	// Do executes one command, outside of all batches.
	Do(ctx context.Context, words ...any) (any, error)
	// PinServer makes every connection reach the same server process. It calls beforeNewServer
	// before a connection may reach another process.
	PinServer(beforeNewServer func())
	// SetPassword sets the password for new connections. It does nothing if the URL has no
	// password.
	SetPassword(password string)
	// Close closes all connections. The next connection may reach another server.
	Close()
}

// redisTransport connects to a master: over its own links for batches, and through go-redis for
// other commands. Each database has its own connections, so a command cannot run in the wrong
// database.
type redisTransport struct {
	guard.Redis
	options      redis.Options
	configureTLS func(*tls.Config) // may be nil
	timeout      time.Duration
	timeouts     *adaptiveTimeout

	// password is the password for new connections.
	password atomic.Pointer[string]

	// beforeRedis7 is set for a server before Redis 7.
	beforeRedis7 atomic.Bool
	// scriptMissing is set if the server did not know the script for several releases.
	// noMultiKeyScripts is set if the server does not run scripts on several keys.
	scriptMissing, noMultiKeyScripts atomic.Bool

	// reached is set once a probe was successful.
	reached atomic.Bool

	mu      sync.Mutex
	clients map[int]*redis.Client
	// links holds the connections outside of go-redis, with the functions that close them.
	links map[any]func()
	// replyMemory limits the memory for replies over all links.
	replyMemory *resp.Allowance
	// serverNumber counts the server processes that connections may have reached.
	serverNumber uint64
	// runID is the run_id of the server process that every connection must reach; empty if
	// connections are not pinned, or no connection has reached a server yet.
	runID string
	// beforeNewServer runs before a connection may reach another server process.
	beforeNewServer func()
}

// NameFromURL returns the address in the URL of a master: host:port, or the path of a socket.
func NameFromURL(raw string) string {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return "(unreadable URL)"
	case u.Host != "":
		return u.Host
	default:
		return u.Path
	}
}

// Access holds the settings for the connections to a server.
type Access struct {
	// Timeout limits each dial, and the wait for the replies to each batch. The limit of a Transport
	// grows while replies are slow (timeout.go).
	Timeout time.Duration
	// TLS, unless it is nil, changes the TLS settings before each connection to a rediss:// server:
	// which certificate to present, and which certificate authorities to trust.
	TLS func(*tls.Config)
	// TrialKey is the key of trial writes (availability.TrialCommand): one that no client uses, if
	// possible one to which the proxy's user has rights only if it has rights to lock keys. The
	// default is a key of the proxies.
	TrialKey string
}

// NewTransport returns a Transport for a master's URL, which must not name a database.
func NewTransport(url string, access Access) (Transport, error) {
	return newRedisTransport(url, access)
}

func newRedisTransport(url string, access Access) (*redisTransport, error) {
	opts, err := redis.ParseURL(url)
	if err != nil {
		return nil, err
	}
	if opts.DB != 0 {
		return nil, fmt.Errorf("the URL of a master names database %d, which the client's SELECT chooses; leave it out",
			opts.DB)
	}
	timeouts := newAdaptiveTimeout(access.Timeout)
	applyOptions(opts, timeouts.limit, access.TLS)
	t := &redisTransport{
		options: *opts, configureTLS: access.TLS, timeout: access.Timeout, timeouts: timeouts,
		clients: map[int]*redis.Client{}, links: map[any]func(){}, replyMemory: resp.NewAllowance(maxReplyBytes),
		beforeNewServer: func() {},
	}
	if user, password := opts.Username, opts.Password; password != "" {
		t.password.Store(&password)
		t.options.CredentialsProvider = func() (string, string) { return user, *t.password.Load() }
	}
	t.Redis = guard.Redis{Do: t.exchange, TrialKey: access.TrialKey}
	return t, nil
}

// SetPassword implements Transport.
func (t *redisTransport) SetPassword(password string) { t.password.Store(&password) }

func (t *redisTransport) client(db int) *redis.Client {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.clients[db]
	if c == nil {
		opts := t.options
		opts.DB = db
		c = redis.NewClient(&opts)
		t.clients[db] = c
	}
	return c
}

// Close implements Transport.
func (t *redisTransport) Close() {
	t.mu.Lock()
	clients, links := t.clients, t.links
	t.clients, t.links = map[int]*redis.Client{}, map[any]func(){}
	t.runID = ""
	t.serverNumber++
	t.mu.Unlock()
	for _, c := range clients {
		_ = c.Close()
	}
	for _, closeLink := range links {
		closeLink()
	}
}

func (t *redisTransport) currentServer() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.serverNumber
}

// addLink registers a link to the server process with this number, and the function that closes the
// link. It reports whether links may still reach that process.
func (t *redisTransport) addLink(k any, serverNumber uint64, closeLink func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.serverNumber != serverNumber {
		return false
	}
	t.links[k] = closeLink
	return true
}

func (t *redisTransport) removeLink(k any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.links, k)
}

// recordTime records how long a batch took, or that it timed out.
func (t *redisTransport) recordTime(f *Batch, err error) {
	if now := time.Now(); err != nil && !now.Before(f.deadline) {
		t.timeouts.observeTimeout()
	} else {
		t.timeouts.observe(now.Sub(f.sentAt))
	}
}

// IsUnsupported implements Transport. It also records whether the server is older than Redis 7.
func (t *redisTransport) IsUnsupported(err error) bool {
	if err != nil && err.Error() == "ERR syntax error" {
		t.beforeRedis7.Store(true) // before Redis 7 SET does not combine NX and GET
		return true
	}
	return isNoScript(err) || isCrossSlot(err)
}

// noteScriptError records why the script for several releases failed, if the server lacks it or
// does not support it.
func (t *redisTransport) noteScriptError(err error) {
	switch {
	case isNoScript(err):
		t.scriptMissing.Store(true)
	case isCrossSlot(err):
		t.noMultiKeyScripts.Store(true)
	}
}

// decode decodes a reply. An error reply means that Redis has not executed the command. WRONGTYPE
// also means that the key holds a foreign value.
func decode(cellOp cell.Op, raw any) reply {
	if refusal, ok := raw.(resp.Error); ok {
		if strings.HasPrefix(string(refusal), "WRONGTYPE ") {
			foreign := []cell.KeyState{{Cell: cell.Parse(string(refusal))}}
			return reply{State: register.Counted, Answer: cell.Answer{KeyStates: foreign}}
		}
		return reply{State: register.Failed, Err: refusal}
	}
	if size, skipped := parseSize(raw); skipped {
		return reply{State: register.Uncounted, Err: &tooLongError{size}}
	}
	answer, err := cellOp.Decode(raw)
	if err != nil {
		return reply{State: register.Unknown, Err: err}
	}
	return reply{State: register.Counted, Answer: answer}
}

// parseSize returns the size of the strings of a reply in bytes, and whether any of them exceeded
// the limits.
func parseSize(raw any) (size int, skipped bool) {
	switch raw := raw.(type) {
	case resp.SkippedSize:
		return int(raw), true
	case string:
		return len(raw), false
	case []any:
		for _, part := range raw {
			n, exceeds := parseSize(part)
			size, skipped = size+n, skipped || exceeds
		}
	}
	return size, skipped
}

func isNoScript(err error) bool {
	return err != nil && strings.HasPrefix(err.Error(), "NOSCRIPT ")
}

// isCrossSlot reports whether a server, such as a node of a Redis Cluster, refused a script on keys
// of several slots.
func isCrossSlot(err error) bool { return err != nil && strings.HasPrefix(err.Error(), "CROSSSLOT ") }

// pingsPerProbe is the number of round trips that a probe measures. The shortest one counts.
const pingsPerProbe = 3

// Probe implements Transport.
func (t *redisTransport) Probe(ctx context.Context) (time.Duration, error) {
	roundTrip, err := t.probeServer(ctx)
	if errors.Is(err, errDifferentServer) {
		t.acceptNewServer()
		roundTrip, err = t.probeServer(ctx)
	}
	switch {
	case err == nil:
		t.reached.Store(true)
	case !t.reached.Load():
		err = t.withAdvice(ctx, err)
	}
	return roundTrip, err
}

// withAdvice returns a remedy if the scheme of the URL is wrong, or else the error of a server that
// no probe has reached yet.
func (t *redisTransport) withAdvice(ctx context.Context, err error) error {
	if advice := adviceFor(ctx, &t.options, t.timeouts.current(), err); advice != "" {
		return errors.New(advice)
	}
	return err
}

func (t *redisTransport) probeServer(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, t.timeouts.current())
	defer cancel()
	client := t.client(0)
	_, err := client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		pipe.Ping(ctx)
		for _, s := range cell.Scripts() {
			pipe.ScriptLoad(ctx, s.Source)
		}
		for _, s := range script.All() {
			pipe.ScriptLoad(ctx, s.Source)
		}
		return nil
	})
	var refusal redis.Error
	if err != nil && !errors.As(err, &refusal) {
		return 0, err
	}
	if err := client.Ping(ctx).Err(); err != nil {
		return 0, err // LOADING, for example
	}
	best := t.timeout
	for range pingsPerProbe {
		start := time.Now()
		if client.Ping(ctx).Err() == nil {
			best = min(best, time.Since(start))
		}
	}
	return best, nil
}

// Do implements Transport, in database 0.
func (t *redisTransport) Do(ctx context.Context, words ...any) (any, error) {
	ctx, cancel := context.WithTimeout(ctx, t.timeouts.current())
	defer cancel()
	return resultOf(t.client(0).Do(ctx, words...))
}

// exchange sends commands in database 0 in one pipeline, as guard.Redis requires.
func (t *redisTransport) exchange(ctx context.Context, commands ...[]any) []any {
	ctx, cancel := context.WithTimeout(ctx, t.timeout)
	defer cancel()
	pipe := t.client(0).Pipeline()
	cmds := make([]*redis.Cmd, len(commands))
	for i, words := range commands {
		cmds[i] = pipe.Do(ctx, words...)
	}
	_, _ = pipe.Exec(ctx)
	replies := make([]any, len(commands))
	for i, cmd := range cmds {
		raw, err := resultOf(cmd)
		if replies[i] = raw; err != nil {
			replies[i] = err
		}
	}
	return replies
}

// resultOf returns the reply to a command. A nil reply is not an error.
func resultOf(cmd *redis.Cmd) (any, error) {
	raw, err := cmd.Result()
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	return raw, err
}
