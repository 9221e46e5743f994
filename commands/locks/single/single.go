package single

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"redlock-proxy/commands/catalog/keys"
	"redlock-proxy/commands/command"
	"redlock-proxy/internal/resp"
	"redlock-proxy/quorum"
	"redlock-proxy/quorum/queue"
	"redlock-proxy/quorum/wake"
)

// patience is how long the upstream may take for what is no client's own question.
const patience = 2 * time.Second

// Places says where the locks are: a *quorum.Cluster, whose methods document the rest.
type Places interface {
	Placed() (at quorum.Placed, known bool)
	Turned() <-chan struct{}
}

// Options are what Locks work with.
type Options struct {
	// LockKeys are the globs of the keys that are locks.
	LockKeys []string
	// Name is the upstream's address. The default is a word for it.
	Name func() string
	// Watched makes connections on which the upstream reports changes. Where it is nil, who waits polls.
	Watched wake.Server
	// Places says where the locks are. Waits end when that is not the upstream any more. Where it is nil the locks stay.
	Places Places
	// Logger logs that the upstream cannot be watched. The default is silence.
	Logger *slog.Logger
}

// Locks are those at the upstream, for all clients of a proxy. They are safe for concurrent use.
type Locks struct {
	opts     Options
	lockKeys keys.Patterns
	queues   queue.Queues[quorum.Key]
	waker    *wake.Waker
	tasks    sync.WaitGroup
}

// New makes them. It connects to nothing as long as nobody waits.
func New(opts Options) *Locks {
	opts.Logger = cmp.Or(opts.Logger, slog.New(slog.DiscardHandler))
	if opts.Name == nil {
		opts.Name = func() string { return "upstream" }
	}
	l := &Locks{opts: opts, lockKeys: keys.NewPatterns(opts.LockKeys...)}
	var watched []wake.Server
	if opts.Watched != nil {
		watched = append(watched, opts.Watched)
	}
	l.waker = wake.New(wake.Options{Servers: watched, Quorum: 1, Patience: patience, Logger: opts.Logger, Rand: rand.Float64})
	return l
}

// Close ends what goes on in the background. Nobody may wait any more.
func (l *Locks) Close() {
	l.waker.Close()
	l.tasks.Wait()
}

// Waiting is how many clients wait for a lock.
func (l *Locks) Waiting() int { return l.queues.Len() }

// Has reports whether a key is one of these locks.
func (l *Locks) Has(key []byte) bool { return l.lockKeys.Match(key) }

// Refusal is an error reply of the upstream.
type Refusal string

// Error is its text.
func (r Refusal) Error() string { return string(r) }

// Reply is what the client gets.
func (r Refusal) Reply() string { return string(r) }

var (
	errFence      = errors.New("FENCE needs the locks on the masters: it comes after 'redlock-proxy move' (docs/migration.md)")
	errNoUpstream = errors.New("there is no upstream")
)

// For are the locks as the client of a call may use them, while that is carried out.
func (l *Locks) For(c command.Call) *ForClient {
	return &ForClient{Locks: l, ctx: c.Ctx, client: c.Client}
}

// ForClient are the locks as one client may use them. It belongs to the goroutine that runs the client's commands.
type ForClient struct {
	*Locks
	// ctx is the call's. What is sent is awaited with it, also where a wait is over: else nobody would know what came of it.
	ctx    context.Context
	client *command.Client
}

// put has the upstream carry out a command. Its error replies are a [Refusal].
func (f *ForClient) put(words ...string) ([]byte, error) {
	if f.client.Put == nil {
		return nil, errNoUpstream
	}
	reply, err := f.client.Put(f.ctx, words...)
	if err == nil && resp.Begins(reply, "-") {
		err = Refusal(resp.FirstLine(reply))
	}
	return reply, err
}

// number is put of a command that is answered with a number.
func (f *ForClient) number(words ...string) (int64, error) {
	reply, err := f.put(words...)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(resp.FirstLine(reply), 10, 64)
	if err != nil || !resp.Begins(reply, ":") {
		return 0, unexpected(words[0], reply)
	}
	return n, nil
}

func unexpected(command string, reply []byte) error {
	return fmt.Errorf("the upstream answered %.64q to %s", reply, command)
}
