package register

import (
	"context"
	"slices"
	"time"

	"redlock-proxy/quorum/cell"
)

// Status is the state of a key on the masters, as an operator sees it.
type Status int

const (
	// StatusUnclear means that the state of the key is undetermined.
	StatusUnclear Status = iota
	// StatusFree means that no client holds the key.
	StatusFree
	// StatusHeld means that a majority holds the key for one holder.
	StatusHeld
	// StatusSplit means that some masters hold the key, but no majority agrees: a command is
	// changing it, or leftovers are not cleaned up yet.
	StatusSplit
)

// CopyState compares the cell of one master with the majority.
type CopyState int

const (
	// CopyUnknown means that the master did not reply, or its vote does not count.
	CopyUnknown CopyState = iota
	// CopyAbsent means that the master holds no value.
	CopyAbsent
	// CopySame means that the master holds the majority's value. If no value has a majority,
	// CopySame means that the master holds any value.
	CopySame
	// CopyDifferent means that the master holds a different value, or a blocking copy.
	CopyDifferent
)

// Holding is the current value of a key, and its holder, as far as this proxy knows.
type Holding struct {
	Snapshot
	Status Status
	// Copies and Errs have one entry for each master. Errs holds the reason why a copy is unknown.
	Copies []CopyState
	Errs   []error
	// Holder and LeaseStart are set if this proxy granted the current value.
	Holder     any
	LeaseStart time.Time
	// Fence is the highest credible fence that a master returned if a majority answered, or 0.
	Fence int64
}

// Holdings returns the state of each key on all masters. Unlike Read it runs no ballot, but it
// schedules the repair of a key whose cells differ.
//
// Errors: *NoQuorum if no master answered, or the cause of ctx.
func (r *Register) Holdings(ctx context.Context, keys []string) ([]Holding, error) {
	round, err := r.masters.Ask(ctx, r.repeatOp(cell.Read{Names: keys, WithFences: true}), neverDecided)
	if err != nil {
		return nil, err
	}
	replies := round.Replies()
	if count(replies, (*Reply).answered) == 0 {
		return nil, &NoQuorum{Replies: replies}
	}
	holdings := make([]Holding, len(keys))
	for i, key := range keys {
		t := resolve(replies, i)
		if cellsDiffer(replies, i, t) {
			r.scheduleRepair(key)
		}
		holdings[i] = newHolding(t, replies, i)
		if fences := r.fencesOf(key, replies, i); len(fences) > 0 && HasAnswerQuorum(replies) {
			holdings[i].Fence = fences[len(fences)-1]
		}
		if holdings[i].Status == StatusHeld {
			holdings[i].Holder, holdings[i].LeaseStart = r.GrantedTo(key, holdings[i].Version)
		}
	}
	return holdings, nil
}

func newHolding(t tally, replies []Reply, i int) Holding {
	h := Holding{
		Status: statusOf(t, replies, i), Copies: make([]CopyState, len(replies)), Errs: make([]error, len(replies)),
	}
	if h.Status == StatusHeld {
		h.Snapshot = t.snapshot()
	}
	for m, r := range replies {
		h.Errs[m] = r.Err
		if r.State == Counted && i < len(r.KeyStates) {
			h.Errs[m], h.Copies[m] = nil, copyStateOf(t, r.KeyStates[i])
		}
	}
	return h
}

func statusOf(t tally, replies []Reply, i int) Status {
	holds := func(r Reply) bool { return r.State == Counted && i < len(r.KeyStates) && r.KeyStates[i].Value.Present }
	switch {
	case t.status == TallyUndetermined:
		return StatusUnclear
	case t.status == TallyForeign, t.status == TallyHeld && t.chosen && t.value.Present:
		return StatusHeld
	case t.status == TallyHeld && !t.chosen, t.status == TallyAbsent && slices.ContainsFunc(replies, holds):
		return StatusSplit
	default:
		return StatusFree
	}
}

func copyStateOf(t tally, c cell.KeyState) CopyState {
	majority := t.status == TallyHeld || t.status == TallyForeign
	foreign := c.Form == cell.Foreign
	switch {
	case c.Form == cell.Blocking:
		return CopyDifferent
	case !c.Value.Present:
		return CopyAbsent
	case !majority,
		t.status == TallyForeign && foreign && c.Value.Text == t.value.Text,
		t.status == TallyHeld && !foreign && c.Attempt == t.attempt && c.Accepted == t.acceptedBallot:
		return CopySame
	default:
		return CopyDifferent
	}
}
