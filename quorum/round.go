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
	change  Change
	start   time.Time
	ops     []op
	decided chan struct{} // closed with the verdict

	mu      sync.Mutex
	tally   Tally
	verdict Verdict
	answers []answer
	// complete, if somebody asked for it, is closed when every master has answered.
	complete chan struct{}
	// abandoned: nobody wants what this round applies any more; it is undone.
	abandoned bool
}

type answer struct {
	reply
	here bool
}

// begin asks all masters. The order per key at each master is the order of the
// calls to begin.
func (c *Cluster) begin(change Change) *round {
	n := len(c.masters)
	r := &round{
		cluster: c, change: change, start: time.Now(),
		ops: make([]op, n), answers: make([]answer, n),
		decided: make(chan struct{}),
		tally:   Tally{Masters: n},
	}
	for i, m := range c.masters {
		r.ops[i].change, r.ops[i].round, r.ops[i].index = change, r, i
		m.ask(&r.ops[i])
	}
	return r
}

// answer takes the reply of master number i.
func (r *round) answer(i int, got reply) {
	r.mu.Lock()
	r.answers[i] = answer{got, true}
	r.count(got)
	decidesIt := r.judge()
	if r.complete != nil && r.tally.awaited() == 0 {
		close(r.complete)
	}
	won, abandoned := r.verdict == Won, r.abandoned
	r.mu.Unlock()
	switch {
	case abandoned:
		r.undo(i)
	case r.change.kind == kindRelease && got.vote == voteFailed:
		r.cluster.masters[i].cleanup(r.change)
	case r.change.kind == kindExtend && won && decidesIt:
		r.repairAll()
	case r.change.kind == kindExtend && won:
		r.repair(i)
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
	done := r.tally.awaited() == 0
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

// undo removes from master i what this acquire did there, behind it in its lane.
func (r *round) undo(i int) {
	got := r.answers[i].reply
	if got.vote == voteYes || got.unknown {
		age := time.Since(r.start)
		r.cluster.masters[i].cleanup(r.change.undoAfter(age, got.vote == voteYes))
	}
}

// repair gives the key again to a master that lost it, beside a majority that
// still holds it: never as a vote. It steps back behind a release that was asked
// for since.
func (r *round) repair(i int) {
	left := (r.change.ttl - time.Since(r.start)).Truncate(time.Millisecond)
	if r.answers[i].vote != voteAbsent || left <= 0 {
		return
	}
	m := r.cluster.masters[i]
	again := Acquire(r.change.key, r.change.token, left)
	m.lane(again.key).pushUnlessReleased(&op{change: again})
}

// repairAll looks at every master that answered before the round was won.
func (r *round) repairAll() {
	r.mu.Lock()
	var lost []int
	for i, a := range r.answers {
		if a.here && a.vote == voteAbsent {
			lost = append(lost, i)
		}
	}
	r.mu.Unlock()
	for _, i := range lost {
		r.repair(i)
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
		if a.here && a.vote == voteFailed {
			cause := &MasterError{Master: r.cluster.masters[i].name, Err: a.err}
			err.Causes = multierror.Append(err.Causes, cause)
		}
	}
	return err
}
