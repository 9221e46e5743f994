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
	"redlock-proxy/commands/move"
	"redlock-proxy/commands/pubsub"
	"redlock-proxy/commands/server"
	"redlock-proxy/quorum"
)

// Locks is the locker behind the commands: a *quorum.Locker, whose methods document the errors.
type Locks interface {
	locks.Place
	lockkeys.Locks
	Waiting() int
}

// ErrShuttingDown is the cause of a context that ends because the proxy stops.
var ErrShuttingDown = errors.New("the proxy is shutting down; try again")

// Options are what the commands work with. Locks and the Settings' MaxTTL must be set, with
// LockKeys also Register.
type Options struct {
	// Locks are the locks.
	Locks Locks
	// Register is what lock keys stand in.
	Register lockkeys.Register
	// Scripts keep the bodies of scripts for all proxies. The default keeps none.
	Scripts eval.Store
	// Functions are those of the upstream. Where it is nil they are not looked at.
	Functions eval.Functions
	// Mark sets a mark for a lock key that a client has read, for CLIENT TRACKING. Where it is nil
	// lock keys are not tracked.
	Mark func(key quorum.Key, notify func(quorum.News)) *quorum.Mark
	// Messages gives what carries messages between proxies, and has it deliver them, for a table
	// without an upstream. Where it is nil there are none.
	Messages func(deliver func(quorum.Message)) pubsub.Carrier
	// Holders tells who holds what.
	Holders locks.Holdings
	// AllKeys tells the names of all locks, and removes them.
	AllKeys allkeys.Locks
	// Settings are those that hold until others are applied.
	Settings Settings
	// KeyPrefix stands before each lock's name in its key on the masters.
	KeyPrefix string
	// LockKeys are the glob patterns of the keys on which ordinary commands run on
	// the masters. Without any, they all are the upstream's.
	LockKeys []string
	// LockTags are the glob patterns of the lock keys that stand with all others of their hash tag.
	LockTags []string
	// Users are those of the proxy's own, who are then asked about themselves by ACL. It is nil
	// where there are none.
	Users *users.Users
	// Server is what the proxy says of itself. What is counted or moved by the table need not be
	// set.
	Server server.Options
	// Moving is what moves the locks on lock keys between the upstream and the masters, for PROXY
	// MOVE; its LockKeys, Place, Prefix and Logger are those of the table. It is nil where they
	// cannot be moved.
	Moving *move.Options
	// Guarded is set where the masters say where the locks on lock keys are: other proxies may move
	// them also where this one has no upstream.
	Guarded bool
	// unmoved is set for a table that is for as long as the locks are at the upstream.
	unmoved bool
	// mover is another table's.
	mover *move.Mover
	// Random fills a slice with unpredictable bytes. The default is crypto/rand.
	Random func([]byte)
	// Now is the wall clock. The default is time.Now.
	Now func() time.Time
	// Logger logs locks without a TTL and what got lost. The default is
	// silence.
	Logger *slog.Logger
	// Audit is told of each grant and release, unless Settings say otherwise. It is nil where
	// nobody ever is.
	Audit *slog.Logger
}

// orDefault has what was left out be what it is by default.
func (o Options) orDefault() Options {
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

// moving are the keys of locks that may be moved.
func (o Options) moving() keys.Patterns {
	if !o.Guarded {
		return keys.NewPatterns()
	}
	return keys.NewPatterns(o.LockKeys...)
}
