package quorum

import (
	"context"
	"sync"
	"time"

	"github.com/hashicorp/go-multierror"
)

// round is one change sent to all masters, and their answers.
type round struct {
	cluster *Cluster
	// electors are asked; the masters among them come first, and are counted.
	electors []*master
	change   Change
	start    time.Time
	ops      []op
	decided  chan struct{} // closed with the verdict

	mu      sync.Mutex
	tally   Tally
	verdict Verdict
	answers []answer
	// complete, if somebody asked for it, is closed when every master has answered.
	complete chan struct{}
	// abandoned: nobody wants what this round applies any more; it is undone.
	abandoned bool
}

// roundLimit is how long a round may take that gives somebody something: one that took
// longer is abandoned, however long its leases are. So a master that forgot what it
// agreed to need wait no longer before the others know every grant that it was a part
// of. It is the same for all proxies: no setting may change it.
const roundLimit = 600 * time.Millisecond

type answer struct {
	reply
	here bool
}

// begin asks all masters. The order per key at each master is the order of the
// calls to begin.
func (c *Cluster) begin(change Change) *round { return c.beginWith(c.electors, len(c.masters), change) }

// beginWith asks these, of which so many are masters.
func (c *Cluster) beginWith(electors []*master, masters int, change Change) *round {
	n := len(electors)
	r := &round{
		cluster: c, electors: electors, change: change, start: time.Now(),
		ops: make([]op, n), answers: make([]answer, n),
		decided: make(chan struct{}),
		tally:   Tally{Masters: masters},
	}
	for i, m := range electors {
		r.ops[i].change, r.ops[i].round, r.ops[i].index = change, r, i
		m.ask(&r.ops[i])
	}
	return r
}

// answer takes the reply of master number i.
func (r *round) answer(i int, got reply) {
	r.mu.Lock()
	r.answers[i] = answer{got, true}
	if i < r.tally.Masters {
		r.count(got)
	}
	decidesIt := r.judge()
	if r.complete != nil && r.allHere() {
		close(r.complete)
	}
	won, abandoned := r.verdict == Won, r.abandoned
	r.mu.Unlock()
	switch {
	case abandoned:
		r.undo(i)
	case r.change.kind == kindRelease && got.asSaid().vote == voteFailed:
		r.electors[i].cleanup(r.change)
	case r.change.kind == kindExtend && won && decidesIt:
		r.repairAll()
	case r.change.kind == kindExtend && won:
		r.repair([]int{i})
	}
}

func (r *round) count(got reply) {
	switch got.vote {
	case voteYes:
		r.tally.Yes++
	case voteFailed:
		r.tally.Failed++
	default:
		r.tally.No++
	}
}

// judge decides the round once, and reports whether it did just now.
func (r *round) judge() bool {
	if r.verdict != Pending {
		return false
	}
	if r.change.kind == kindRead {
		r.verdict = r.readVerdict()
	} else {
		r.verdict = r.change.verdict(r.tally)
	}
	if legacy := r.legacyAnswer(); legacy != nil {
		r.verdict = r.change.besideLegacy(r.verdict, *legacy)
	}
	if r.verdict == Pending {
		return false
	}
	close(r.decided)
	return true
}

// wait gives the verdict, or the context's error if the caller left first.
func (r *round) wait(ctx context.Context) (Verdict, error) {
	select {
	case <-r.decided:
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.verdict, nil
	case <-ctx.Done():
		return Pending, context.Cause(ctx)
	}
}

// waitForAll waits until every master has answered or failed, at most as long as
// their timeout, or until ctx ends.
func (r *round) waitForAll(ctx context.Context) {
	r.mu.Lock()
	done := r.allHere()
	if !done {
		r.complete = make(chan struct{})
	}
	r.mu.Unlock()
	if done {
		return
	}
	select {
	case <-r.complete:
	case <-ctx.Done():
	}
}

// allHere reports whether nobody is still to answer.
func (r *round) allHere() bool {
	legacy := r.legacyAnswer()
	return r.tally.awaited() == 0 && (legacy == nil || legacy.here)
}

// abandon undoes what the round has applied or may have applied, and whatever it
// still will. What was not sent yet is dropped.
func (r *round) abandon() {
	r.mu.Lock()
	r.abandoned = true
	var here []int
	for i := range r.ops {
		r.ops[i].drop()
		if r.answers[i].here {
			here = append(here, i)
		}
	}
	r.mu.Unlock()
	for _, i := range here {
		r.undo(i)
	}
}

// undo takes back what this change did at master i, behind it in its lane.
func (r *round) undo(i int) {
	got := r.answers[i].asSaid()
	if !got.mayHaveDone() {
		return
	}
	for _, undo := range r.change.undoAfter(time.Since(r.start), got, r.isOver) {
		r.electors[i].cleanup(undo)
	}
}

// isOver reports whether no majority can hold what edit number i was to change, should
// all that was done be taken back: then it need not be put back anywhere. Another value
// at a master may be a try that is taken back, too, unless a majority holds it.
func (r *round) isOver(i int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.legacyAnswer() != nil {
		return false // what that holds is held, whatever the masters do
	}
	votes, gone := map[string]int{}, 0
	for _, a := range r.answers {
		switch told := a.here && a.vote == voteNo && i < len(a.entries); {
		case told && a.entries[i].Present:
			votes[a.entries[i].Value]++
		case told:
			gone++
		}
	}
	quorum := Majority(r.tally.Masters)
	for value, n := range votes {
		if n >= quorum && value != r.change.edits[i].Was.Value {
			return true
		}
	}
	return r.tally.Masters-gone < quorum
}

// isLate reports whether the round took longer than it may.
func (r *round) isLate(elapsed time.Duration) bool {
	gives := r.change.undoes() || r.change.kind == kindExtend
	return gives && !r.cluster.unguarded && elapsed > roundLimit
}

// tooLate says that the masters agreed, but nobody can rely on that.
func (r *round) tooLate(elapsed time.Duration) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return &NoQuorumError{
		Masters: r.tally.Masters, Answered: r.tally.answered(), Late: elapsed,
		Causes: &multierror.Error{ErrorFormat: joinCauses},
	}
}

// noQuorum names what every master that gave no vote had to say.
func (r *round) noQuorum() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := &NoQuorumError{
		Masters: r.tally.Masters, Answered: r.tally.answered(),
		Causes: &multierror.Error{ErrorFormat: joinCauses},
	}
	for i, a := range r.answers {
		if !a.here || a.vote != voteFailed {
			continue
		}
		cause := &MasterError{Master: r.electors[i].name, Err: a.err}
		if i < r.tally.Masters {
			err.Causes = multierror.Append(err.Causes, cause)
		} else {
			err.Legacy = cause
		}
	}
	return err
}
