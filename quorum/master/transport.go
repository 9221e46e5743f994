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

// Transport is the way to one master.
type Transport interface {
	guard.Conn
	// Dial makes a connection for batches, to a database. An error that is a resp.Error is an
	// answer of the server.
	Dial(ctx context.Context, db int) (Link, error)
	// Watch makes a connection to a database, logged in, over which nothing was asked yet; its
	// caller reads and writes it. An error that is a resp.Error is an answer of the server.
	Watch(ctx context.Context, db int) (net.Conn, error)
	// Probe asks for a sign of life, makes the scripts known, and measures the round trip.
	Probe(ctx context.Context) (roundTrip time.Duration, err error)
	// Misses reports whether an operation was not done, by its error, because the server
	// does not know its form, and that another form will do.
	Misses(err error) bool
	// Do sends one command by itself, outside of all batches.
	Do(ctx context.Context, words ...any) (any, error)
	// Pin has every connection reach the same life of the same server. lost is called before
	// one may reach another.
	Pin(lost func())
	// SetPassword has connections that are made from now on log in with another password than that
	// of the URL. It does nothing where the URL has none.
	SetPassword(password string)
	// Close closes all connections. The next one may reach another server.
	Close()
}

// redisTransport speaks to a master: over links of its own for batches, and through go-redis
// for the rest. Each database has connections of its own, so that no command can run in a
// wrong one.
type redisTransport struct {
	guard.Redis
	options redis.Options
	secure  func(*tls.Config) // may be nil
	timeout time.Duration
	waiting *waiting

	// password is that of connections to come.
	password atomic.Pointer[string]

	// old is set for a server before Redis 7.
	old atomic.Bool
	// missing is set where the server did not know the script that does several releases, apart
	// where it does not do scripts on several keys.
	missing, apart atomic.Bool

	// reached is set once a probe was answered.
	reached atomic.Bool

	mu      sync.Mutex
	clients map[int]*redis.Client
	// links are the connections that it does not leave to go-redis, and how each is closed.
	links map[any]func()
	// answers is what may be held of its answers, over all links.
	answers *resp.Allowance
	// life counts the servers that connections were let reach.
	life uint64
	// runID is that of the server which every connection has to reach, once one is known
	// and if they are pinned.
	runID string
	// lost is called before a connection may reach another server.
	lost func()
}

// NameIn returns the address in the URL of a master: host:port, or the path of a socket.
func NameIn(raw string) string {
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

// NewTransport takes a master's URL, which names no database; timeout is for one batch, dialling
// included. secure adds to the TLS settings of each connection before it is made; it may be nil.
func NewTransport(url string, timeout time.Duration, secure func(*tls.Config)) (Transport, error) {
	return newRedisTransport(url, timeout, secure)
}

func newRedisTransport(url string, timeout time.Duration, secure func(*tls.Config)) (*redisTransport, error) {
	opts, err := redis.ParseURL(url)
	if err != nil {
		return nil, err
	}
	if opts.DB != 0 {
		return nil, fmt.Errorf("database %d in the URL of a master: the client's SELECT chooses the database", opts.DB)
	}
	waiting := newWaiting(timeout)
	lockSettings(opts, waiting.limit, secure)
	t := &redisTransport{
		options: *opts, secure: secure, timeout: timeout, waiting: waiting,
		clients: map[int]*redis.Client{}, links: map[any]func(){}, answers: resp.NewAllowance(maxAnswers), lost: func() {},
	}
	if user, password := opts.Username, opts.Password; password != "" {
		t.password.Store(&password)
		t.options.CredentialsProvider = func() (string, string) { return user, *t.password.Load() }
	}
	t.Redis.Do = t.exchange
	return t, nil
}

// SetPassword is of Transport.
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

// Close closes all connections. The next one may reach another server.
func (t *redisTransport) Close() {
	t.mu.Lock()
	clients, links := t.clients, t.links
	t.clients, t.links = map[int]*redis.Client{}, map[any]func(){}
	t.runID = ""
	t.life++
	t.mu.Unlock()
	for _, c := range clients {
		_ = c.Close()
	}
	for _, end := range links {
		end()
	}
}

func (t *redisTransport) lifeNow() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.life
}

// keep remembers a link that was dialled for a life of the server, and how it is closed, and
// reports whether that is the one that links may reach.
func (t *redisTransport) keep(k any, life uint64, end func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.life != life {
		return false
	}
	t.links[k] = end
	return true
}

func (t *redisTransport) forget(k any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.links, k)
}

// learn takes how long a batch took, and whether that was in time.
func (t *redisTransport) learn(f *Flight, err error) {
	if got := time.Now(); err != nil && !got.Before(f.until) {
		t.waiting.missed()
	} else {
		t.waiting.answered(got.Sub(f.sent))
	}
}

// Misses reports whether the server did not know how to do it, by the error: it has
// not done it, and can in another form.
func (t *redisTransport) Misses(err error) bool {
	if err != nil && err.Error() == "ERR syntax error" {
		t.old.Store(true) // before Redis 7 SET does not combine NX and GET
		return true
	}
	return isNoScript(err) || isCrossSlot(err)
}

// heed takes the error of a script that does several releases, if there was one.
func (t *redisTransport) heed(err error) {
	switch {
	case isNoScript(err):
		t.missing.Store(true)
	case isCrossSlot(err):
		t.apart.Store(true)
	}
}

// decode reads an answer. Error replies are known: Redis does not do a command that it
// answers with an error.
func decode(do cell.Op, said any) reply {
	if refusal, ok := said.(resp.Error); ok {
		if strings.HasPrefix(string(refusal), "WRONGTYPE ") {
			return reply{State: register.Counted, Answer: cell.Answer{Found: []cell.Found{{Cell: cell.Parse(string(refusal))}}}}
		}
		return reply{State: register.Failed, Err: refusal}
	}
	if size, skipped := sizeIn(said); skipped {
		return reply{State: register.Uncounted, Err: &tooLongError{size}}
	}
	answer, err := do.Decode(said)
	if err != nil {
		return reply{State: register.Unknown, Err: err}
	}
	return reply{State: register.Counted, Answer: answer}
}

// sizeIn is how many bytes the strings of an answer have, and whether there was no room for any of
// them.
func sizeIn(said any) (size int, skipped bool) {
	switch said := said.(type) {
	case resp.Skipped:
		return int(said), true
	case string:
		return len(said), false
	case []any:
		for _, part := range said {
			n, over := sizeIn(part)
			size, skipped = size+n, skipped || over
		}
	}
	return size, skipped
}

func isNoScript(err error) bool {
	return err != nil && strings.HasPrefix(err.Error(), "NOSCRIPT ")
}

// isCrossSlot reports whether a server, as one of a Redis Cluster, does not do a script on keys of
// several slots.
func isCrossSlot(err error) bool { return err != nil && strings.HasPrefix(err.Error(), "CROSSSLOT ") }

// probes is how often a probe measures the round trip; the shortest counts.
const probes = 3

// Probe is of Transport.
func (t *redisTransport) Probe(ctx context.Context) (time.Duration, error) {
	roundTrip, err := t.probeServer(ctx)
	if errors.Is(err, errOtherServer) {
		t.renew()
		roundTrip, err = t.probeServer(ctx)
	}
	switch {
	case err == nil:
		t.reached.Store(true)
	case !t.reached.Load():
		err = t.advised(ctx, err)
	}
	return roundTrip, err
}

// advised is the error of a server that was never reached; where its URL has the wrong scheme, it
// names that.
func (t *redisTransport) advised(ctx context.Context, err error) error {
	if advice := adviceFor(ctx, &t.options, t.waiting.time(), err); advice != "" {
		return errors.New(advice)
	}
	return err
}

func (t *redisTransport) probeServer(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, t.waiting.time())
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
	var said redis.Error
	if err != nil && !errors.As(err, &said) {
		return 0, err
	}
	if err := client.Ping(ctx).Err(); err != nil {
		return 0, err // LOADING, for one
	}
	best := t.timeout
	for range probes {
		start := time.Now()
		if client.Ping(ctx).Err() == nil {
			best = min(best, time.Since(start))
		}
	}
	return best, nil
}

// Do sends one command of database 0, by itself. A nil answer is no error.
func (t *redisTransport) Do(ctx context.Context, words ...any) (any, error) {
	ctx, cancel := context.WithTimeout(ctx, t.waiting.time())
	defer cancel()
	return resultOf(t.client(0).Do(ctx, words...))
}

// exchange does commands in database 0, all at once; see guard.Redis.
func (t *redisTransport) exchange(ctx context.Context, commands ...[]any) []any {
	ctx, cancel := context.WithTimeout(ctx, t.timeout)
	defer cancel()
	pipe := t.client(0).Pipeline()
	asked := make([]*redis.Cmd, len(commands))
	for i, words := range commands {
		asked[i] = pipe.Do(ctx, words...)
	}
	_, _ = pipe.Exec(ctx)
	answers := make([]any, len(commands))
	for i, one := range asked {
		said, err := resultOf(one)
		if answers[i] = said; err != nil {
			answers[i] = err
		}
	}
	return answers
}

// resultOf is what a command was answered. A nil answer is no error.
func resultOf(asked *redis.Cmd) (any, error) {
	said, err := asked.Result()
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	return said, err
}
