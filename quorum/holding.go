package quorum

import (
	"context"
	"errors"
	"slices"
	"time"

	"redlock-proxy/quorum/bag"
	"redlock-proxy/quorum/master"
	"redlock-proxy/quorum/register"
)

// What an operator may ask of locks: who holds what, and that somebody holds it no more.

// Status is the state of a key, as an operator wants to know it; see package register.
type Status = register.Status

// The states of a key.
const (
	StatusUnclear = register.StatusUnclear
	StatusFree    = register.StatusFree
	StatusHeld    = register.StatusHeld
	StatusSplit   = register.StatusSplit
)

// Holding is the state of a key, and who took it, as far as this process knows.
type Holding struct {
	Status Status
	// Left is the remaining time that a majority grants, or Endless; only with StatusHeld.
	Left time.Duration
	// Shares are what each master holds.
	Shares []Share
	// Holder is that of the request which took the lock, and Since when its lease began; nil and
	// zero where this process has not granted it.
	Holder any
	Since  time.Time
	// Fence is not below the fence of any lock of the key, as of Cluster.Fence.
	Fence int64
	// Waiters are the requests that wait for it; only a Locker sets them.
	Waiters int
}

// Share is what one master holds.
type Share struct {
	// Server is its address, without credentials.
	Server string
	// Says is "held", "free", "other" (it holds something else than the majority) or, in plain
	// words, why it did not answer or has no vote.
	Says string
}

// Holdings returns what the masters hold under keys of one database, and changes nothing.
//
// Errors: *NoQuorumError where no master answered, *OwnKeyError, or the cause of ctx.
func (c *Cluster) Holdings(ctx context.Context, keys []Key) ([]Holding, error) {
	return on(ctx, c, func(g *generation) ([]Holding, error) { return g.Holdings(ctx, keys) })
}

// Holdings is Cluster.Holdings.
func (g *generation) Holdings(ctx context.Context, keys []Key) ([]Holding, error) {
	if err := g.mayTouch(keys...); err != nil {
		return nil, err
	}
	cells, of := cellsOf(keys)
	found, err := g.keyspace(keys[0].DB).Holdings(ctx, cells)
	if err != nil {
		return nil, g.explain(err)
	}
	all := make([]Holding, len(keys))
	for i, key := range keys {
		f := found[of[i]]
		all[i] = g.holding(f)
		if err := all[i].within(f, key); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// holding gives the masters their names.
func (g *generation) holding(f register.Holding) Holding {
	h := Holding{Status: f.Status, Left: f.Left, Holder: f.Holder, Since: f.Since, Fence: f.Fence, Shares: make([]Share, len(g.masters))}
	for i, m := range g.masters {
		h.Shares[i] = Share{m.Name(), says(f.Shares[i], f.Errs[i])}
	}
	return h
}

func says(s register.Share, err error) string {
	switch {
	case s == register.ShareNone:
		return "free"
	case s == register.ShareSame:
		return "held"
	case s == register.ShareOther:
		return "other"
	case err != nil:
		return master.CauseText(err)
	default:
		return "no answer"
	}
}

// within is what a key of a cell that is held so has of that.
func (h *Holding) within(cell register.Holding, key Key) error {
	if key.Tag != "" {
		h.Holder, h.Since, h.Fence = nil, time.Time{}, 0
	}
	if h.Status != StatusHeld {
		return nil
	}
	b, err := bag.Open(key.cell(), cell.Look)
	if err != nil {
		return err
	}
	l := lookAt(b, cell.Look, key)
	if h.Left = l.Left; !l.Present {
		h.Status, h.Holder, h.Since = StatusFree, nil, time.Time{}
	}
	return nil
}

// Names passes on names of keys of a database, a page of some hundred at a time, as long as page
// asks for more. Every lock that a majority holds all the while is among them; others may be, and
// some more than once.
//
// Errors: that of page, *NoQuorumError where no majority can be asked, or the cause of ctx.
func (c *Cluster) Names(ctx context.Context, db int, page func(names []string) (more bool, err error)) error {
	_, err := on(ctx, c, func(g *generation) (struct{}, error) { return struct{}{}, g.Names(ctx, db, page) })
	return err
}

// Names is Cluster.Names.
func (g *generation) Names(ctx context.Context, db int, page func(names []string) (more bool, err error)) error {
	asked := newNoQuorum(len(g.masters))
	if cells := page; g.of.opts.Tagged {
		page = func(names []string) (bool, error) {
			all, err := g.members(ctx, db, names)
			if err != nil {
				return false, err
			}
			return cells(all)
		}
	}
	for _, m := range g.masters { // a majority shares a master with every other one
		more, failed, err := namesOn(ctx, m, db, page)
		switch {
		case err != nil || failed == nil && !more:
			return err
		case failed != nil:
			asked.add(&MasterError{Master: m.Name(), Err: failed})
			continue
		}
		if asked.Answered++; asked.Answered == Majority(len(g.masters)) {
			return nil
		}
	}
	return asked
}

// namesOn passes on those on one master; failed is why not all of them.
func namesOn(ctx context.Context, m *master.Master, db int, page func([]string) (bool, error)) (more bool, failed, err error) {
	for cursor, first := "0", true; first || cursor != "0"; first = false {
		var names []string
		names, cursor, failed = m.Names(ctx, db, cursor)
		switch {
		case ctx.Err() != nil:
			return false, nil, context.Cause(ctx)
		case failed != nil:
			return false, failed, nil
		}
		if names = slices.DeleteFunc(names, isOwn); len(names) == 0 { // a master may send anything
			continue
		}
		if more, err := page(names); err != nil || !more {
			return false, nil, err
		}
	}
	if !m.Votes() {
		return false, errLostVote, nil
	}
	return true, nil, nil
}

// errLostVote: a master may have forgotten something since its first answer.
var errLostVote = errors.New("lost its vote meanwhile")

// Remove takes a lock from whoever holds it, by ballot, and reports whether anybody did.
//
// Errors: those of Update.
func (c *Cluster) Remove(ctx context.Context, key Key) (bool, error) {
	return on(ctx, c, func(g *generation) (bool, error) { return g.Remove(ctx, key) })
}

// Remove is Cluster.Remove. Where a majority answers and the state of the key is undetermined, or
// what became of the removal, whatever the masters hold in its cell is removed.
func (g *generation) Remove(ctx context.Context, key Key) (bool, error) {
	present := false // at any time
	out, err := g.Update(ctx, key, nil, func(l Look) (Decision, error) {
		if !l.Present {
			return Decision{}, nil
		}
		present = true
		return Decision{Do: Remove}, nil
	})
	var none *NoQuorumError
	switch {
	case errors.As(err, &none) && none.HasMajority():
		removed, err := g.keyspace(key.DB).Force(ctx, key.cell())
		g.of.freed(key)
		return removed || present, g.explain(err) // what was there when it was to be removed is gone
	}
	return out.Decision.Do == Remove, err
}

// Databases returns the numbers of databases, in their order. Every one with a lock that a majority
// holds all the while is among them, and database 0.
//
// Errors: *NoQuorumError where no majority can be asked, or the cause of ctx.
func (c *Cluster) Databases(ctx context.Context) ([]int, error) {
	return on(ctx, c, func(g *generation) ([]int, error) { return g.Databases(ctx) })
}

// Databases is Cluster.Databases.
func (g *generation) Databases(ctx context.Context) ([]int, error) {
	asked, all := newNoQuorum(len(g.masters)), []int{0}
	for _, m := range g.masters {
		some, err := m.Databases(ctx)
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case err != nil:
			asked.add(&MasterError{Master: m.Name(), Err: err})
			continue
		}
		all = append(all, some...)
		if asked.Answered++; asked.Answered == Majority(len(g.masters)) {
			slices.Sort(all)
			return slices.Compact(all), nil
		}
	}
	return nil, asked
}
