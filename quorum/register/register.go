package register

import (
	"cmp"
	"sync/atomic"
	"time"

	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/vote"
)

// Limit is vote.RoundLimit.
const Limit = vote.RoundLimit

// Options describe a register.
type Options struct {
	// N is the number of masters.
	N       int
	Masters Masters
	Source  *cell.Source
	// Patience is how long a command is tried again because others change the same key.
	Patience time.Duration
	// Tries is how often it is tried at the least, however long that takes: a process that gets no
	// processor for a while comes to few tries in Patience.
	Tries int
	// Yield is for how long the others of this process wait after a change that other
	// processes contended for: those would hardly ever get to it otherwise.
	Yield time.Duration
	// Keep lets the ballot of a replacing promise the next one at once.
	Keep bool
	// Shared, if it is set, reports of a value whether the ends of several keys depend on that of
	// the cell; see package bag.
	Shared func(value string) bool
	// FenceAhead, if it is set, is called with a master's fence counter that is not credible.
	FenceAhead func(master int, key string)
	// Heads is how many bytes of a cell a read asks of all masters; the default is 8 KB. See Read.
	Heads int
	// Unlimited is for a cluster without the guard, where a round may take its time.
	Unlimited bool
}

// Register keeps the lock keys of one database on N masters. Its methods may be called
// concurrently; operations that replace values of the same key follow one another.
type Register struct {
	opts     Options
	n        int
	quorum   int
	masters  Masters
	grants   grants
	fences   fences
	promises promises
	queues   keyQueues
	menders  menders
	round    atomic.Uint64
}

// New makes a register.
func New(opts Options) *Register {
	opts.Heads = cmp.Or(opts.Heads, headSize)
	r := &Register{
		opts: opts, n: opts.N, quorum: vote.Majority(opts.N), masters: opts.Masters,
		grants:   grants{byKey: map[string]*grant{}},
		fences:   fences{byKey: map[string]int64{}},
		promises: promises{byKey: map[string]*promise{}},
		queues:   keyQueues{byKey: map[string]*keyQueue{}},
		menders:  menders{keys: map[string]cell.Attempt{}},
	}

	return r
}

// Look is the current value of a key, as a command sees it.
type Look struct {
	// Present is false where the key is absent; then the rest means nothing.
	Present bool
	Value   string
	// Left is the remaining time that a majority still grants, or cell.Endless. It is
	// meaningless with Unknown.
	Left time.Duration
	// Longest and Shortest are that of the master where it ends last, and where it ends first, of
	// those that hold it.
	Longest, Shortest time.Duration
	Unknown           bool
	// Foreign: no proxy wrote it.
	Foreign bool
	// Shared is set by who knows of several keys in a cell: others may share it with this one.
	Shared bool
	// Version is unlike that of any other value of the key; empty where it is absent.
	Version string
	// incarnation is the one that a majority holds, also where its value is that the key is absent.
	incarnation cell.Attempt
}

// look is a finding as a command sees it.
func (f finding) look() Look {
	switch {
	case f.standing == Foreign:
		return Look{
			Present: true, Value: f.value.Text, Left: f.left, Longest: f.longest, Shortest: f.shortest, Foreign: true,
			Version: "foreign " + f.value.Text,
		}
	case f.standing == Held && f.value.Present:
		return Look{
			Present: true, Value: f.value.Text, Left: f.left, Longest: f.longest, Shortest: f.shortest,
			Version: version(f.attempt, f.value), incarnation: f.attempt,
		}
	case f.standing == Held:
		return Look{incarnation: f.attempt}
	default:
		return Look{}
	}
}

// version is that of a value of an incarnation. Another ballot for the same value does not
// change it.
func version(a cell.Attempt, v cell.Value) string { return string(a) + string(v.Last()) }

// late reports whether a round that gives a client something took too long.
func (r *Register) late(elapsed time.Duration) bool { return !r.opts.Unlimited && elapsed > Limit }

// nextBallot is one of this proxy's above a round, never used before.
func (r *Register) nextBallot(above uint64) cell.Ballot {
	for {
		last := r.round.Load()
		next := max(last, above) + 1
		if r.round.CompareAndSwap(last, next) {
			return r.opts.Source.Ballot(next)
		}
	}
}
