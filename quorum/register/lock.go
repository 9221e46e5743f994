package register

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/vote"
)

// TakeOptions holds the conditions on which a client takes keys.
type TakeOptions struct {
	// Tokens holds one token for each key, in the order of the keys.
	Tokens []string
	// TTL is in whole milliseconds, or cell.NoExpiry.
	TTL time.Duration
	// AllowShortTTL allows a TTL or a validity that is too short to rely on.
	AllowShortTTL bool
	// RetryUntil, unless it is zero, is the time after which no new attempt begins.
	RetryUntil time.Time
	// Holder is an arbitrary value that Holdings returns with the keys.
	Holder any
	// Fence requests a fence, the same for all keys.
	Fence bool
	// KeepOnNoQuorum keeps the value after *NoQuorum, if possible: other clients may have seen it,
	// and rely on it.
	KeepOnNoQuorum bool
	// OnRemovalDue receives each version that the keys may have although Lock returned an error. No
	// client holds such a version, so a proxy must remove it. mayArrive, unless it is nil, reports
	// whether the version may still arrive at a majority. A cluster sets its own function.
	OnRemovalDue func(version string, mayArrive func() bool)
	// MayTakeOver, unless it is nil, reports whether the removal of the value of the only key is
	// pending, so that the client may take over the key. A cluster sets its own function.
	MayTakeOver func(Snapshot) bool
}

func (t TakeOptions) reportRemovalDue(version string, mayArrive func() bool) {
	if t.OnRemovalDue != nil {
		t.OnRemovalDue(version, mayArrive)
	}
}

func (t TakeOptions) mayTakeOver(l Snapshot) bool {
	return l.Present && t.MayTakeOver != nil && len(t.Tokens) == 1 && t.MayTakeOver(l)
}

// GrantedLock describes a granted lock.
type GrantedLock struct {
	// Validity is the time for which the lock is valid from now, or cell.NoExpiry.
	Validity time.Duration
	// LeaseStart is the start of the lease, just before the proxy asked the masters.
	LeaseStart time.Time
	// HeldUntil, unless it is zero, is the time until which each master of the majority holds the
	// value, although its lease may be longer.
	HeldUntil time.Time
	// Early is the time by which a master of the majority may hold a key or holder of a keygroup for
	// less than its TTL. It is zero if the value is no keygroup.
	Early time.Duration
	// Attempt is the attempt that created the lock.
	Attempt cell.Attempt
	// Version is the unique version of each taken key. Withdrawing a lock removes only this
	// version.
	Version string
	// HadLongerLease is set by Extend if a master had a longer lease than requested.
	HadLongerLease bool
	// OfHolder is set if several clients may hold the lock, and FreeSlots is the number of clients
	// that may join after this grant, negative for any number. Only a cluster sets them.
	OfHolder  bool
	FreeSlots int
	// Fence, if requested, is above the fence of every earlier lock of the keys.
	Fence int64
}

// EndsEarlyBy returns the time by which a master may hold the value for less than ttl from leaseStart
// on. The validity is shorter by that.
func (g GrantedLock) EndsEarlyBy(leaseStart time.Time, ttl time.Duration) time.Duration {
	switch {
	case ttl < 0:
		return 0
	case g.HeldUntil.IsZero():
		return g.Early
	}
	return max(leaseStart.Add(ttl).Sub(g.HeldUntil), g.Early)
}

// Lock takes keys that no client holds, all or none. It repeats attempts that split the votes.
//
// Errors: ErrHeld, ErrTooShort, ErrContended, ErrFences, *NoQuorum, or the cause of ctx. After an
// error the client holds nothing, and the attempt is undone in the background.
func (r *Register) Lock(ctx context.Context, keys []string, t TakeOptions) (GrantedLock, error) {
	if !t.AllowShortTTL && t.TTL >= 0 && t.TTL < vote.MinTTL {
		return GrantedLock{}, ErrTooShort
	}
	contentionDeadline := r.masters.Now().Add(r.opts.ContentionTimeout)
	var blocked blockedTries
	for failures := 1; ; failures++ {
		got, err := r.take(ctx, keys, t)
		if err == nil {
			return r.AddFence(ctx, keys, t, got)
		}
		if refusal, isRefused := errors.AsType[*RefusedError](err); isRefused && t.mayTakeOver(refusal.CurrentSnapshot) {
			return r.LockByBallot(ctx, keys[0], t)
		}
		var split *splitError
		if !errors.As(err, &split) {
			return got, err
		}
		switch {
		case split.needsBallot && len(keys) == 1:
			return r.LockByBallot(ctx, keys[0], t)
		case blocked.count(split.possibleHolders) >= maxBlockedTries:
			return GrantedLock{}, &NoQuorum{Replies: split.replies}
		case !t.RetryUntil.IsZero() && r.masters.Now().After(t.RetryUntil),
			r.masters.Now().After(contentionDeadline) && failures >= r.opts.MinTries:
			return GrantedLock{}, ErrContended
		case split.fenceTooLow:
			continue
		}
		if err := r.pauseAfter(ctx, split, failures, t.RetryUntil); err != nil {
			return GrantedLock{}, err
		}
	}
}

// pauseAfter waits before the next attempt. If removals by ballot prevent that several keys are
// taken, it waits until they have expired, because only a ballot on one key can replace a removal.
func (r *Register) pauseAfter(ctx context.Context, split *splitError, failures int, retryUntil time.Time) error {
	until := r.masters.Now().Add(split.removalsLeft)
	if !retryUntil.IsZero() && retryUntil.Before(until) {
		until = retryUntil
	}
	for {
		if err := r.masters.Pause(ctx, failures); err != nil || !r.masters.Now().Before(until) {
			return err
		}
	}
}

// LockByBallot locks a key that a ballot removed a moment ago, or whose value may be taken over. It
// runs to its end even if ctx ends: a ballot cannot be undone, and only its end shows the result.
func (r *Register) LockByBallot(ctx context.Context, key string, t TakeOptions) (GrantedLock, error) {
	run := func(l Snapshot) (Decision, error) {
		if l.Present && !t.mayTakeOver(l) {
			return keepUnchanged(l)
		}
		return Decision{Action: Put, Value: t.Tokens[0], TTL: t.TTL}, nil
	}
	out, err := r.Update(ctx, Change{Key: key, OnRemovalDue: t.OnRemovalDue, requireValidity: !t.AllowShortTTL, uncancellable: true, Run: run})
	switch {
	case err != nil:
		return GrantedLock{}, err
	case out.Decision.Action == NoChange:
		return GrantedLock{}, &RefusedError{Err: ErrHeld, CurrentSnapshot: out.Decision.Note.(Snapshot)}
	}
	elapsed := r.masters.Now().Sub(out.LeaseStart)
	if out.Version != string(out.Attempt) { // else an attempt took the key, and recorded its grant
		entry := newGrant(t, 0, out.Attempt, out.LeaseStart, r.n)
		entry.ballotVersion = out.Version
		r.grants.put(key, entry, out.LeaseStart)
	}
	if !t.AllowShortTTL && (t.TTL >= 0 && out.Validity < time.Millisecond || r.isLate(elapsed)) {
		t.reportRemovalDue(out.Version, nil)
		return GrantedLock{}, &NoQuorum{AgreementTime: elapsed}
	}
	return r.AddFence(ctx, []string{key}, t, out.GrantedLock)
}

// splitError means that a try of a command decided nothing, and can be repeated. An attempt that
// returns it can have no majority, so no client can have seen its value.
type splitError struct {
	// needsBallot is set if a ballot removed the key a moment ago, or has to choose its value.
	needsBallot bool
	// possibleHolders holds the incarnations to which masters without a vote may give a majority
	// for longer than removalTTL.
	possibleHolders []cell.Attempt
	// fenceTooLow is set if masters refused only because the fence was too low.
	fenceTooLow bool
	// removalsLeft is the time for which removals by ballot prevent a majority, if several keys
	// were to be taken.
	removalsLeft time.Duration
	replies      []Reply
}

func (e *splitError) Error() string { return "votes are split" }

// take makes one attempt (REGISTER.md, Creating), with a fence if one round trip suffices.
func (r *Register) take(ctx context.Context, keys []string, t TakeOptions) (GrantedLock, error) {
	fence := int64(0)
	// With too few voters, the attempt cannot be granted, and should not leave a fence behind.
	if t.Fence && r.masters.VoterCount() >= r.quorum {
		var err error
		if fence, err = r.nextFence(keys); err != nil {
			return GrantedLock{}, err
		}
	}
	op := cell.Take{Names: keys, Attempt: r.opts.Source.Attempt(), Tokens: t.Tokens, TTL: t.TTL, Fence: fence}
	start := r.masters.Now()
	round, err := r.masters.Ask(ctx, r.repeatOp(op), takeDecided)
	if err == nil {
		round, err = r.retryUndecided(ctx, op, round)
	}
	if fence != 0 {
		r.noteFences(keys, fence, round.Replies())
	}
	if err == nil {
		var grantedLock GrantedLock
		if grantedLock, err = r.evaluateTake(keys, t, round.Replies(), start); err == nil {
			grantedLock.Attempt, grantedLock.Version, grantedLock.Fence = op.Attempt, string(op.Attempt), fence
			r.recordGrant(t, op, round, start)
			round.Release()
			return grantedLock, nil
		}
	}
	round.Drop()
	isDecided := errors.Is(err, ErrHeld) || errors.As(err, new(*splitError))
	// A repair removes the value if it cannot stay.
	if t.KeepOnNoQuorum && errors.As(err, new(*NoQuorum)) {
		r.repairEachUnlessDone(round, keys...)
		return GrantedLock{}, err
	}
	// mayArriveCount counts the masters that the attempt may still reach, mayHoldCount the masters
	// that may hold it.
	var mayArriveCount, mayHoldCount atomic.Int32
	undoOn := func(master int, reply Reply) {
		if reply.mayBeDone() {
			r.undo(keys, op.Attempt, master)
		}
	}
	for i, reply := range round.Replies() {
		undoOn(i, reply)
		if reply.State == Waiting || reply.State == Unknown {
			mayArriveCount.Add(1)
		}
		if !reply.isNotDone() {
			mayHoldCount.Add(1)
		}
	}
	if !isDecided && int(mayHoldCount.Load()) >= r.quorum {
		t.reportRemovalDue(string(op.Attempt), func() bool { return mayArriveCount.Load() > 0 && int(mayHoldCount.Load()) >= r.quorum })
	}
	round.OnLaterReply(func(master int, reply Reply) {
		if undoOn(master, reply); reply.State != Unknown {
			mayArriveCount.Add(-1)
		}
		if reply.isNotDone() {
			mayHoldCount.Add(-1)
		}
	})
	if errors.Is(err, ErrHeld) { // other errors contain the replies
		round.Release()
	}
	return GrantedLock{}, err
}

func (r *Register) undo(keys []string, a cell.Attempt, master int) {
	for _, key := range keys {
		r.masters.Tell(master, cell.Remove{Name: key, Attempt: a, Mode: cell.Undo}, true)
	}
}

// takeResult returns the vote on an attempt. A master without a vote that took or may take the keys
// counts as pending.
func takeResult(replies []Reply) vote.Result {
	yes, no := count(replies, (*Reply).isYes), count(replies, (*Reply).isNotDone)
	return vote.Count(len(replies), yes, len(replies)-yes-no)
}

// takeDecided ends the wait for replies once the attempt is granted, or certainly refused, or
// neither is possible any more.
func takeDecided(replies []Reply) bool {
	result := takeResult(replies)
	return result == vote.Won || isRefusedBySameHolder(replies) || result == vote.Lost && !canBeRefusedBySameHolder(replies)
}

// canBeRefusedBySameHolder reports whether missing replies may complete a majority that refuses.
func canBeRefusedBySameHolder(replies []Reply) bool {
	return countWaiting(replies) > 0 && countVotes(replies, (*Reply).refused) != vote.Lost
}

// isRefusedBySameHolder reports whether a majority refused because of the same holder of one of the
// keys.
func isRefusedBySameHolder(replies []Reply) bool { return refusingKey(replies) >= 0 }

// refusingKey returns the number of the first key for which a majority reports the same holder, or
// -1.
func refusingKey(replies []Reply) int {
	for i := range reportedKeys(replies) {
		if resolve(replies, i).isTaken() {
			return i
		}
	}
	return -1
}

// reportedKeys returns the number of keys in the longest reply.
func reportedKeys(replies []Reply) (keys int) {
	for _, reply := range replies {
		keys = max(keys, len(reply.KeyStates))
	}
	return keys
}

func (r *Register) evaluateTake(keys []string, t TakeOptions, replies []Reply, start time.Time) (GrantedLock, error) {
	elapsed := r.masters.Now().Sub(start)
	validity := vote.Validity(t.TTL, elapsed)
	switch result := takeResult(replies); {
	case result == vote.Won && (r.isLate(elapsed) || !t.AllowShortTTL && t.TTL >= 0 && validity < time.Millisecond):
		return GrantedLock{}, &NoQuorum{Replies: replies, AgreementTime: elapsed}
	case result == vote.Won:
		return GrantedLock{Validity: validity, LeaseStart: start}, nil
	case isRefusedBySameHolder(replies):
		i := refusingKey(replies)
		return GrantedLock{}, resolve(replies, i).refusalError(ErrHeld, i)
	case result == vote.Lost && countVotes(replies, (*Reply).answered) != vote.Lost:
		if count(replies, (*Reply).isFenceTooLow) > 0 && count(replies, (*Reply).refused) == 0 {
			return GrantedLock{}, &splitError{fenceTooLow: true, replies: replies}
		}
		for _, key := range keys {
			r.scheduleRepair(key)
		}
		split := &splitError{needsBallot: needsBallot(replies), replies: replies}
		if !allExpireSoon(replies) {
			split.possibleHolders = possibleRivals(replies, len(keys))
		}
		if len(keys) > 1 {
			split.removalsLeft = r.removalsLeft(replies)
		}
		return GrantedLock{}, split
	default:
		return GrantedLock{}, &NoQuorum{Replies: replies}
	}
}

// possibleRivals returns the incarnations of the keys to which masters that do not vote may give a
// majority. Masters that took the attempt hold nothing else.
func possibleRivals(replies []Reply, keys int) (holders []cell.Attempt) {
	assumed := slices.Clone(replies)
	for i, reply := range assumed {
		if reply.isYes() {
			assumed[i].KeyStates = make([]cell.KeyState, keys)
		}
	}
	for i := range keys {
		holders = append(holders, possibleHolders(assumed, i)...)
	}
	return holders
}

// removalsLeft returns the time after which a majority of the masters that replied holds no removal
// by ballot under any of the keys.
func (r *Register) removalsLeft(replies []Reply) time.Duration {
	var lefts []time.Duration
	for _, reply := range replies {
		if reply.State != Counted {
			continue
		}
		longest := time.Duration(0)
		for _, f := range reply.KeyStates {
			if f.Form == cell.Register && !f.Value.Present {
				longest = max(longest, f.TimeLeft)
			}
		}
		lefts = append(lefts, longest)
	}
	if len(lefts) < r.quorum {
		return 0
	}
	slices.Sort(lefts)
	return min(lefts[r.quorum-1], removalTTL)
}

// needsBallot reports whether masters hold different values of the first key, or a master holds a
// removal.
func needsBallot(replies []Reply) bool {
	return resolve(replies, 0).isUnchosen() || slices.ContainsFunc(replies, func(r Reply) bool {
		return len(r.KeyStates) > 0 && r.KeyStates[0].Form == cell.Register && !r.KeyStates[0].Value.Present
	})
}

// recordGrant records a lock, repeats the take on masters that refused it, and repairs masters that
// may have missed it.
func (r *Register) recordGrant(t TakeOptions, op cell.Take, round Round, start time.Time) {
	grants := make([]*grant, len(op.Names))
	for i, key := range op.Names {
		grants[i] = newGrant(t, i, op.Attempt, start, r.n)
		for m, reply := range round.Replies() {
			grants[i].noteReply(m, reply)
		}
		r.grants.put(key, grants[i], start)
	}
	op.Fence = 0 // a majority accepted it
	for m, reply := range round.Replies() {
		r.retryRefused(op, grants, m, 0, reply)
	}
	round.OnLaterReply(func(master int, reply Reply) {
		for _, g := range grants {
			r.grants.noteReply(g, master, reply)
		}
		r.retryRefused(op, grants, master, 0, reply)
	})
}

const (
	// retryPause is the first pause before the proxy repeats a take on a master that refused it.
	// Each next pause is twice as long.
	retryPause = 8 * time.Millisecond
	maxRetries = 4
)

// retryRefused repeats a granted take on a master that refused it. The cause may be a rival's
// attempt that is being undone, or a removal that has not expired. Either can still be on the
// master after the grant, and a refill takes a second. Because the master refused, the retry has
// the same effect as a late first message. For other differences, and for several keys, the repair
// suffices.
func (r *Register) retryRefused(op cell.Take, grants []*grant, master, tries int, reply Reply) {
	if reply.State != Counted || reply.Applied || tries == maxRetries || len(grants) > 1 {
		r.repairUnlessDone(reply, op.Names...)
		return
	}
	r.scheduleRetry(op, grants, master, tries)
}

func (r *Register) scheduleRetry(op cell.Take, grants []*grant, master, tries int) {
	r.masters.RunAfter(retryPause<<tries, func() {
		if op.TTL = r.grants.beginRetry(op.Names[0], grants[0], master, r.masters.Now()); op.TTL == 0 {
			return
		}
		ops := make([]cell.Op, r.n)
		ops[master] = op
		round, err := r.masters.Ask(context.Background(), ops, func([]Reply) bool { return true })
		if err != nil {
			return
		}
		noteReply := func(_ int, reply Reply) { // runs before the reply to a later release
			r.grants.noteReply(grants[0], master, reply)
			r.retryRefused(op, grants, master, tries+1, reply)
		}
		if reply := round.Replies()[master]; reply.State != Waiting {
			noteReply(master, reply)
		}
		round.OnLaterReply(noteReply)
		round.Release()
	})
}
