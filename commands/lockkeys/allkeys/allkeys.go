package allkeys

import (
	"context"
	"log/slog"

	"redlock-proxy/commands/catalog/keys"
	"redlock-proxy/commands/command"
	"redlock-proxy/quorum"
)

// Locks lists and removes the keys on the masters. A *quorum.Locker implements it. Its methods
// document the errors.
type Locks interface {
	Names(ctx context.Context, db int, page func(names []string) (more bool, err error)) error
	Databases(ctx context.Context) ([]int, error)
	Remove(ctx context.Context, key quorum.Key) (bool, error)
}

// Register reads keys from a majority. A *quorum.Cluster implements it.
type Register interface {
	Read(ctx context.Context, keys []quorum.Key) ([]quorum.Snapshot, error)
}

// Options holds the dependencies of the commands. All must be set, except Prefix and Audit.
type Options struct {
	Locks    Locks
	Register Register
	// LockKeys matches the clients' keys that are lock keys.
	LockKeys keys.Patterns
	// KeyOnMasters maps a client's key to the key on the masters, which begins with Prefix.
	KeyOnMasters func(db int, key string) quorum.Key
	Prefix       string
	// Random fills a slice with unpredictable bytes.
	Random func([]byte)
	// Logger logs each FLUSHDB and FLUSHALL.
	Logger *slog.Logger
	Audit  *command.Audit
}

// AllKeys runs the commands on all keys of a database. It is safe for concurrent use.
type AllKeys struct {
	opts Options
	// listSlots limits the number of commands that list names at a time. flushSlot allows one flush
	// at a time.
	listSlots, flushSlot chan struct{}
	snapshots            snapshots
}

// New returns AllKeys.
func New(opts Options) *AllKeys {
	return &AllKeys{opts: opts, listSlots: make(chan struct{}, maxListing), flushSlot: make(chan struct{}, 1)}
}

// Commands returns the commands. If the client is in a transaction of the upstream, or wants no
// replies, the proxy forwards read-only commands unchanged.
func (a *AllKeys) Commands() []*command.Command {
	flush := command.Optional(command.OneOf("flush-type", command.Text("ASYNC"), command.Text("SYNC")))
	all := []*command.Command{
		command.NewRedisCommand("keys", a.keys,
			docs("generic", "Returns all key names that match a pattern.", "1.0.0", true, command.Text("pattern"))),
		command.NewRedisCommand("scan", a.scan, docs("generic", "Iterates over the key names in the database.", "2.8.0", true,
			command.Integer("cursor"), command.Optional(command.GlobAfter("MATCH", "pattern")),
			command.Optional(command.IntegerAfter("COUNT", "count")))),
		command.NewRedisCommand("dbsize", a.dbsize,
			docs("server", "Returns the number of keys in the database.", "1.0.0", true)),
		command.NewRedisCommand("flushdb", a.flushDB,
			docs("server", "Removes all keys from the current database.", "1.0.0", false, flush)),
		command.NewRedisCommand("flushall", a.flushAll,
			docs("server", "Removes all keys from all databases.", "1.0.0", false, flush)),
	}
	for _, c := range all {
		c.RequiresLogin, c.NeedsUpstreamReply, c.Unlimited, c.ActsLocally = true, true, true, !c.Docs.Reads
	}
	return all
}

func docs(group, summary, since string, reads bool, args ...command.Argument) command.Docs {
	d := command.DocsOf(group, summary, since, args...)
	d.Complexity, d.Reads = "O(N) with N being the number of lock keys, in addition to that of Redis", reads
	return d
}
