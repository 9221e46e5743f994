package program

import (
	"context"
	"fmt"
	"time"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/lockkeys/keyspace"
	"redlock-proxy/commands/rights"
	"redlock-proxy/quorum"
)

// Register keeps the lock keys. A *quorum.Cluster implements it, and documents the errors.
type Register interface {
	Read(ctx context.Context, keys []quorum.Key) ([]quorum.Snapshot, error)
	Take(ctx context.Context, t quorum.TakeRequest) (quorum.GrantedLock, error)
	Release(ctx context.Context, key quorum.Key, token string) error
	Extend(ctx context.Context, key quorum.Key, token string, ttl time.Duration) (quorum.GrantedLock, error)
	Update(
		ctx context.Context, key quorum.Key, expect *string, run func(quorum.Snapshot) (quorum.Decision, error),
	) (quorum.Outcome, error)
	UpdateAll(
		ctx context.Context, keys []quorum.Key, expect *string, run func([]quorum.Snapshot) ([]quorum.Decision, error),
	) (quorum.Outcome, error)
}

// Engine runs programs. It is safe for concurrent use. All its fields must be set.
type Engine struct {
	Register Register
	// KeyOnMasters maps a client's key to the key on the masters.
	KeyOnMasters func(db int, key string) quorum.Key
	// Now returns the wall clock's time. Random fills a slice with unpredictable bytes.
	Now    func() time.Time
	Random func([]byte)
	// Pause waits between two tries. It returns the cause of ctx if ctx ends first.
	Pause func(ctx context.Context, d time.Duration) error
	// RefuseEdits returns the error reply that refuses edits, or "" if it allows them.
	RefuseEdits func(edits []keyspace.Edit) string
	// List returns the lock keys of a database that match a glob.
	List func(ctx context.Context, db int, match string) ([]string, error)
	// OnLostEffects receives the name of the first side effect, if the upstream did not carry out
	// the side effects of a program.
	OnLostEffects func(command string, cause error)
}

// Program describes a command, a script or a transaction that runs on a view of lock keys.
type Program struct {
	// DB is the database of the keys.
	DB int
	// Keys holds the keys that the program uses, as far as the caller can determine them. The
	// Engine adds a key if the program uses it although Keys lacks it (an undeclared key).
	Keys []string
	// Run runs the program. It may run several times, and must do the same on the same view.
	Run Run
	// Rights holds the client's permissions, for scripts and transactions. For other programs,
	// Rights is nil: the proxy checks the permissions before the program begins.
	Rights *rights.Permissions
	// Guesses holds the guesses to try before a read, in this order.
	Guesses []Guess
	// UsuallyWrites is true if the program usually writes, regardless of the old value. If the
	// program has only one key, the Engine then does not read the key beforehand.
	UsuallyWrites bool
	// WatchedVersions holds the versions of the watched keys. If a version has changed, the reply
	// is a nil array.
	WatchedVersions map[string]string
	// Holder identifies the holder of the locks that the program takes.
	Holder any
	// TracksKeys requests Outcome.KeysRead, because the client tracks keys.
	TracksKeys bool
	// WatchesKeys requests Outcome.FoundKeys, because the client watches keys.
	WatchesKeys bool
	// OnCommit, if set, receives the committed edits.
	OnCommit func(edits []keyspace.Edit)
}

// Run returns a program's reply and its side effects: commands for the upstream. An error ends the
// run: a *Refusal, an *UnlistedError, or an error of a Snapshot that lacks a key or a remaining
// time.
type Run func(ctx context.Context, s *keyspace.Snapshot) (reply keyspace.Reply, effects [][]string, err error)

// Outcome holds the result of a program.
type Outcome struct {
	Reply keyspace.Reply
	// Edits holds the changes of the program's keys, with their conditions.
	Edits []keyspace.Edit
	// KeysRead holds the keys that the reply may reveal, with their values at that time.
	KeysRead map[string]keyspace.Entry
	// FoundKeys holds the keys that the program used and that existed.
	FoundKeys []string
	// Grant is the grant of the masters for the keys that the program took.
	Grant quorum.GrantedLock

	effects [][]string
	// dependsOnKeys is true if the reply or the edits depend on any key.
	dependsOnKeys bool
}

// AcquiredKeys returns the keys that a program took, after it required them to be absent. It
// returns nil if the program made any other change.
func (o Outcome) AcquiredKeys() (keys []string) {
	for _, e := range o.Edits {
		switch {
		case !e.IsChange():
		case e.Before.Present || !e.ReplyDependsOn:
			return nil
		default:
			keys = append(keys, e.Key)
		}
	}
	return keys
}

// Refusal ends a run with an error reply, for example because lock keys do not support a command.
// The program commits nothing, and Text is the reply.
type Refusal struct{ Text string }

// Error implements error.
func (r *Refusal) Error() string { return r.Text }

// UnlistedError ends a run that asks which lock keys exist. The Engine then calls OnListed with the
// matching keys, and repeats the run on a view that has all of them.
type UnlistedError struct {
	Match    string
	OnListed func(keys []string)
}

// Error implements error. It names the glob.
func (e *UnlistedError) Error() string {
	return fmt.Sprintf("lock keys %q have not been listed", e.Match)
}

// ContendedError is the error of a program that could not commit, because other clients kept
// changing its keys.
type ContendedError struct{ Key string }

// Error implements error. It names the key.
func (e *ContendedError) Error() string {
	return fmt.Sprintf("lock key '%s' is contended: every try collided with a change by another client; try again",
		syntax.Excerpt(e.Key))
}

// Limits on the lock keys of one program: in all, undeclared, and undeclared with the tag of
// another key of the program. Each undeclared key costs one more run, which reads all keys again.
const (
	MaxKeys                = 1000
	MaxUndeclaredKeys      = 32
	MaxUndeclaredKeysOfTag = 256
)

// TooManyKeys returns the error reply for a program with too many keys, or "" if n is allowed.
func TooManyKeys(n int) string {
	if n <= MaxKeys {
		return ""
	}
	return fmt.Sprintf("ERR too many lock keys: one command, script or transaction may use at most %d", MaxKeys)
}
