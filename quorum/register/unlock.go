package register

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"redlock-proxy/quorum/cell"
)

// Unlock removes the key if it holds the token. Unlock takes one round trip for a lock that this
// proxy granted, and two for any other lock.
//
// Errors: ErrNotHeld (as *RefusedError if the current value is known), *NoQuorum, ErrContended, or
// the cause of ctx. The release continues even after ctx has ended. If the effect of the release is
// unknown, Unlock calls onRemovalDue with each known version that may remain, and its remaining
// time. A proxy must remove such a version. onRemovalDue may be nil.
func (r *Register) Unlock(ctx context.Context, key, token string, onRemovalDue func(version string, timeLeft time.Duration)) error {
	entry := r.grants.find(key, hasToken(token))
	removed, err := r.unlock(ctx, key, token)
	if err == nil || errors.Is(err, ErrNotHeld) || errors.Is(err, ErrContended) || onRemovalDue == nil {
		return err
	}
	if entry != nil {
		onRemovalDue(entry.currentVersion(), r.remainingLease(entry))
	}
	if removed.Present {
		onRemovalDue(removed.Version, removed.LongestTimeLeft)
	}
	if noQuorum, ok := errors.AsType[*NoQuorum](err); ok && !removed.Present {
		for _, f := range cellsWithToken(noQuorum.Replies, token) {
			// A different attempt is another lock with the same token.
			if entry == nil || f.Attempt == entry.attempt {
				onRemovalDue(version(f.Attempt, f.Value), f.TimeLeft)
			}
		}
	}
	return err
}

func cellsWithToken(replies []Reply, token string) (cells []cell.KeyState) {
	for _, reply := range replies {
		for _, f := range reply.KeyStates {
			if (f.Form == cell.Plain || f.Form == cell.Register) && f.Value.Present && f.Value.Text == token {
				cells = append(cells, f)
			}
		}
	}
	return cells
}

func (r *Register) remainingLease(entry *grant) time.Duration {
	if ends := r.grants.snapshot(entry).expiresAt; !ends.IsZero() {
		return max(ends.Sub(r.masters.Now()), 0)
	}
	return cell.NoExpiry
}

// unlock removes the key if it holds the token. It returns the value that it tried to remove by
// ballot, if any.
func (r *Register) unlock(ctx context.Context, key, token string) (snapshot Snapshot, err error) {
	entry := r.grants.take(key, hasToken(token))
	if entry == nil {
		return r.removeByBallot(ctx, key, token, "")
	}
	start := r.masters.Now()
	release := cell.Remove{Name: key, Attempt: entry.attempt, Mode: cell.Release}
	round, err := r.masters.Ask(ctx, r.repeatOp(release), func(replies []Reply) bool {
		return isAppliedByMajority(replies) || HasAnswerQuorum(replies) && hasRegister(replies, entry.attempt)
	})
	if err != nil {
		r.followUp(round, release)
		return Snapshot{}, err
	}
	replies := round.Replies()
	if elapsed := r.masters.Now().Sub(start); r.isLate(elapsed) {
		// A master may have forgotten its deletion, and copied the cell from another master.
		r.followUp(round, release)
		return Snapshot{}, &NoQuorum{Replies: replies, AgreementTime: elapsed}
	}
	current := r.grants.snapshot(entry) // The replies to earlier requests have arrived by now.
	result := r.evaluateRelease(&current, replies, start)
	switch result {
	case releaseDone:
		r.followUp(round, clearing(key, entry.attempt))
		round.Release()
		return Snapshot{}, nil
	case releaseByBallot:
		return r.finishRelease(ctx, key, entry, r.collect(round, release), start)
	}
	r.followUp(round, release)
	switch result {
	case releaseSuperseded:
		return r.removeByBallot(ctx, key, token, "")
	case releaseTooLate:
		return Snapshot{}, &RefusedError{Err: ErrNotHeld} // no value can have a majority
	default:
		return Snapshot{}, &NoQuorum{Replies: replies}
	}
}

// clearing returns the operation that removes what remains of a released attempt, once no ballot can
// choose a value any more: cells that promised a ballot and accepted none, and blocking copies. While
// another master is away, they could count as a majority together with it, and a master that catches
// up would get a blocking copy of them.
func clearing(key string, a cell.Attempt) cell.Remove {
	return cell.Remove{Name: key, Attempt: a, Mode: cell.Clear}
}

// followUp handles the replies to a deletion, also those that arrive later. It tells op to masters
// that do not reply, and to masters on which op deletes what remains of the attempt. It schedules a
// repair if another cell remains, which may be a leftover now.
func (r *Register) followUp(round Round, op cell.Remove) { onEachReply(round, r.follower(op)) }

// follower returns the function with which followUp handles a reply.
func (r *Register) follower(op cell.Remove) func(master int, reply Reply) {
	return func(master int, reply Reply) {
		switch {
		case reply.State == Unknown, reply.State == Failed:
			r.masters.Tell(master, op, true)
		case reply.Applied, len(reply.KeyStates) == 0, reply.KeyStates[0].Form == cell.Absent:
		case op.Mode == cell.Clear && op.Removes(reply.KeyStates[0].Cell):
			r.masters.Tell(master, op, true)
		case reply.State == Counted:
			r.scheduleRepair(op.Name)
		}
	}
}

// collectedReplies holds the replies to a deletion so far.
type collectedReplies struct {
	mu      sync.Mutex
	replies []Reply
	// then, unless it is nil, is called with each further reply.
	then func(master int, reply Reply)
}

// collect collects the replies to a deletion, also those that arrive later, and follows them up.
func (r *Register) collect(round Round, op cell.Remove) *collectedReplies {
	c, follow := &collectedReplies{replies: make([]Reply, r.n)}, r.follower(op)
	onEachReply(round, func(master int, reply Reply) {
		c.mu.Lock()
		c.replies[master] = reply
		then := c.then
		c.mu.Unlock()
		if follow(master, reply); then != nil {
			then(master, reply)
		}
	})
	return c
}

// soFar returns the present replies.
func (c *collectedReplies) soFar() []Reply {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.replies)
}

// onReply calls f with each reply, now or when it arrives.
func (c *collectedReplies) onReply(f func(master int, reply Reply)) {
	c.mu.Lock()
	c.then = f
	replies := slices.Clone(c.replies)
	c.mu.Unlock()
	for i, reply := range replies {
		f(i, reply)
	}
}

// undoRest undoes a released attempt on all masters. It is for releases that a ballot did not
// decide, for example because masters are away: cells that promised a ballot and accepted none could
// count as a majority together with these. undoRest reports whether a majority has deleted the
// attempt, now or by the release that began at start and got the collected replies. Then no ballot
// chose a value, and none can any more.
func (r *Register) undoRest(ctx context.Context, key string, g *grant, collected *collectedReplies, start time.Time) bool {
	undo := cell.Remove{Name: key, Attempt: g.attempt, Mode: cell.Undo}
	if r.isLate(r.masters.Now().Sub(start)) {
		for i := range r.n {
			r.masters.Tell(i, undo, true)
		}
		return false
	}
	deletedCount := func(undone []Reply) (n int) {
		released := g.withoutPending(collected.soFar())
		for i, reply := range g.withoutPending(undone) {
			// A master that forgot its deletion may hold a copy.
			if reply.isYes() || released[i].isYes() && reply.hasNone(g.attempt) {
				n++
			}
		}
		return n
	}
	round, err := r.masters.Ask(context.WithoutCancel(ctx), r.repeatOp(undo), func(undone []Reply) bool {
		n := deletedCount(undone)
		return n >= r.quorum || n+countWaiting(undone) < r.quorum
	})
	isDeleted := err == nil && deletedCount(round.Replies()) >= r.quorum && !r.isLate(r.masters.Now().Sub(start))
	if isDeleted {
		undo = clearing(key, g.attempt)
	}
	r.followUp(round, undo)
	return isDeleted
}

func hasRegister(replies []Reply, a cell.Attempt) bool {
	return count(replies, func(r *Reply) bool {
		return len(r.KeyStates) > 0 && r.KeyStates[0].Form == cell.Register && r.KeyStates[0].Attempt == a
	}) > 0
}

// hasNone reports whether the master certainly holds nothing of an attempt, after an operation that
// deletes it.
func (r *Reply) hasNone(a cell.Attempt) bool {
	if r.State != Counted || r.Applied {
		return r.State == Counted
	}
	f := r.KeyStates[0]
	return f.Form == cell.Mark || f.Attempt != a && !f.IsUndecided()
}

type releaseResult int

const (
	releaseUnknown    releaseResult = iota
	releaseDone                     // this release ended the lock
	releaseTooLate                  // the lock had ended before
	releaseSuperseded               // the lock had ended before; another attempt may hold the same token
	releaseByBallot                 // some master promised a ballot: a ballot decides
)

// evaluateRelease determines the effect of deleting the plain cells of a granted attempt. Only this
// release deletes them, so a missing cell has expired, or a ballot replaced it. See REGISTER.md,
// Releasing.
func (r *Register) evaluateRelease(g *grant, replies []Reply, start time.Time) releaseResult {
	if r.isHeldByAnother(g, replies) {
		return releaseSuperseded
	}
	replies = g.withoutPending(replies)
	deleted := count(replies, (*Reply).isYes)
	mayHold := r.n - count(replies, func(r *Reply) bool { return r.hasNone(g.attempt) })
	switch {
	case deleted >= r.quorum:
		return releaseDone
	case hasRegister(replies, g.attempt):
		return releaseByBallot
	case r.hadExpired(g, replies, start) && resolve(replies, 0).status == TallyAbsent:
		return releaseTooLate
	case r.hadExpired(g, replies, start):
		return releaseSuperseded
	case g.countLostCells(replies) > 0:
		return releaseUnknown
	case deleted > 0 && mayHold < r.quorum && !g.isExpired(r.masters.Now()):
		return releaseDone // masters that did not reply or have blocking copies are too few
	default:
		return releaseUnknown
	}
}

// isHeldByAnother reports whether a majority holds another attempt or a foreign value, and this
// release deleted nothing, so that the lock had lost its majority before.
func (r *Register) isHeldByAnother(g *grant, replies []Reply) bool {
	t := resolve(replies, 0)
	return (t.status == TallyForeign || t.status == TallyHeld && t.attempt != g.attempt) &&
		count(replies, (*Reply).mayBeDone)+countWaiting(replies) == 0
}

// withoutPending returns the replies, with Unknown for each master that the lock may still reach. A
// request may take any time to arrive.
func (g *grant) withoutPending(replies []Reply) []Reply {
	if !slices.Contains(g.isPending, true) {
		return replies
	}
	certain := slices.Clone(replies)
	for i, reply := range replies {
		if g.mayReach(i, reply) {
			certain[i] = Reply{State: Unknown}
		}
	}
	return certain
}

// mayReach reports whether the lock may still reach a master that does not hold it now. A deleted
// cell may have been a copy from a catch-up.
func (g *grant) mayReach(master int, reply Reply) bool {
	switch {
	case !g.isPending[master]:
		return false
	case reply.isYes():
		return true
	default:
		return reply.isNotDone() && (len(reply.KeyStates) == 0 || !reply.KeyStates[0].Holds(g.attempt))
	}
}

// countLostCells returns the number of masters that took the lock and certainly lost it, but not by
// this release.
func (g *grant) countLostCells(replies []Reply) int {
	n := 0
	for i, reply := range replies {
		if !g.holders[i] || reply.State != Counted || reply.Applied {
			continue
		}
		if f := reply.KeyStates[0]; !f.IsUndecided() && (f.Attempt != g.attempt || f.Form == cell.Mark) {
			n++
		}
	}
	return n
}

// hadExpired reports whether the lock had ended before the release that began at start. A lost cell
// alone proves nothing: its lease may have expired meanwhile. Its master may also have restarted,
// copied nothing because this release had deleted other cells, and granted the key to another
// client.
func (r *Register) hadExpired(g *grant, replies []Reply, start time.Time) bool {
	lostCells := g.countLostCells(replies)
	notDeleted := count(replies, func(r *Reply) bool { return r.State == Counted && !r.Applied })
	return lostCells > 0 && notDeleted == r.n || lostCells >= r.quorum && (g.ttl < 0 || g.isExpired(start))
}

// finishRelease lets a ballot complete a release.
func (r *Register) finishRelease(
	ctx context.Context, key string, entry *grant, released *collectedReplies, start time.Time,
) (Snapshot, error) {
	seen, err := r.removeByBallot(ctx, key, entry.token, entry.attempt)
	current := r.grants.snapshot(entry)
	g, replies := &current, released.soFar() // the ballot was behind the release at each master
	isUndecided := err != nil && !errors.Is(err, ErrNotHeld) && !errors.Is(err, ErrContended)
	if isUndecided && !g.mayArriveLate && r.undoRest(ctx, key, g, released, start) {
		return Snapshot{}, nil
	}
	switch {
	case errors.Is(err, ErrContended):
		// Some cells may be deleted.
		return Snapshot{}, &NoQuorum{Replies: replies, Unclear: true, Overtaken: true}
	case !errors.Is(err, ErrNotHeld), seen.incarnation == g.attempt:
		return seen, err
	case r.hadExpired(g, replies, start):
		return r.removeByBallot(ctx, key, g.token, "")
	case r.wasIntact(g, replies) && !g.mayArriveLate && !r.isLate(r.masters.Now().Sub(start)):
		// Only this release can have ended the lock in such a short time. The ballot saw the effect
		// of every take under way, because both use one connection, unless the connection broke.
		if !seen.Present {
			released.onReply(r.follower(clearing(key, g.attempt)))
		}
		return Snapshot{}, nil
	default: // seen is another client's value
		return Snapshot{}, &NoQuorum{Replies: replies, Unclear: true}
	}
}

// wasIntact reports whether a majority held the attempt as granted until the release. A blocking copy
// does not count: it may stand for a removal.
func (r *Register) wasIntact(g *grant, replies []Reply) bool {
	return count(replies, func(reply *Reply) bool {
		if reply.State != Counted || reply.Applied {
			return reply.isYes()
		}
		f := reply.KeyStates[0]
		return f.Attempt == g.attempt && f.Form == cell.Register && f.Accepted == ""
	}) >= r.quorum
}

// removeByBallot removes the key if it holds the token. It returns the value that it saw or tried
// to remove last. If onlyAttempt is set, it leaves the value of any other attempt.
func (r *Register) removeByBallot(ctx context.Context, key, token string, onlyAttempt cell.Attempt) (currentSnapshot Snapshot, err error) {
	matches := func(l Snapshot) bool {
		return l.Present && l.Value == token && (onlyAttempt == "" || l.incarnation == onlyAttempt)
	}
	var lastSnapshot Snapshot
	currentSnapshot, _, err = r.updateIf(ctx, Change{Key: key, ExpectedValue: &token, Run: func(l Snapshot) (Decision, error) {
		lastSnapshot = l
		return Decision{Action: Remove}, nil
	}}, matches)
	if err != nil && !errors.Is(err, ErrNotHeld) {
		return lastSnapshot, err
	}
	return currentSnapshot, err
}

// updateIf runs an Update that changes only values that match. It returns the value on which it
// decided, and ErrNotHeld if that value does not match.
func (r *Register) updateIf(ctx context.Context, c Change, matches func(Snapshot) bool) (currentSnapshot Snapshot, out Outcome, err error) {
	run := c.Run
	c.Run = func(l Snapshot) (d Decision, err error) {
		if matches(l) {
			d, err = run(l)
		}
		d.Note = l
		return d, err
	}
	out, err = r.Update(ctx, c)
	if err != nil {
		return Snapshot{}, out, err
	}
	if currentSnapshot = out.Decision.Note.(Snapshot); !matches(currentSnapshot) {
		return currentSnapshot, out, &RefusedError{Err: ErrNotHeld, CurrentSnapshot: currentSnapshot}
	}
	return currentSnapshot, out, nil
}
