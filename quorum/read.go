package quorum

import (
	"cmp"
	"context"
	"slices"
	"time"
)

// Holding is what a majority of the masters holds under a key. With neither Held
// nor Free set the key is contested: somebody is changing it at this moment, and it
// may be one or the other.
type Holding struct {
	// Held is set when a majority holds the same Value.
	Held  bool
	Value string
	// Left is the time that a majority still grants: the quorum-th largest of
	// their remaining times. It is negative when that is without end.
	Left time.Duration
	// Free is set when a majority holds nothing under the key.
	Free bool
	// Split is set when some masters hold a value, but none is known to have a
	// majority: somebody is taking the key, or left it so. Value is the one that
	// most of them hold and Left the longest that one has.
	Split bool
	// Mixed is set without Held when masters hold different values.
	Mixed bool
	// uneven is set with Held when masters that are still to answer may grant more than
	// Left.
	uneven bool
	// Unsure is set without Held when masters that did not answer may hold what
	// would make a majority.
	Unsure bool
}

// Read asks all masters what they hold under the key. The error is a
// *NoQuorumError, or the cause of ctx if that ended first.
func (c *Cluster) Read(ctx context.Context, key Key) (Holding, error) {
	all, err := c.ReadAll(ctx, []Key{key})
	if err != nil {
		return Holding{}, err
	}
	return all[0], nil
}

// ReadAll is Read for several keys of one database, in one round. Each master
// answers for all of them at one moment.
func (c *Cluster) ReadAll(ctx context.Context, keys []Key) ([]Holding, error) {
	r := c.begin(read(keys))
	verdict, err := r.wait(ctx)
	switch {
	case err != nil:
		return nil, err
	case verdict == NoQuorum: // only with all answers in
		return nil, r.noQuorum()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen(), nil
}

// seen is what the answers to a read say of each of its keys so far.
func (r *round) seen() []Holding {
	return r.holdings(len(r.change.keys), func(i int, got reply) (Entry, bool) {
		if got.vote == voteFailed {
			return Entry{}, false
		}
		return got.entries[i], true
	})
}

// holdings counts what the masters hold, for n keys. entry tells what an answer
// says of key number i, and whether it says anything.
func (r *round) holdings(n int, entry func(i int, got reply) (Entry, bool)) []Holding {
	all := make([]Holding, n)
	masters := r.answers[:r.tally.Masters]
	for i := range all {
		var said []Entry
		for _, a := range masters {
			if !a.here {
				continue
			}
			if e, ok := entry(i, a.reply); ok {
				said = append(said, e)
			}
		}
		all[i] = holding(said, len(masters))
		if legacy := r.legacyAnswer(); legacy != nil && legacy.here {
			if e, ok := entry(i, legacy.reply); ok {
				all[i] = all[i].beside(e)
			}
		}
	}
	return all
}

// holding finds the value that a majority of n masters holds, from what some of
// them said.
func holding(said []Entry, n int) Holding {
	var most []Entry
	absent := 0
	for _, candidate := range said {
		if !candidate.Present {
			absent++
			continue
		}
		var alike []Entry
		for _, e := range said {
			if e.Present && e.Value == candidate.Value {
				alike = append(alike, e)
			}
		}
		if len(alike) > len(most) {
			most = alike
		}
	}
	quorum, silent := Majority(n), n-len(said)
	free := absent >= quorum
	unsure := !free && len(most)+silent >= quorum
	slices.SortFunc(most, longerFirst)
	switch {
	case len(most) == 0:
		return Holding{Free: free, Unsure: unsure}
	case len(most) >= quorum:
		left := most[quorum-1].Left
		return Holding{Held: true, Value: most[0].Value, Left: left, uneven: silent > 0 && muchLonger(most[0].Left, left)}
	default:
		mixed := len(most)+absent < len(said)
		return Holding{Free: free, Split: true, Value: most[0].Value, Left: most[0].Left, Unsure: unsure, Mixed: mixed}
	}
}

// settled reports whether what a majority holds under each key is known, and for how
// long.
func (r *round) settled() bool {
	for _, h := range r.seen() {
		if h.uneven || !h.Held && !h.Free {
			return false
		}
	}
	return true
}

// longerFirst orders entries by their remaining times; a negative one has no end.
func longerFirst(a, b Entry) int { return compareLeft(b.Left, a.Left) }

// muchLonger reports whether two remaining times of one lock differ by more than its
// masters' answers were apart.
func muchLonger(a, b time.Duration) bool {
	return (a < 0) != (b < 0) || a-b > time.Second
}

func compareLeft(a, b time.Duration) int {
	switch {
	case a < 0 && b < 0:
		return 0
	case a < 0:
		return 1
	case b < 0:
		return -1
	default:
		return cmp.Compare(a, b)
	}
}

// readVerdict ends a read when no answer can change what a majority holds under
// any of the keys, or when all are in: Won if a majority answered.
func (r *round) readVerdict() Verdict {
	switch {
	case r.tally.answered() >= Majority(r.tally.Masters) && r.settled():
		return Won
	case r.tally.awaited() > 0:
		return Pending
	case r.tally.answered() >= Majority(r.tally.Masters):
		return Won
	default:
		return NoQuorum
	}
}
