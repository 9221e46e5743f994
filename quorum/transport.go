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
// answered have that error and are unknown. A witness, if there is one, sees what the
// parts of the batch end with.
type transport interface {
	ward
	exec(ctx context.Context, ops []*op, replies []reply, w *witness) error
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
	// runID is that of the server which every connection has to reach, once one is known
	// and if they are pinned.
	runID string
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
	opts.PoolSize = maxLanes + 3 // the prober, and catch-ups of two other masters
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
func (t *redisTransport) exec(ctx context.Context, ops []*op, replies []reply, w *witness) error {
	var failed error
	for start := 0; start < len(ops); {
		end := start + 1
		for end < len(ops) && ops[end].change.key.DB == ops[start].change.key.DB {
			end++
		}
		looked, err := t.execRun(ctx, ops[start:end], replies[start:end], w != nil)
		if err != nil {
			failed = err
		}
		if w != nil {
			looked.from, looked.to = start, end
			w.seen = append(w.seen, looked)
		}
		start = end
	}
	return failed
}

func (t *redisTransport) execRun(ctx context.Context, ops []*op, replies []reply, watched bool) (seen, error) {
	looked := seen{db: ops[0].change.key.DB}
	pipe := t.client(looked.db).Pipeline()
	cmds := make([]*redis.Cmd, len(ops))
	for i, o := range ops {
		cmds[i] = redis.NewCmd(ctx, command(o.change, o.eval)...)
		_ = pipe.Process(ctx, cmds[i])
	}
	var marker *redis.StringCmd
	var now *redis.TimeCmd
	if watched {
		marker, now = look(ctx, pipe)
	}
	sent := time.Now()
	_, _ = pipe.Exec(ctx)
	if watched {
		looked.marker, looked.sighting = marker.Val(), sighted(sent, time.Now(), now)
	}
	var failed error
	for i, cmd := range cmds {
		replies[i] = decode(ops[i].change, cmd)
		if replies[i].unknown {
			failed = replies[i].err
		}
	}
	return looked, failed
}

// command is what goes to a master for a change.
func command(c Change, eval bool) []any {
	key := []any{c.key.Name}
	switch c.kind {
	case kindAcquire:
		return append([]any{"SET", c.key.Name, c.token, "NX"}, expiry(c.ttl)...)
	case kindRelease:
		return call(releaseScript, eval, key, c.token)
	case kindExtend:
		return call(extendScript, eval, key, c.token, millis(c.ttl))
	case kindUndo:
		return call(undoScript, eval, key, c.token, pttl(c.minLeft), pttl(c.ttl))
	case kindEdit:
		names, args := editArgs(c.edits)
		return call(editScript, eval, names, args...)
	case kindOffer:
		return call(offerScript, eval, key, c.nonce, c.token, millis(c.ttl))
	case kindMend:
		return call(mendScript, eval, key, c.nonce, c.token, pttl(c.ttl))
	case kindPlain:
		return c.args
	default:
		return call(readScript, eval, namesOf(c.keys))
	}
}

// expiry is SET's option for a TTL, if it has one.
func expiry(ttl time.Duration) []any {
	if ttl < 0 {
		return nil
	}
	return []any{"PX", millis(ttl)}
}

// pttl is what PTTL says of such a remaining time.
func pttl(left time.Duration) string {
	if left < 0 {
		return "-1"
	}
	return millis(left)
}

func namesOf(keys []Key) []any {
	names := make([]any, len(keys))
	for i, k := range keys {
		names[i] = k.Name
	}
	return names
}

// editArgs are the keys and arguments of editScript.
func editArgs(edits []Edit) (names, args []any) {
	for _, e := range edits {
		names = append(names, e.Key.Name)
		there := "0"
		if e.Was.Present {
			there = "1"
		}
		act := "px"
		switch {
		case !e.changes():
			act = "keep"
		case !e.Now.Present:
			act = "del"
		case e.KeepLeft:
			act = "keepttl"
		case e.Now.Left < 0:
			act = "set"
		}
		args = append(args, there, e.Was.Value, act, e.Now.Value, millis(e.Now.Left))
	}
	return names, args
}

func call(s script, eval bool, keys []any, args ...any) []any {
	words := make([]any, 0, 3+len(keys)+len(args))
	if eval {
		words = append(words, "EVAL", s.src, len(keys))
	} else {
		words = append(words, "EVALSHA", s.sha, len(keys))
	}
	return append(append(words, keys...), args...)
}

func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// decode reads an answer. Error replies are votes that failed but are known:
// Redis does not apply a command that it answers with an error.
func decode(c Change, cmd *redis.Cmd) reply {
	value, err := cmd.Val(), cmd.Err()
	var said redis.Error
	switch {
	case errors.Is(err, redis.Nil):
		return reply{vote: voteNo}
	case errors.As(err, &said):
		return reply{err: err}
	case err != nil:
		return reply{err: err, unknown: true}
	case c.kind == kindPlain:
		return reply{vote: voteYes, said: value}
	case value == "OK" || value == int64(1):
		return reply{vote: voteYes}
	case value == int64(-1):
		return reply{vote: voteAbsent}
	}
	told, _ := value.([]any)
	switch c.kind {
	case kindRead:
		return decodeEntries(voteYes, told, len(c.keys))
	case kindEdit:
		return decodeEdit(told, len(c.edits))
	case kindRelease, kindExtend:
		return decodeEntries(voteNo, told, 1)
	default:
		return reply{vote: voteNo}
	}
}

// decodeEdit takes {1 or 0, value or nil, PTTL, …}.
func decodeEdit(told []any, keys int) reply {
	if len(told) == 0 {
		return reply{err: fmt.Errorf("unexpected answer %v", told)}
	}
	if told[0] == int64(1) {
		return decodeEntries(voteYes, told[1:], keys)
	}
	return decodeEntries(voteNo, told[1:], keys)
}

// decodeEntries takes {value or nil, PTTL, …} for so many keys.
func decodeEntries(v vote, told []any, keys int) reply {
	if len(told) != 2*keys {
		return reply{err: fmt.Errorf("unexpected answer %v", told)}
	}
	entries := make([]Entry, keys)
	for i := range entries {
		value, present := told[2*i].(string)
		left, _ := told[2*i+1].(int64)
		entries[i] = Entry{Present: present, Value: value, Left: time.Duration(left) * time.Millisecond}
	}
	return reply{vote: v, entries: entries}
}

func isNoScript(err error) bool {
	return err != nil && strings.HasPrefix(err.Error(), "NOSCRIPT ")
}

// probes is how often a probe measures the round trip; the shortest counts.
const probes = 3

func (t *redisTransport) probe(ctx context.Context) (time.Duration, error) {
	roundTrip, err := t.probeServer(ctx)
	if errors.Is(err, errOtherServer) {
		t.renew()
		return t.probeServer(ctx)
	}
	return roundTrip, err
}

func (t *redisTransport) probeServer(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, t.timeout)
	defer cancel()
	client := t.client(0)
	_, err := client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		pipe.Ping(ctx)
		for _, s := range append(allScripts(), guardScripts()...) {
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
