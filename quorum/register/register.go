package register

import (
	"cmp"
	"sync/atomic"
	"time"

	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/vote"
)

// Limit is the time limit of a round: vote.RoundLimit.
const Limit = vote.RoundLimit

// Options configures a register.
type Options struct {
	// N is the number of masters.
	N int
	// Masters and Source are required.
	Masters Masters
	Source  *cell.Source
	// Patience limits how long a command is retried while other commands change the same key.
	Patience time.Duration
	// Tries is the least number of attempts of a command, however long they take. A process that
	// gets no processor for a while makes few attempts within Patience.
	Tries int
	// ContentionPause is how long this process holds back its next command on a key after a change
	// that other processes contended for. Without the pause the other processes would rarely
	// succeed.
	ContentionPause time.Duration
	// Keep lets a master that accepts a ballot promise this proxy's next ballot at once.
	Keep bool
	// HoldsSeveralKeys, unless it is nil, reports whether a cell with this value holds several
	// keys, whose ends depend on the end of the cell. See package keygroup.
	HoldsSeveralKeys func(value string) bool
	// FenceAhead, unless it is nil, is called with a master whose fence counter is not credible.
	FenceAhead func(master int, key string)
	// HeadSize is how many bytes of a cell a Read asks of all masters. The default is 8 KB.
	HeadSize int
	// Unlimited lifts the time limit of rounds, for a cluster without the guard.
	Unlimited bool
}

// Register keeps the lock keys of one database on N masters. Its methods may be called
// concurrently. Operations that replace the value of the same key run one after another.
type Register struct {
	opts      Options
	n         int
	quorum    int
	masters   Masters
	grants    grants
	fences    fences
	promises  promises
	queues    keyQueues
	repairs   repairs
	lastRound atomic.Uint64
}

// New returns a register.
func New(opts Options) *Register {
	opts.HeadSize = cmp.Or(opts.HeadSize, defaultHeads)
	r := &Register{
		opts: opts, n: opts.N, quorum: vote.Majority(opts.N), masters: opts.Masters,
		grants:   grants{byKey: map[string]*grant{}},
		fences:   fences{byKey: map[string]int64{}},
		promises: promises{byKey: map[string]*promise{}},
		queues:   keyQueues{byKey: map[string]*keyQueue{}},
		repairs:  repairs{keys: map[string]cell.Attempt{}},
	}

	return r
}

// Look is the current value of a key, as a command sees it.
type Look struct {
	// Present is false if the key is absent. The other fields then mean nothing.
	Present bool
	Value   string
	// Left is the remaining time that a majority still grants, or cell.Endless. It means nothing if
	// Unknown is set.
	Left time.Duration
	// Longest and Shortest are the longest and the shortest remaining time on the masters that hold
	// the value.
	Longest, Shortest time.Duration
	Unknown           bool
	// Foreign is set if no proxy wrote the value.
	Foreign bool
	// Shared is set by package keygroup if the cell may hold other keys, too.
	Shared bool
	// Version differs from that of every other value of the key. It is empty if the key is absent.
	Version string
	// incarnation is held by a majority, even if its value is that the key is absent.
	incarnation cell.Attempt
}

// look returns the tally as a command sees it.
func (t tally) look() Look {
	switch {
	case t.standing == Foreign:
		return Look{
			Present: true, Value: t.value.Text, Left: t.left, Longest: t.longest, Shortest: t.shortest, Foreign: true,
			Version: "foreign " + t.value.Text,
		}
	case t.standing == Held && t.value.Present:
		return Look{
			Present: true, Value: t.value.Text, Left: t.left, Longest: t.longest, Shortest: t.shortest,
			Version: version(t.attempt, t.value), incarnation: t.attempt,
		}
	case t.standing == Held:
		return Look{incarnation: t.attempt}
	default:
		return Look{}
	}
}

// version names a value of an incarnation. Another ballot for the same value does not change it.
func version(a cell.Attempt, v cell.Value) string { return string(a) + string(v.Last()) }

// isLate reports whether a round that grants something to a client took too long.
func (r *Register) isLate(elapsed time.Duration) bool { return !r.opts.Unlimited && elapsed > Limit }

// nextBallot returns a ballot of this proxy that is above a round and was never used before.
func (r *Register) nextBallot(above uint64) cell.Ballot {
	for {
		last := r.lastRound.Load()
		next := max(last, above) + 1
		if r.lastRound.CompareAndSwap(last, next) {
			return r.opts.Source.Ballot(next)
		}
	}
}
