package move

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"redlock-proxy/commands/catalog/keys"
	"redlock-proxy/quorum"
	"redlock-proxy/quorum/place"
	"redlock-proxy/quorum/vote"
)

// Masters decide where the locks are, and hold them: a *quorum.Cluster, whose methods document the
// errors.
type Masters interface {
	// Placed is where the locks are; known is false while too few masters told.
	Placed() (at quorum.Placed, known bool)
	// Confirm is where they are, by what a majority told after it was called.
	Confirm(ctx context.Context) (quorum.Placed, error)
	// MayMove says why the locks cannot be moved now.
	MayMove() error
	// MoveOn has it decided that the era after one has the locks at a place, and returns it when a
	// majority votes in it, whoever had it decided; a moving place lasts as long as ctx. After an
	// error it may be decided all the same.
	MoveOn(ctx context.Context, from quorum.Placed, to place.Place) (quorum.Placed, error)
	// MayHold says why the masters cannot hold so many more bytes.
	MayHold(ctx context.Context, bytes int64) error
	// Proxies are the IDs of those that are heard of, this one's own included.
	Proxies() []string
	// Holding tells which of them said in an era that they hold back.
	Holding(ctx context.Context, era int) []quorum.Held

	Databases(ctx context.Context) ([]int, error)
	Names(ctx context.Context, db int, page func(names []string) (more bool, err error)) error
	Read(ctx context.Context, keys []quorum.Key) ([]quorum.Look, error)
	Update(ctx context.Context, key quorum.Key, expect *string, run func(quorum.Look) (quorum.Decision, error)) (quorum.Outcome, error)
}

// Connection is one connection to the upstream, always the same: when it is lost, all that is asked
// on it fails. It is for one goroutine.
type Connection interface {
	// Ask sends commands at once, and returns the reply to each: nil, an int64, a string, an error,
	// or a []any of these.
	Ask(ctx context.Context, commands ...[]string) ([]any, error)
	Close() error
}

// Options are what a Mover works with. All must be set but Prefix and Logger.
type Options struct {
	Masters Masters
	// Connect makes a connection to the upstream.
	Connect func(ctx context.Context) (Connection, error)
	// LockKeys are the globs of the keys that move.
	LockKeys []string
	// Place is where a key stands on the masters: behind Prefix.
	Place  func(db int, key string) quorum.Key
	Prefix string
	Logger *slog.Logger
}

// Order is what an operator wants.
type Order struct {
	// Back is to the upstream; else it is to the masters.
	Back bool
	// Abort ends a move that is under way, or was left undone: the locks stay where they were.
	Abort bool
	// EvenIfOthers has the connections of others at the upstream be ended. Else the locks are not
	// moved where there are any.
	EvenIfOthers bool
}

func (o Order) target() place.Place {
	if o.Back {
		return place.Upstream
	}
	return place.Masters
}

// ErrRunning says that a move is under way at this proxy.
var ErrRunning = errors.New("a move is under way at this proxy already")

// Mover moves the locks. It is safe for concurrent use; one run is made at a time.
type Mover struct {
	opts     Options
	lockKeys keys.Patterns
	turn     chan struct{}
	// settle is how long an era must have lasted before anything is written in it.
	settle time.Duration
	// patience bounds the wait for proxies to say that they hold back, copyTime all until the locks
	// are where they are to be, and lease giving up.
	patience, copyTime, lease time.Duration
}

// New makes a Mover.
func New(opts Options) *Mover {
	opts.Logger = cmp.Or(opts.Logger, slog.New(slog.DiscardHandler))
	return &Mover{
		opts: opts, lockKeys: keys.NewPatterns(opts.LockKeys...), turn: make(chan struct{}, 1),
		settle: vote.RoundLimit + vote.RoundLimit/10, patience: 10 * time.Second, copyTime: 2 * time.Minute, lease: place.Lease,
	}
}

// client is the key that a client has for a name on the masters. It is not ours where it is no lock
// key.
func (m *Mover) client(name string) (key string, ours bool) {
	key, ours = strings.CutPrefix(name, m.opts.Prefix)
	return key, ours && m.lockKeys.Match([]byte(key))
}

// Move does what is ordered, and tells of each step as it is taken. An ended ctx has it give up.
//
// Errors say where the locks are; ErrRunning is among them.
func (m *Mover) Move(ctx context.Context, order Order, report func(step string)) (Result, error) {
	say := func(step string) {
		m.opts.Logger.Debug("moving the locks: " + step) // the masters' era is logged by each proxy
		if report != nil {
			report(step)
		}
	}
	r := &run{Mover: m, order: order, say: say}
	if at, known := m.opts.Masters.Placed(); known {
		r.at = at
	}
	err := m.run(ctx, r)
	if r.result.At = r.at.Place; err != nil {
		err = fmt.Errorf("%s: %w", r.where(), err)
		m.opts.Logger.Warn("the locks were not moved", "cause", err)
	}
	return r.result, err
}

func (m *Mover) run(ctx context.Context, r *run) (err error) {
	if r.order.Abort {
		return r.abort(ctx)
	}
	select {
	case m.turn <- struct{}{}:
		defer func() { <-m.turn }()
	default:
		return ErrRunning
	}
	for {
		if err := r.awaitRest(ctx); err != nil {
			return err
		}
		if err := r.connected(ctx, r.move); !errors.Is(err, errClaimed) {
			return err
		}
	}
}

// connected does something with a connection to the upstream.
func (r *run) connected(ctx context.Context, do func(context.Context) error) (err error) {
	if r.conn, err = r.opts.Connect(ctx); err != nil {
		return err
	}
	defer r.conn.Close()
	if _, err := r.conn.Ask(ctx, []string{"CLIENT", "SETNAME", connectionName}); err != nil { // where it is refused, it goes without
		return err
	}
	return do(ctx)
}
