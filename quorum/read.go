package quorum

import (
	"cmp"
	"context"
	"slices"
	"time"
)

// Holding is what a majority of the masters holds under a key.
type Holding struct {
	// Held is set when a majority holds the same Value.
	Held  bool
	Value string
	// Left is the time that a majority still grants: the quorum-th largest of
	// their remaining times. It is negative when that is without end.
	Left time.Duration
	// Split is set when some masters hold a value, but none has a majority.
	Split bool
}

// Read asks all masters what they hold under the key. The error is a
// *NoQuorumError, or the cause of ctx if that ended first.
func (c *Cluster) Read(ctx context.Context, key Key) (Holding, error) {
	r := c.begin(Change{kind: kindRead, key: key})
	verdict, err := r.wait(ctx)
	switch {
	case err != nil:
		return Holding{}, err
	case verdict == NoQuorum: // only with all answers in
		return Holding{}, r.noQuorum()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return holding(r.values(), len(r.ops)), nil
}

// values are the non-empty answers so far.
func (r *round) values() []reply {
	var held []reply
	for _, a := range r.answers {
		if a.here && a.vote == voteYes {
			held = append(held, a.reply)
		}
	}
	return held
}

// holding finds the value that a majority of n masters holds.
func holding(held []reply, n int) Holding {
	for _, candidate := range held {
		var left []time.Duration
		for _, r := range held {
			if r.value == candidate.value {
				left = append(left, r.left)
			}
		}
		if len(left) >= Majority(n) {
			slices.SortFunc(left, longerFirst)
			return Holding{Held: true, Value: candidate.value, Left: left[Majority(n)-1]}
		}
	}
	return Holding{Split: len(held) > 0}
}

// longerFirst orders remaining times; a negative one has no end.
func longerFirst(a, b time.Duration) int {
	switch {
	case a < 0 && b < 0:
		return 0
	case a < 0:
		return -1
	case b < 0:
		return 1
	default:
		return cmp.Compare(b, a)
	}
}

// readVerdict ends a read when a majority holds one value, or when all answers
// are in: Won if a majority answered.
func (r *round) readVerdict() Verdict {
	switch {
	case holding(r.values(), len(r.ops)).Held:
		return Won
	case r.tally.awaited() > 0:
		return Pending
	case r.tally.answered() >= Majority(r.tally.Masters):
		return Won
	default:
		return NoQuorum
	}
}
