package commands

import (
	"cmp"
	"crypto/rand"
	"errors"
	"log/slog"
	"time"

	"redlock-proxy/commands/auth/users"
	"redlock-proxy/commands/catalog/keys"
	"redlock-proxy/commands/lockkeys"
	"redlock-proxy/commands/lockkeys/allkeys"
	"redlock-proxy/commands/lockkeys/eval"
	"redlock-proxy/commands/locks"
	"redlock-proxy/commands/locks/keepalive"
	"redlock-proxy/commands/move"
	"redlock-proxy/commands/pubsub"
	"redlock-proxy/commands/server"
	"redlock-proxy/quorum"
)

// Locks takes, extends and releases locks. *quorum.Locker implements it, and documents the errors.
type Locks interface {
	locks.Locker
	keepalive.Locks
	lockkeys.Locks
	WaiterCount() int
}

// ErrShuttingDown is the cause of a context that ends because the proxy stops.
var ErrShuttingDown = errors.New("the proxy is shutting down; try again")

// Options configures a Table. Locks and Settings.MaxTTL are required. Register is required with
// LockKeys.
type Options struct {
	// Locks takes, extends and releases locks.
	Locks Locks
	// Register reads and changes lock keys on the masters.
	Register lockkeys.Register
	// Scripts stores the bodies of scripts for all proxies. The default stores none.
	Scripts eval.Store
	// Functions returns the functions of the upstream. If it is nil, the table does not inspect
	// functions.
	Functions eval.Functions
	// Mark places a mark on a lock key that a client has read, for CLIENT TRACKING. If it is nil,
	// the table does not track lock keys.
	Mark func(key quorum.Key, notify func(quorum.Report)) *quorum.ChangeWatch
	// MessageCarrier returns the carrier of messages between proxies, which passes each message to
	// deliver. It is for a table without an upstream. If it is nil, there are no messages.
	MessageCarrier func(deliver func(quorum.Message)) pubsub.Carrier
	// KeptLockObserver observes the locks that the proxy renews for clients. It may be nil.
	KeptLockObserver keepalive.Observer
	// Holdings reads the holders of locks, and removes locks.
	Holdings locks.OperatorLocks
	// AllKeys lists the names of all locks, and removes all locks.
	AllKeys allkeys.Locks
	// Settings holds the settings until the first Apply.
	Settings Settings
	// KeyPrefix precedes the name of each lock in its key on the masters.
	KeyPrefix string
	// LockKeys holds the globs of the keys on which ordinary commands run on the masters. Without
	// globs, all keys are the upstream's.
	LockKeys []string
	// LockTags holds the globs of the lock keys that share a cell with all lock keys of the same
	// hash tag.
	LockTags []string
	// Users holds the proxy's own users, and answers ACL. It is nil if the proxy has no users.
	Users *users.Users
	// Server configures the commands about the proxy itself. The table sets the fields that it
	// determines itself.
	Server server.Options
	// MoveOptions configures the move of the locks between the upstream and the masters (PROXY
	// MOVE). The table sets its LockKeys, KeyOnMasters, Prefix and Logger. If it is nil, locks
	// cannot be moved.
	MoveOptions *move.Options
	// MastersRecordLocation is set if the masters record the location of the locks. Then another
	// proxy may move the locks even if this proxy has no upstream.
	MastersRecordLocation bool
	// locksAtUpstream is set for the table that the proxy uses while the locks are at the upstream.
	locksAtUpstream bool
	// mover is the mover of another table. If it is nil, the table makes its own.
	mover *move.Mover
	// keeper is the keeper of another table. If it is nil, the table makes its own.
	keeper *keepalive.Keeper
	// Random fills a slice with unpredictable bytes. The default uses crypto/rand.
	Random func([]byte)
	// Now returns the wall-clock time. The default is time.Now.
	Now func() time.Time
	// Logger receives the log messages of the commands. The default discards them.
	Logger *slog.Logger
	// Audit logs each grant and release while Settings.Audit is set. It is nil if there is no audit
	// log.
	Audit *slog.Logger
}

// withDefaults fills in the defaults.
func (o Options) withDefaults() Options {
	if o.Random == nil {
		o.Random = func(b []byte) { _, _ = rand.Read(b) } // never fails
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Scripts == nil {
		o.Scripts = eval.NoStore{}
	}
	return o
}

// movablePatterns returns the globs of the keys whose locks may be moved.
func (o Options) movablePatterns() keys.Patterns {
	if !o.MastersRecordLocation {
		return keys.NewPatterns()
	}
	return keys.NewPatterns(o.LockKeys...)
}
