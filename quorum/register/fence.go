package register

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/vote"
)

// ErrFences means that a fence counter is at its maximum, to which only an operator can raise it.
var ErrFences = errors.New("the fences of the key are used up")

// fences holds the highest known fences of keys, so that the next proposal is high enough at once.
// It may forget any fence: masters refuse a fence that is too low, and return their counters.
type fences struct {
	mu    sync.Mutex
	byKey map[string]int64
}

const (
	// maxFences limits the number of keys, maxFenceKeyBytes the bytes of each name.
	maxFences        = 1 << 14
	maxFenceKeyBytes = 256
)

func (f *fences) highestFence(key string) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.byKey[key]
}

func (f *fences) note(key string, fence int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	highest, exists := f.byKey[key]
	if fence <= highest || len(key) > maxFenceKeyBytes {
		return
	}
	if !exists && len(f.byKey) >= maxFences {
		for victim := range f.byKey {
			delete(f.byKey, victim)
			break
		}
	}
	f.byKey[key] = fence
}

// nextFence returns a fence above the known fences of keys, and at least the masters' median time.
func (r *Register) nextFence(keys []string) (int64, error) {
	next := max(r.masters.Clock().Microseconds(), 1)
	for _, key := range keys {
		next = max(next, r.fences.highestFence(key)+1)
	}
	if next > cell.MaxFence {
		return 0, ErrFences
	}
	return next, nil
}

// noteFences records, for each key, a number above which a majority of the masters accepts every
// fence. If fewer masters replied, it records their highest credible counter. The counter of a
// master that did the operation is fence.
func (r *Register) noteFences(keys []string, fence int64, replies []Reply) {
	for i, key := range keys {
		var fences []int64
		for _, reply := range replies {
			switch {
			case reply.isYes():
				fences = append(fences, fence)
			case reply.State == Counted && i < len(reply.Fences):
				fences = append(fences, reply.Fences[i])
			}
		}
		if fences = r.credibleFences(fences, key, replies, i); len(fences) > 0 {
			r.fences.note(key, fences[min(r.quorum, len(fences))-1])
		}
	}
}

// credibleFences returns the credible fences, and reports the master of the first fence that is too
// far ahead. i is the number of the key in the replies.
func (r *Register) credibleFences(fences []int64, key string, replies []Reply, i int) []int64 {
	credible := cell.CredibleFences(fences, r.masters.Clock())
	if len(credible) == len(fences) || r.opts.OnFenceAhead == nil {
		return credible
	}
	for m, reply := range replies {
		if reply.State == Counted && i < len(reply.Fences) && reply.Fences[i] == fences[len(credible)] {
			r.opts.OnFenceAhead(m, key)
		}
	}
	return credible
}

// isFenceTooLow reports whether the only reason of a refusal was a fence that was too low.
func (r *Reply) isFenceTooLow() bool {
	return r.State == Counted && !r.Applied && len(r.Fences) > 0 && len(r.KeyStates) > 0 &&
		!slices.ContainsFunc(r.KeyStates, func(f cell.KeyState) bool { return f.Form != cell.Absent })
}

// AddFence gives the requested fence to keys that were granted without a fence. If no majority
// accepts the fence while the lock is valid, AddFence reports the removal of the lock as due.
func (r *Register) AddFence(ctx context.Context, keys []string, t TakeOptions, grantedLock GrantedLock) (GrantedLock, error) {
	if !t.Fence || grantedLock.Fence != 0 {
		return grantedLock, nil
	}
	raised, err := r.raiseFence(ctx, keys, t.TTL, grantedLock)
	if err != nil {
		t.reportRemovalDue(grantedLock.Version, nil)
		return GrantedLock{}, err
	}
	return raised, nil
}

// raiseFence proposes fences for granted keys until a majority of the masters accepts a fence.
func (r *Register) raiseFence(ctx context.Context, keys []string, ttl time.Duration, got GrantedLock) (GrantedLock, error) {
	until := r.masters.Now().Add(r.opts.ContentionTimeout)
	for {
		fence, err := r.nextFence(keys)
		if err != nil {
			return GrantedLock{}, err
		}
		start := r.masters.Now()
		op := cell.Raise{Names: keys, Attempt: got.Attempt, Fence: fence}
		round, err := r.masters.Ask(ctx, r.repeatOp(op), raiseDecided)
		if err != nil {
			return GrantedLock{}, err
		}
		replies := round.Replies()
		r.noteFences(keys, fence, replies)
		now := r.masters.Now()
		got.Validity = vote.Validity(ttl, now.Sub(got.LeaseStart)+got.EndsEarlyBy(got.LeaseStart, ttl))
		// holders counts the masters that accepted the fence, or may accept a higher fence.
		holders := count(replies, func(reply *Reply) bool {
			return reply.State == Waiting || reply.isYes() || reply.State == Counted && holdsAttempt(*reply, got.Attempt)
		})
		switch late := r.isLate(now.Sub(start)); {
		case ttl >= 0 && got.Validity < time.Millisecond:
			return GrantedLock{}, &NoQuorum{Replies: replies, AgreementTime: now.Sub(got.LeaseStart)}
		case isAppliedByMajority(replies) && !late:
			got.Fence = fence
			return got, nil
		case holders < r.quorum, now.After(until):
			return GrantedLock{}, &NoQuorum{Replies: replies}
		}
	}
}

// holdsAttempt reports whether a master holds an attempt under each key, as a plain cell or in
// register form.
func holdsAttempt(r Reply, a cell.Attempt) bool {
	return len(r.KeyStates) > 0 && !slices.ContainsFunc(r.KeyStates, func(f cell.KeyState) bool {
		return f.Attempt != a || f.Form != cell.Plain && f.Form != cell.Register
	})
}

func raiseDecided(replies []Reply) bool { return countVotes(replies, (*Reply).isYes) != vote.Pending }

// Fence returns a number that is at least the fence of every earlier lock of the key. It returns 0
// if the masters never stored a counter, or no longer store it. A master whose counter is not
// credible counts as missing.
//
// Errors: *NoQuorum, or the cause of ctx.
func (r *Register) Fence(ctx context.Context, key string) (int64, error) {
	op := cell.Read{Names: []string{key}, WithFences: true}
	round, err := r.masters.Ask(ctx, r.repeatOp(op), func(replies []Reply) bool {
		return len(r.fencesOf(key, replies, 0)) >= r.quorum
	})
	if err != nil {
		return 0, err
	}
	fences := r.fencesOf(key, round.Replies(), 0)
	if len(fences) < r.quorum {
		return 0, &NoQuorum{Replies: round.Replies()}
	}
	return fences[len(fences)-1], nil
}

// fencesOf returns the credible counters of key number i in ascending order.
func (r *Register) fencesOf(key string, replies []Reply, i int) []int64 {
	var fences []int64
	for _, reply := range replies {
		if reply.State == Counted && i < len(reply.Fences) {
			fences = append(fences, reply.Fences[i])
		}
	}
	return r.credibleFences(fences, key, replies, i)
}
