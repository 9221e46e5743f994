package register

import (
	"context"
	"errors"
	"sync"
	"time"

	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/vote"
)

// ErrFences says that no fence is left that is higher than the last one of a key. It takes
// somebody who raised the counter by hand.
var ErrFences = errors.New("the fences of the key are used up")

// fences are the highest fences of keys that this proxy knows of, so that it proposes a higher one
// at once. It may forget any: then masters refuse a fence that is too low, and return theirs.
type fences struct {
	mu    sync.Mutex
	byKey map[string]int64
}

const (
	// mostFences bounds the keys, longestFenced their names.
	mostFences    = 1 << 14
	longestFenced = 256
)

func (f *fences) last(key string) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.byKey[key]
}

func (f *fences) saw(key string, fence int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	last, known := f.byKey[key]
	if fence <= last || len(key) > longestFenced {
		return
	}
	if !known && len(f.byKey) >= mostFences {
		for other := range f.byKey {
			delete(f.byKey, other)
			break
		}
	}
	f.byKey[key] = fence
}

// nextFence is one above all that this proxy knows of, and not below the masters' median time.
func (r *Register) nextFence(key string) (int64, error) {
	next := max(r.fences.last(key)+1, r.masters.Clock().Microseconds(), 1)
	if next > cell.MaxFence {
		return 0, ErrFences
	}
	return next, nil
}

// learnFences notes the least fence above which a majority of the masters that answered will accept
// one, or the highest credible one where fewer answered. Those that did it have accepted the fence.
func (r *Register) learnFences(key string, fence int64, replies []Reply) {
	var fences []int64
	for _, reply := range replies {
		switch {
		case reply.yes():
			fences = append(fences, fence)
		case reply.State == Counted && len(reply.Fences) > 0:
			fences = append(fences, reply.Fences[0])
		}
	}
	if fences = r.credible(fences, key, replies, 0); len(fences) > 0 {
		r.fences.saw(key, fences[min(r.quorum, len(fences))-1])
	}
}

// credible are those of some fences of a key, the one of that number in the replies, which are not
// far ahead of the others.
func (r *Register) credible(fences []int64, key string, replies []Reply, i int) []int64 {
	credible := cell.CredibleFences(fences, r.masters.Clock())
	if len(credible) == len(fences) || r.opts.FenceAhead == nil {
		return credible
	}
	for m, reply := range replies {
		if reply.State == Counted && i < len(reply.Fences) && reply.Fences[i] == fences[len(credible)] {
			r.opts.FenceAhead(m, key)
		}
	}
	return credible
}

// isLow reports whether a master refused only because the fence was too low.
func (r *Reply) isLow() bool {
	return r.State == Counted && !r.Did && len(r.Fences) > 0 && len(r.Found) > 0 && r.Found[0].Form == cell.Absent
}

// withFence gives a lock that is to have a fence, and was granted without, one that a majority of
// the masters accepts while they hold the lock. It is owed its removal where that is not so before
// its validity ends.
func (r *Register) withFence(ctx context.Context, key string, t Terms, got Granted) (Granted, error) {
	if !t.Fence || got.Fence != 0 {
		return got, nil
	}
	raised, err := r.raise(ctx, key, t.TTL, got)
	if err != nil {
		t.owed(got.Version, nil)
		return Granted{}, err
	}
	return raised, nil
}

// raise has a majority of the masters accept a fence of a lock.
func (r *Register) raise(ctx context.Context, key string, ttl time.Duration, got Granted) (Granted, error) {
	until := r.masters.Now().Add(r.opts.Patience)
	for {
		fence, err := r.nextFence(key)
		if err != nil {
			return Granted{}, err
		}
		start := r.masters.Now()
		op := cell.Raise{Name: key, Attempt: got.Attempt, Fence: fence}
		asked, err := r.masters.Ask(ctx, r.toAll(op), raiseDecided)
		if err != nil {
			return Granted{}, err
		}
		replies := asked.Replies()
		r.learnFences(key, fence, replies)
		now := r.masters.Now()
		got.Validity = vote.Validity(ttl, now.Sub(got.Since))
		// The masters that accepted it, or still may accept a higher one.
		holders := count(replies, func(reply *Reply) bool {
			return reply.State == Waiting || reply.yes() || reply.State == Counted && isOf(*reply, got.Attempt)
		})
		switch late := r.late(now.Sub(start)); {
		case ttl >= 0 && got.Validity < time.Millisecond:
			return Granted{}, &NoQuorum{Replies: replies, Late: now.Sub(got.Since)}
		case isDone(replies) && !late:
			got.Fence = fence
			return got, nil
		case holders < r.quorum, now.After(until):
			return Granted{}, &NoQuorum{Replies: replies}
		}
	}
}

// isOf reports whether a master returned a cell of an attempt, which is no blocking copy.
func isOf(r Reply, a cell.Attempt) bool {
	return len(r.Found) > 0 && r.Found[0].Attempt == a && (r.Found[0].Form == cell.Plain || r.Found[0].Form == cell.Register)
}

// raiseDecided: a majority accepted, or none can.
func raiseDecided(replies []Reply) bool { return tally(replies, (*Reply).yes) != vote.Pending }

// Fence is not below the fence of any lock of the key that was granted before, as long as its
// counter stays; 0 where there is none. A master of which the counter is not credible counts as one
// that did not answer.
//
// Errors: *NoQuorum, or the cause of ctx.
func (r *Register) Fence(ctx context.Context, key string) (int64, error) {
	op := cell.Read{Names: []string{key}, Fences: true}
	asked, err := r.masters.Ask(ctx, r.toAll(op), func(replies []Reply) bool { return len(r.fencesOf(key, replies, 0)) >= r.quorum })
	if err != nil {
		return 0, err
	}
	fences := r.fencesOf(key, asked.Replies(), 0)
	if len(fences) < r.quorum {
		return 0, &NoQuorum{Replies: asked.Replies()}
	}
	return fences[len(fences)-1], nil
}

// fencesOf are the credible counters of a key, the one of that number, in ascending order.
func (r *Register) fencesOf(key string, replies []Reply, i int) []int64 {
	var fences []int64
	for _, reply := range replies {
		if reply.State == Counted && i < len(reply.Fences) {
			fences = append(fences, reply.Fences[i])
		}
	}
	return r.credible(fences, key, replies, i)
}
