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

// Register is what lock keys stand in: a *quorum.Cluster, whose methods document the errors.
type Register interface {
	Read(ctx context.Context, keys []quorum.Key) ([]quorum.Look, error)
	Take(ctx context.Context, t quorum.Taking) (quorum.Grant, error)
	Release(ctx context.Context, key quorum.Key, token string) error
	Extend(ctx context.Context, key quorum.Key, token string, ttl time.Duration) (quorum.Grant, error)
	Update(ctx context.Context, key quorum.Key, expect *string, run func(quorum.Look) (quorum.Decision, error)) (quorum.Outcome, error)
	UpdateAll(ctx context.Context, keys []quorum.Key, expect *string, run func([]quorum.Look) ([]quorum.Decision, error)) (quorum.Outcome, error)
}

// Engine runs programs. It is safe for concurrent use. All its fields must be set.
type Engine struct {
	Register Register
	// Place is where a key stands on the masters.
	Place func(db int, key string) quorum.Key
	// Now is the wall clock, and Random fills a slice with unpredictable bytes.
	Now    func() time.Time
	Random func([]byte)
	// Pause waits between two tries, or returns the cause of ctx if that ends first.
	Pause func(ctx context.Context, d time.Duration) error
	// Forbids says why edits are not to be made, as an error reply; it is empty where they may.
	Forbids func(edits []keyspace.Edit) string
	// List returns the lock keys of a database that match a glob.
	List func(ctx context.Context, db int, match string) ([]string, error)
	// Lost is told of side effects that were not carried out, by the name of the first command.
	Lost func(command string, cause error)
}

// Program is something that runs on a view of lock keys and gives a reply: a command, a script or a
// transaction.
type Program struct {
	// DB is the database of its keys.
	DB int
	// Keys are those that it is known to use. More are added when it asks for them.
	Keys []string
	// Run runs it. It may run several times, and must do the same on the same view.
	Run Run
	// Rights are what its client may do. Only scripts look at it, and it is nil without one:
	// whether a command may be done is known before its program begins.
	Rights *rights.Known
	// Guesses are views on which it is worth trying without a read.
	Guesses []Guess
	// Replaces is set where it is known to put a value whatever is there: then there is no use in
	// reading first.
	Replaces bool
	// Watched are the versions of the keys that must not have changed; else the reply is a nil
	// array.
	Watched map[string]string
	// Holder is who is to be known for the holder of what it takes.
	Holder any
	// Tracked has the Outcome tell what was read.
	Tracked bool
	// Watches has the Outcome tell what was found: its client watches keys.
	Watches bool
	// Committed, if it is set, is told of the edits that were made.
	Committed func(edits []keyspace.Edit)
}

// Run gives a program's reply and its side effects: commands for the upstream. An error ends it: a
// *Refusal, or one of a Space that does not hold enough.
type Run func(ctx context.Context, s *keyspace.Space) (reply keyspace.Reply, effects [][]string, err error)

// Outcome is what came of a program.
type Outcome struct {
	Reply keyspace.Reply
	// Edits are what it made of its keys.
	Edits []keyspace.Edit
	// Read are the keys of which its reply may tell, with what they held then.
	Read map[string]keyspace.Entry
	// Found are the keys that it used and that held something.
	Found []string
	// Granted is what the masters gave for what was acquired.
	Granted quorum.Grant

	effects [][]string
	// touched is set where the reply or the edits have to do with the keys at all.
	touched bool
}

// Acquired returns the keys that a program acquired: those that it found absent, because it asked.
// There are none if it did anything else.
func (o Outcome) Acquired() (keys []string) {
	for _, e := range o.Edits {
		switch {
		case !e.Changes():
		case e.Was.Present || !e.Asked:
			return nil
		default:
			keys = append(keys, e.Key)
		}
	}
	return keys
}

// Refusal ends a run whose program does what is not done on lock keys: nothing is committed, and
// its text is the reply.
type Refusal struct{ Text string }

// Error is the reply's text.
func (r *Refusal) Error() string { return r.Text }

// UnlistedError ends a run whose program asks which lock keys there are: it runs again when Found
// was told those that match, and its view has all of them.
type UnlistedError struct {
	Match string
	Found func(keys []string)
}

// Error names the glob.
func (e *UnlistedError) Error() string {
	return fmt.Sprintf("lock keys %q have not been listed", e.Match)
}

// ContendedError says that others kept a program from its end.
type ContendedError struct{ Key string }

// Error names the key.
func (e *ContendedError) Error() string {
	return fmt.Sprintf("lock key '%s' is contended: every attempt collided with another", syntax.Shown(e.Key))
}

// What one program may use of lock keys: in all, and beside those that it named before it ran, and
// such as have the tag of one of these. Each of the latter two costs a repetition, which reads all
// of them again.
const (
	MaxKeys       = 1000
	MaxFound      = 32
	MaxFoundOfTag = 256
)

// TooManyKeys refuses a program of more keys than masters should be asked for at once; it is empty
// where there are not too many.
func TooManyKeys(n int) string {
	if n <= MaxKeys {
		return ""
	}
	return fmt.Sprintf("ERR too many lock keys: one command, script or transaction may use at most %d", MaxKeys)
}
