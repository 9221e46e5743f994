package allkeys

import (
	"context"
	"log/slog"

	"redlock-proxy/commands/catalog/keys"
	"redlock-proxy/commands/command"
	"redlock-proxy/quorum"
)

// Locks are what stands on the masters: a *quorum.Locker, whose methods document the errors.
type Locks interface {
	Names(ctx context.Context, db int, page func(names []string) (more bool, err error)) error
	Databases(ctx context.Context) ([]int, error)
	Remove(ctx context.Context, key quorum.Key) (bool, error)
}

// Register returns what a majority holds: a *quorum.Cluster.
type Register interface {
	Read(ctx context.Context, keys []quorum.Key) ([]quorum.Look, error)
}

// Options are what the commands work with. All must be set but Prefix and Audit.
type Options struct {
	Locks    Locks
	Register Register
	// LockKeys are the keys that the commands return.
	LockKeys keys.Patterns
	// Place is where a key stands on the masters: behind Prefix.
	Place  func(db int, key string) quorum.Key
	Prefix string
	// Random fills a slice with unpredictable bytes.
	Random func([]byte)
	// Logger logs each FLUSHDB and FLUSHALL.
	Logger *slog.Logger
	Audit  *command.Audit
}

// AllKeys are the commands. They are safe for concurrent use.
type AllKeys struct {
	opts Options
	// turns are tokens: so many look through the masters' names at a time, and one flushes.
	looking, flushing chan struct{}
	snapshots         snapshots
}

// New makes them.
func New(opts Options) *AllKeys {
	return &AllKeys{opts: opts, looking: make(chan struct{}, lookers), flushing: make(chan struct{}, 1)}
}

// Commands are the commands. Where there is an upstream, all but those that change something leave
// a client that is in a transaction there, or wants no answers, to it.
func (a *AllKeys) Commands() []*command.Command {
	flush := command.Optional(command.OneOf("flush-type", command.Text("ASYNC"), command.Text("SYNC")))
	all := []*command.Command{
		command.OfRedis("keys", a.keys, docs("generic", "Returns all key names that match a pattern.", "1.0.0", true, command.Text("pattern"))),
		command.OfRedis("scan", a.scan, docs("generic", "Iterates over the key names in the database.", "2.8.0", true,
			command.Integer("cursor"), command.Optional(command.GlobAfter("MATCH", "pattern")), command.Optional(command.After("COUNT", "count")))),
		command.OfRedis("dbsize", a.dbsize, docs("server", "Returns the number of keys in the database.", "1.0.0", true)),
		command.OfRedis("flushdb", a.flushDB, docs("server", "Removes all keys from the current database.", "1.0.0", false, flush)),
		command.OfRedis("flushall", a.flushAll, docs("server", "Removes all keys from all databases.", "1.0.0", false, flush)),
	}
	for _, c := range all {
		c.Guarded, c.Asks, c.Patient, c.Aloud = true, true, true, !c.Docs.Reads
	}
	return all
}

func docs(group, summary, since string, reads bool, args ...command.Argument) command.Docs {
	d := command.DocsOf(group, summary, since, args...)
	d.Complexity, d.Reads = "O(N) with N being the number of lock keys, beside that of Redis", reads
	return d
}
