package quorum

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"redlock-proxy/internal/contained"
	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/keygroup"
)

// holderChange is a change of the holders of a lock that one client requested.
type holderChange struct {
	// apply makes the change. It may run several times, each time on the current holders. If it
	// returns an error, it must not have changed any holder.
	apply func(*keygroup.Holders) error
	// joining names the holder that apply adds, or is nil. The proxy removes this holder if the
	// ballot ends with an error.
	joining *removable
	// leaves is set if apply removes holders.
	leaves bool
	// wakeup receives the result, or the order to run the next ballot.
	wakeup chan holderResult
}

// holderResult is the result of a holderChange.
type holderResult struct {
	// run orders the receiver to run the next ballot; there is no result yet.
	run bool
	err error
	// version is the version that the ballot gave to holders, and attempt the incarnation of the
	// key. The ballot began at since, and left freeSlots. grant is its grant.
	version   string
	attempt   cell.Attempt
	since     time.Time
	freeSlots int
	grant     GrantedLock
}

// holderChanges combines changes of the same lock: while a ballot runs, further changes wait, and
// the next ballot makes all of them. It is safe for concurrent use.
type holderChanges struct {
	mu sync.Mutex
	// waiting holds the waiting changes of each lock for which a ballot runs.
	waiting map[Key][]*holderChange
}

// isBallotRunning reports whether a ballot for a lock runs.
func (q *holderChanges) isBallotRunning(key Key) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	_, running := q.waiting[key]
	return running
}

// enter adds a change. It reports whether the caller has to run a ballot, because none runs.
func (q *holderChanges) enter(key Key, c *holderChange) (run bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waiting == nil {
		q.waiting = map[Key][]*holderChange{}
	}
	_, running := q.waiting[key]
	q.waiting[key] = append(q.waiting[key], c)
	return !running
}

// takeAll removes and returns the waiting changes of a lock. Its ballot counts as running until
// finish is called.
func (q *holderChanges) takeAll(key Key) []*holderChange {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := q.waiting[key]
	q.waiting[key] = nil
	return all
}

// finish records the end of a ballot, and lets the first waiting change run the next one.
func (q *holderChanges) finish(key Key) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting[key]) == 0 {
		delete(q.waiting, key)
		return
	}
	q.waiting[key][0].wakeup <- holderResult{run: true}
}

// leave removes a waiting change, and returns true. It returns false if a ballot that includes the
// change has begun.
func (q *holderChanges) leave(key Key, c *holderChange) bool {
	q.mu.Lock()
	i := slices.Index(q.waiting[key], c)
	if i < 0 {
		q.mu.Unlock()
		return false
	}
	q.waiting[key] = slices.Delete(q.waiting[key], i, i+1)
	q.mu.Unlock()
	select {
	case <-c.wakeup: // the order to run a ballot
		q.finish(key)
	default:
	}
	return true
}

// changeHolders changes the holders of a lock by ballot, together with other clients' changes. A
// ballot that has begun continues after ctx has ended, because only its end shows the result.
//
// Errors: the error of change.apply, the errors of Update, or the cause of ctx.
func (set *masterSet) changeHolders(ctx context.Context, key Key, change *holderChange) (holderResult, error) {
	change.wakeup = make(chan holderResult, 1)
	if set.holderChanges.enter(key, change) {
		change.wakeup <- holderResult{run: true}
	}
	result := holderResult{run: true}
	select {
	case result = <-change.wakeup:
	case <-ctx.Done():
		if set.holderChanges.leave(key, change) {
			return holderResult{}, context.Cause(ctx)
		}
		result = <-change.wakeup
	}
	if result.run {
		set.runHolderBallot(context.WithoutCancel(ctx), key)
		result = <-change.wakeup
	}
	return result, result.err
}

// holdersDecision is the Note of a decision about the holders of a lock.
type holdersDecision struct {
	version string
	holders *keygroup.Holders
	errs    []error // by change
	joined  []removable
}

// runHolderBallot makes all waiting changes of a lock.
func (set *masterSet) runHolderBallot(ctx context.Context, key Key) {
	defer set.holderChanges.finish(key)
	set.makeHolderChanges(ctx, key, set.holderChanges.takeAll(key))
}

// makeHolderChanges makes changes of a lock by one ballot. If their result is too large, it makes
// each change by a ballot of its own, so that only the change that is too large fails.
func (set *masterSet) makeHolderChanges(ctx context.Context, key Key, changes []*holderChange) {
	since := time.Now()
	var out Outcome
	err := contained.Run(func() (err error) {
		out, err = set.updateCell(ctx, []Key{key}, nil, storedSnapshot, runForOneKey(func(l Snapshot) (Decision, error) {
			return set.decideHolders(l, changes)
		}))
		return err
	})
	if errors.Is(err, keygroup.ErrTooLarge) && len(changes) > 1 {
		for _, c := range changes {
			set.makeHolderChanges(ctx, key, []*holderChange{c})
		}
		return
	}
	decided, _ := out.Decision.Note.(*holdersDecision)
	freed, freeSlots := false, 0
	if err == nil {
		freeSlots = decided.holders.FreeSlots()
	}
	for i, c := range changes {
		result := holderResult{err: err, version: out.Version, attempt: out.Attempt, since: since, freeSlots: freeSlots, grant: out.GrantedLock}
		if err == nil {
			result.err = decided.errs[i]
			freed = freed || c.leaves && result.err == nil
		}
		c.wakeup <- result
	}
	if freed && freeSlots != 0 {
		set.cluster.onFreed(key, freeSlots)
	}
}

// decideHolders applies changes to the current holders of a lock, and returns the decision to store
// the result. The errors of single changes are in its Note.
func (set *masterSet) decideHolders(l Snapshot, changes []*holderChange) (Decision, error) {
	h, err := keygroup.OpenHolders(l)
	if err != nil {
		return Decision{}, err
	}
	made := &holdersDecision{version: string(set.source.Change()), holders: h, errs: make([]error, len(changes))}
	for i, c := range changes {
		made.errs[i] = c.apply(h)
		if made.errs[i] == nil && c.joining != nil {
			made.joined = append(made.joined, *c.joining)
		}
	}
	d, err := h.Encode(made.version)
	d.Note, d.RemoveOnError = made, !l.Present
	return d, err
}
