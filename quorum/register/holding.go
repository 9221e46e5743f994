package register

import (
	"context"
	"slices"
	"time"

	"redlock-proxy/quorum/cell"
)

// Status is what the masters hold under a key, as an operator wants to know it.
type Status int

const (
	// StatusUnclear: the state of the key is undetermined.
	StatusUnclear Status = iota
	// StatusFree: nobody holds it.
	StatusFree
	// StatusHeld: a majority holds it for one holder.
	StatusHeld
	// StatusSplit: some masters hold it, and no majority agrees; it is being taken, replaced or
	// removed, or what is left of that is not cleaned up yet.
	StatusSplit
)

// Share is what one master holds under a key.
type Share int

const (
	// ShareUnknown: it did not answer, or its vote does not count.
	ShareUnknown Share = iota
	// ShareNone: it holds nothing.
	ShareNone
	// ShareSame: it holds what the majority holds or, where none does, something.
	ShareSame
	// ShareOther: it holds something else than the majority, or keeps the place of it.
	ShareOther
)

// Holding is the current value of a key, and who took it, as far as this proxy knows.
type Holding struct {
	Look
	Status Status
	// Shares are those of the masters, in their order; Errs say why there is none.
	Shares []Share
	Errs   []error
	// Holder and Since are of the Terms that this proxy granted, if it did and its value is
	// the current one.
	Holder any
	Since  time.Time
	// Fence is the highest that one of a majority of masters has, or 0.
	Fence int64
}

// Holdings returns what all masters hold under each key. Unlike Read it changes nothing: a key
// that is in the course of being replaced is StatusSplit.
//
// Errors: *NoQuorum where no master answered, or the cause of ctx.
func (r *Register) Holdings(ctx context.Context, keys []string) ([]Holding, error) {
	asked, err := r.masters.Ask(ctx, r.toAll(cell.Read{Names: keys, Fences: true}), allIn)
	if err != nil {
		return nil, err
	}
	replies := asked.Replies()
	if count(replies, (*Reply).answered) == 0 {
		return nil, &NoQuorum{Replies: replies}
	}
	found := make([]Holding, len(keys))
	for i, key := range keys {
		f := resolve(replies, i)
		if differ(replies, i, f) {
			r.mendLater(key)
		}
		found[i] = holdingOf(f, replies, i)
		if fences := r.fencesOf(key, replies, i); len(fences) > 0 && Answered(replies) {
			found[i].Fence = fences[len(fences)-1]
		}
		if found[i].Status == StatusHeld {
			if one := r.grants.find(key, ofVersion(found[i].Version)); one != nil {
				found[i].Holder, found[i].Since = one.holder, one.since
			}
		}
	}
	return found, nil
}

// holdingOf is the finding about key number i, with what each master said.
func holdingOf(f finding, replies []Reply, i int) Holding {
	h := Holding{Status: statusOf(f, replies, i), Shares: make([]Share, len(replies)), Errs: make([]error, len(replies))}
	if h.Status == StatusHeld {
		h.Look = f.look()
	}
	for m, r := range replies {
		h.Errs[m] = r.Err
		if r.State == Counted && i < len(r.Found) {
			h.Errs[m], h.Shares[m] = nil, shareOf(f, r.Found[i])
		}
	}
	return h
}

func statusOf(f finding, replies []Reply, i int) Status {
	holds := func(r Reply) bool { return r.State == Counted && i < len(r.Found) && r.Found[i].Value.Present }
	switch {
	case f.standing == Open:
		return StatusUnclear
	case f.standing == Foreign, f.standing == Held && f.chosen && f.value.Present:
		return StatusHeld
	case f.standing == Held && !f.chosen, f.standing == Absent && slices.ContainsFunc(replies, holds):
		return StatusSplit
	default:
		return StatusFree
	}
}

// shareOf is what one master holds, compared with a majority.
func shareOf(f finding, c cell.Found) Share {
	majority := f.standing == Held || f.standing == Foreign
	foreign := c.Form == cell.Foreign
	switch {
	case c.Form == cell.Blocking:
		return ShareOther
	case !c.Value.Present:
		return ShareNone
	case !majority,
		f.standing == Foreign && foreign && c.Value.Text == f.value.Text,
		f.standing == Held && !foreign && c.Attempt == f.attempt && c.Accepted == f.accepted:
		return ShareSame
	default:
		return ShareOther
	}
}
