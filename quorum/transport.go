package quorum

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"crypto/tls"

	"github.com/redis/go-redis/v9"
)

// transport carries batches to one master. exec fills replies, one for each op;
// when it returns an error the connection failed, and the ops that were not
// answered have that error and are unknown.
type transport interface {
	exec(ctx context.Context, ops []*op, replies []reply) error
	// probe asks for a sign of life, makes the scripts known, and measures the
	// round trip.
	probe(ctx context.Context) (roundTrip time.Duration, err error)
	close()
}

// redisTransport speaks to a master through go-redis pipelines. It holds one
// client per database, so that no command can run in a wrong one.
type redisTransport struct {
	options redis.Options
	timeout time.Duration

	mu      sync.Mutex
	clients map[int]*redis.Client
}

// newRedisTransport takes a master's URL; timeout is for one batch, dialling
// included.
func newRedisTransport(url string, timeout time.Duration) (*redisTransport, error) {
	opts, err := redis.ParseURL(url)
	if err != nil {
		return nil, err
	}
	if opts.DB != 0 {
		return nil, fmt.Errorf("database %d in the URL of a master: the client's SELECT chooses the database", opts.DB)
	}
	lockSettings(opts, timeout)
	return &redisTransport{options: *opts, timeout: timeout, clients: map[int]*redis.Client{}}, nil
}

// lockSettings makes go-redis never retry (a SET NX sent twice refuses itself),
// never wait longer than the timeout, and greet with nothing that an old or
// locked-down server refuses.
func lockSettings(opts *redis.Options, timeout time.Duration) {
	opts.Protocol = 2
	opts.DisableIdentity = true
	opts.MaxRetries = -1
	opts.DialerRetries = 1
	opts.DialTimeout, opts.ReadTimeout, opts.WriteTimeout = timeout, timeout, timeout
	opts.ContextTimeoutEnabled = true
	opts.PoolSize = maxLanes + 1
	opts.PipelinePoolSize = -1
	opts.Dialer = resettingDialer(opts)
}

// resettingDialer dials as go-redis would, and has a close discard what was not
// delivered: after a timeout nothing may reach the master late, behind its undo.
func resettingDialer(opts *redis.Options) func(context.Context, string, string) (net.Conn, error) {
	dial := redis.NewDialer(opts)
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		inner := conn
		if t, ok := inner.(*tls.Conn); ok {
			inner = t.NetConn()
		}
		if t, ok := inner.(*net.TCPConn); ok {
			_ = t.SetLinger(0)
		}
		return conn, nil
	}
}

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

func (t *redisTransport) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.clients {
		_ = c.Close()
	}
	t.clients = map[int]*redis.Client{}
}

// exec sends the ops in order, a pipeline for each run of the same database.
func (t *redisTransport) exec(ctx context.Context, ops []*op, replies []reply) error {
	var failed error
	for start := 0; start < len(ops); {
		end := start + 1
		for end < len(ops) && ops[end].change.key.DB == ops[start].change.key.DB {
			end++
		}
		if err := t.execRun(ctx, ops[start:end], replies[start:end]); err != nil {
			failed = err
		}
		start = end
	}
	return failed
}

func (t *redisTransport) execRun(ctx context.Context, ops []*op, replies []reply) error {
	pipe := t.client(ops[0].change.key.DB).Pipeline()
	cmds := make([]*redis.Cmd, len(ops))
	for i, o := range ops {
		cmds[i] = redis.NewCmd(ctx, command(o.change, o.eval)...)
		_ = pipe.Process(ctx, cmds[i])
	}
	_, _ = pipe.Exec(ctx)
	var failed error
	for i, cmd := range cmds {
		replies[i] = decode(ops[i].change.kind, cmd)
		if replies[i].unknown {
			failed = replies[i].err
		}
	}
	return failed
}

// command is what goes to a master for a change.
func command(c Change, eval bool) []any {
	switch c.kind {
	case kindAcquire:
		return []any{"SET", c.key.Name, c.token, "NX", "PX", millis(c.ttl)}
	case kindRelease:
		return call(releaseScript, eval, c.key.Name, c.token)
	case kindExtend:
		return call(extendScript, eval, c.key.Name, c.token, millis(c.ttl))
	case kindUndo:
		return call(undoScript, eval, c.key.Name, c.token, millis(c.minLeft), millis(c.ttl))
	default:
		return call(readScript, eval, c.key.Name)
	}
}

func call(s script, eval bool, key string, args ...any) []any {
	if eval {
		return append([]any{"EVAL", s.src, 1, key}, args...)
	}
	return append([]any{"EVALSHA", s.sha, 1, key}, args...)
}

func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// decode reads an answer. Error replies are votes that failed but are known:
// Redis does not apply a command that it answers with an error.
func decode(kind changeKind, cmd *redis.Cmd) reply {
	value, err := cmd.Val(), cmd.Err()
	var said redis.Error
	switch {
	case errors.Is(err, redis.Nil):
		return reply{vote: voteNo}
	case errors.As(err, &said):
		return reply{err: err}
	case err != nil:
		return reply{err: err, unknown: true}
	case kind == kindRead:
		return decodeRead(value)
	case value == "OK" || value == int64(1):
		return reply{vote: voteYes}
	case value == int64(-1):
		return reply{vote: voteAbsent}
	default:
		return reply{vote: voteNo}
	}
}

// decodeRead takes {value or nil, PTTL}.
func decodeRead(value any) reply {
	pair, _ := value.([]any)
	if len(pair) != 2 {
		return reply{err: fmt.Errorf("unexpected answer %v", value)}
	}
	held, ok := pair[0].(string)
	if !ok {
		return reply{vote: voteAbsent}
	}
	left, _ := pair[1].(int64)
	return reply{vote: voteYes, value: held, left: time.Duration(left) * time.Millisecond}
}

func isNoScript(err error) bool {
	return err != nil && strings.HasPrefix(err.Error(), "NOSCRIPT ")
}

// probes is how often a probe measures the round trip; the shortest counts.
const probes = 3

func (t *redisTransport) probe(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, t.timeout)
	defer cancel()
	client := t.client(0)
	_, err := client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		pipe.Ping(ctx)
		for _, s := range allScripts() {
			pipe.ScriptLoad(ctx, s.src)
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
