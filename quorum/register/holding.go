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

// Share compares the cell of one master with the majority.
type Share int

const (
	// ShareUnknown means that the master did not reply, or its vote does not count.
	ShareUnknown Share = iota
	// ShareNone means that the master holds nothing.
	ShareNone
	// ShareSame means that the master holds the majority's value, or any value without a majority.
	ShareSame
	// ShareOther means that the master holds a different value, or a blocking copy.
	ShareOther
)

// Holding is the current value of a key, and its holder, as far as this proxy knows.
type Holding struct {
	Look
	Status Status
	// Shares and Errs have one entry for each master. Errs holds the reason why a share is unknown.
	Shares []Share
	Errs   []error
	// Holder and Since are set if this proxy granted the current value.
	Holder any
	Since  time.Time
	// Fence is the highest credible fence that a master returned if a majority answered, or 0.
	Fence int64
}

// Holdings returns the state of each key on all masters. Unlike Read it changes nothing.
//
// Errors: *NoQuorum if no master answered, or the cause of ctx.
func (r *Register) Holdings(ctx context.Context, keys []string) ([]Holding, error) {
	asked, err := r.masters.Ask(ctx, r.toAll(cell.Read{Names: keys, Fences: true}), waitForAll)
	if err != nil {
		return nil, err
	}
	replies := asked.Replies()
	if count(replies, (*Reply).answered) == 0 {
		return nil, &NoQuorum{Replies: replies}
	}
	found := make([]Holding, len(keys))
	for i, key := range keys {
		t := resolve(replies, i)
		if differ(replies, i, t) {
			r.repairLater(key)
		}
		found[i] = holdingOf(t, replies, i)
		if fences := r.fencesOf(key, replies, i); len(fences) > 0 && Answered(replies) {
			found[i].Fence = fences[len(fences)-1]
		}
		if found[i].Status == StatusHeld {
			if entry := r.grants.find(key, withVersion(found[i].Version)); entry != nil {
				found[i].Holder, found[i].Since = entry.holder, entry.since
			}
		}
	}
	return found, nil
}

func holdingOf(t tally, replies []Reply, i int) Holding {
	h := Holding{
		Status: statusOf(t, replies, i), Shares: make([]Share, len(replies)), Errs: make([]error, len(replies)),
	}
	if h.Status == StatusHeld {
		h.Look = t.look()
	}
	for m, r := range replies {
		h.Errs[m] = r.Err
		if r.State == Counted && i < len(r.Found) {
			h.Errs[m], h.Shares[m] = nil, shareOf(t, r.Found[i])
		}
	}
	return h
}

func statusOf(t tally, replies []Reply, i int) Status {
	holds := func(r Reply) bool { return r.State == Counted && i < len(r.Found) && r.Found[i].Value.Present }
	switch {
	case t.standing == Undetermined:
		return StatusUnclear
	case t.standing == Foreign, t.standing == Held && t.chosen && t.value.Present:
		return StatusHeld
	case t.standing == Held && !t.chosen, t.standing == Absent && slices.ContainsFunc(replies, holds):
		return StatusSplit
	default:
		return StatusFree
	}
}

func shareOf(t tally, c cell.Found) Share {
	majority := t.standing == Held || t.standing == Foreign
	foreign := c.Form == cell.Foreign
	switch {
	case c.Form == cell.Blocking:
		return ShareOther
	case !c.Value.Present:
		return ShareNone
	case !majority,
		t.standing == Foreign && foreign && c.Value.Text == t.value.Text,
		t.standing == Held && !foreign && c.Attempt == t.attempt && c.Accepted == t.accepted:
		return ShareSame
	default:
		return ShareOther
	}
}
