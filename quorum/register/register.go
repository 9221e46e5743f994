package register

import (
	"cmp"
	"sync/atomic"
	"time"

	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/vote"
)

// Limit is the time limit of a round.
const Limit = vote.RoundLimit

// Options configures a register.
type Options struct {
	N int
	// Masters and Source are required.
	Masters Masters
	Source  *cell.Source
	// ContentionTimeout limits the time for which a command is retried while other commands change
	// the same key.
	ContentionTimeout time.Duration
	// MinTries is the minimum number of attempts, however long they take: a process that gets no
	// processor for a while makes few attempts within ContentionTimeout.
	MinTries int
	// ContentionPause is the time for which this process pauses its next command on a key after a
	// contended change. Without it other processes would rarely succeed.
	ContentionPause time.Duration
	// PromiseNextBallot lets a master that accepts a ballot also promise this proxy's next ballot.
	PromiseNextBallot bool
	// IsKeygroup, unless it is nil, reports whether a cell with this value is a keygroup. The
	// expiry of its keys depends on the expiry of the cell.
	IsKeygroup func(value string) bool
	// OnFenceAhead, unless it is nil, gets the number of a master whose fence counter of a key is
	// not credible.
	OnFenceAhead func(master int, key string)
	// HeadSize is the number of bytes of a cell that a Read requests from all masters. The default
	// is 8 KB.
	HeadSize int
	// Unlimited lifts the time limit of rounds, for a cluster without the guard.
	Unlimited bool
}

// Register keeps the lock keys of one database on N masters. It is safe for concurrent use.
// Operations that replace the value of the same key run one after another.
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
	opts.HeadSize = cmp.Or(opts.HeadSize, defaultHeadSize)
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

// Snapshot is the current value of a key, as a command sees it.
type Snapshot struct {
	// Present is false if the key is absent. Then Version is empty, and of the other exported
	// fields only Shared has a meaning.
	Present bool
	Value   string
	// TimeLeft is the remaining time that a majority grants, or cell.NoExpiry, unless
	// TimeLeftUnknown is set.
	TimeLeft time.Duration
	// LongestTimeLeft and ShortestTimeLeft are the extremes of the remaining time on the masters
	// that hold the value.
	LongestTimeLeft, ShortestTimeLeft time.Duration
	TimeLeftUnknown                   bool
	// Foreign is set if no proxy wrote the value.
	Foreign bool
	// Shared is set by package keygroup if the cell may also hold other keys.
	Shared bool
	// Version differs from the version of every other value of the key.
	Version string
	// incarnation is the incarnation that a majority holds, even if its value is a removal.
	incarnation cell.Attempt
}

func (t tally) snapshot() Snapshot {
	switch {
	case t.status == TallyForeign:
		return Snapshot{
			Present: true, Value: t.value.Text, TimeLeft: t.timeLeft, LongestTimeLeft: t.longestTimeLeft, ShortestTimeLeft: t.shortestTimeLeft, Foreign: true,
			Version: "foreign " + t.value.Text,
		}
	case t.status == TallyHeld && t.value.Present:
		return Snapshot{
			Present: true, Value: t.value.Text, TimeLeft: t.timeLeft, LongestTimeLeft: t.longestTimeLeft, ShortestTimeLeft: t.shortestTimeLeft,
			Version: version(t.attempt, t.value), incarnation: t.attempt,
		}
	case t.status == TallyHeld:
		return Snapshot{incarnation: t.attempt}
	default:
		return Snapshot{}
	}
}

// version returns the version of a value. Another ballot for the same value does not change it.
func version(a cell.Attempt, v cell.Value) string { return string(a) + string(v.LastChange()) }

func (r *Register) isLate(elapsed time.Duration) bool { return !r.opts.Unlimited && elapsed > Limit }

// nextBallot returns a new ballot of this proxy above a round.
func (r *Register) nextBallot(minRound uint64) cell.Ballot {
	for {
		last := r.lastRound.Load()
		next := max(last, minRound) + 1
		if r.lastRound.CompareAndSwap(last, next) {
			return r.opts.Source.Ballot(next)
		}
	}
}
