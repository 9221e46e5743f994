package move

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"redlock-proxy/commands/catalog/keys"
	"redlock-proxy/quorum"
	"redlock-proxy/quorum/location"
	"redlock-proxy/quorum/vote"
)

// Masters decides the location of the locks, and holds them. *quorum.Cluster implements it, and
// documents the methods and their errors.
type Masters interface {
	CurrentLocation() (at quorum.Location, known bool)
	Confirm(ctx context.Context) (quorum.Location, error)
	IsDecided(at quorum.Location) bool
	CheckMove() error
	DecideLocation(ctx context.Context, from quorum.Location, to location.Place) (quorum.Location, error)
	CheckFreeMemory(ctx context.Context, bytes int64) error
	PauseReports(ctx context.Context, era int) (reports []quorum.PauseReport, missing []string)
	Databases(ctx context.Context) ([]int, error)
	Names(ctx context.Context, db int, page func(names []string) (more bool, err error)) error
	Read(ctx context.Context, keys []quorum.Key) ([]quorum.Snapshot, error)
	Update(
		ctx context.Context, key quorum.Key, expectedValue *string, run func(quorum.Snapshot) (quorum.Decision, error),
	) (quorum.Outcome, error)
}

// Connection is a single connection to the upstream. When it is lost, all later requests fail. It
// belongs to one goroutine.
type Connection interface {
	// Ask sends commands together, and returns the reply to each: nil, an int64, a string, an
	// error, or a []any of such values.
	Ask(ctx context.Context, commands ...[]string) ([]any, error)
	// CheckCurrent returns an error if new connections may lead to a different server.
	CheckCurrent(ctx context.Context) error
	Close() error
}

// Options configures a Mover. All fields but Prefix and Logger are required.
type Options struct {
	Masters Masters
	// Connect makes a connection to the upstream.
	Connect func(ctx context.Context) (Connection, error)
	// LockKeys holds the globs of the keys that move.
	LockKeys []string
	// KeyOnMasters returns the key of a lock on the masters. The key begins with Prefix.
	KeyOnMasters func(db int, key string) quorum.Key
	Prefix       string
	Logger       *slog.Logger
}

// Request holds the operator's request.
type Request struct {
	// ToUpstream moves the locks to the upstream instead of the masters.
	ToUpstream bool
	// Abort ends a move that is running or unfinished. The locks stay at the source.
	Abort bool
	// CloseForeignConns closes the connections at the upstream that do not belong to proxies.
	// Without CloseForeignConns, such connections prevent the move. If the locks are already at the
	// target, CloseForeignConns removes the lock keys that an earlier move left.
	CloseForeignConns bool
}

func (o Request) target() location.Place {
	if o.ToUpstream {
		return location.Upstream
	}
	return location.Masters
}

// ErrRunning reports that this proxy is already running a move.
var ErrRunning = errors.New("this proxy is already running a move")

// Mover moves the locks. It is safe for concurrent use, and makes one run at a time.
type Mover struct {
	opts     Options
	lockKeys keys.Patterns
	// running is held by the run that moves the locks.
	running sync.Mutex
	// eraDelay is the time that an era must have lasted before the mover writes in it.
	eraDelay time.Duration
	// pauseTimeout limits the wait for proxies to pause, copyTimeout the time until the locks have
	// arrived, and lease the time to abort.
	pauseTimeout, copyTimeout, lease time.Duration
}

// New returns a Mover with these options.
func New(opts Options) *Mover {
	opts.Logger = cmp.Or(opts.Logger, slog.New(slog.DiscardHandler))
	return &Mover{
		opts: opts, lockKeys: keys.NewPatterns(opts.LockKeys...),
		eraDelay: vote.RoundLimit + vote.RoundLimit/10, pauseTimeout: 7 * time.Second, copyTimeout: 2 * time.Minute,
		lease: location.Lease,
	}
}

// clientKey returns the client's key for a name on the masters, and whether the key is a lock key.
func (m *Mover) clientKey(name string) (key string, isLockKey bool) {
	key, isLockKey = strings.CutPrefix(name, m.opts.Prefix)
	return key, isLockKey && m.lockKeys.Match([]byte(key))
}

// Move carries out the request, and returns the lines of a report for the operator. When ctx ends,
// it aborts the move.
//
// Its errors, such as ErrRunning, contain the location of the locks.
func (m *Mover) Move(ctx context.Context, request Request) (lines []string, err error) {
	r := &run{Mover: m, request: request}
	if at, known := m.opts.Masters.CurrentLocation(); known {
		r.at = at
	}
	if err := m.run(ctx, r); err != nil {
		err = fmt.Errorf("%s: %w", r.describeLocation(), err)
		m.opts.Logger.Warn("the move failed", "cause", err)
		return nil, err
	}
	return r.lines, nil
}

func (m *Mover) run(ctx context.Context, r *run) (err error) {
	if r.request.Abort {
		return r.abortAny(ctx)
	}
	if !m.running.TryLock() {
		return ErrRunning
	}
	defer m.running.Unlock()
	for {
		if err := r.awaitOtherMove(ctx); err != nil {
			return err
		}
		if err := r.withConnection(ctx, r.move); !errors.Is(err, errClaimed) {
			return err
		}
	}
}

// withConnection calls do with a connection to the upstream.
func (r *run) withConnection(ctx context.Context, do func(context.Context) error) error {
	conn, err := r.opts.Connect(ctx)
	if err != nil {
		return err
	}
	r.conn = conn
	defer conn.Close()
	// The upstream may refuse the name. If the connection is lost, the next request fails.
	_, _ = ask(ctx, conn, []string{"CLIENT", "SETNAME", connectionName})
	return do(ctx)
}
