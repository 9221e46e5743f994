package quorum

import (
	"context"
	"errors"
	"slices"
	"time"

	"redlock-proxy/quorum/keygroup"
	"redlock-proxy/quorum/master"
	"redlock-proxy/quorum/register"
)

// This file implements the operators' view of locks: the holder of a key, and its forced release.

// Status is the state of a key for operators; see package register.
type Status = register.Status

// The states of a key.
const (
	StatusUnclear = register.StatusUnclear
	StatusFree    = register.StatusFree
	StatusHeld    = register.StatusHeld
	StatusSplit   = register.StatusSplit
)

// Holding is the state of a key, and its holder as far as this process knows.
type Holding struct {
	Status Status
	// TimeLeft is the remaining time that a majority grants, or NoExpiry; only with StatusHeld.
	TimeLeft time.Duration
	// Masters holds the state on each master.
	Masters []MasterAnswer
	// Holder comes from the request that took the lock, and LeaseStart is the start of the lease.
	// Both are unset if another process granted the lock.
	Holder     any
	LeaseStart time.Time
	// Slots is the number of clients that may hold the lock, Unlimited, or 0 for an exclusive lock.
	// If Slots is not 0, Holders holds the holders, sorted by token, and Holder and LeaseStart are
	// unset.
	Slots   int
	Holders []LockHolder
	// Fence is at least the fence of every lock of the key, as Cluster.Fence returns it.
	Fence int64
	// Waiters is the number of requests that wait for the key. Only a Locker sets it.
	Waiters int
}

// LockHolder is one holder of a lock that several clients may hold.
type LockHolder struct {
	Token string
	// TimeLeft is the remaining time, or NoExpiry.
	TimeLeft time.Duration
	// Client and LeaseStart have the meanings of Holding.Holder and Holding.LeaseStart.
	Client     any
	LeaseStart time.Time
}

// MasterAnswer is the state of a key on one master.
type MasterAnswer struct {
	// Server is the address of the master, without credentials.
	Server string
	// State is "held", "free", "other" (the value differs from the majority's), "no answer", or the
	// reason why the master did not answer or has no vote.
	State string
}

// Holdings returns the states of keys of one database, without a ballot.
//
// Errors: *NoQuorumError if no master answered, *OwnKeyError, or the cause of ctx.
func (c *Cluster) Holdings(ctx context.Context, keys []Key) ([]Holding, error) {
	return withSet(ctx, c, func(set *masterSet) ([]Holding, error) { return set.Holdings(ctx, keys) })
}

// Holdings implements Cluster.Holdings.
func (set *masterSet) Holdings(ctx context.Context, keys []Key) ([]Holding, error) {
	if err := set.checkAccess(keys...); err != nil {
		return nil, err
	}
	cells, cellIndex := cellsOf(keys)
	holdings, err := set.database(keys[0].DB).Holdings(ctx, cells)
	if err != nil {
		return nil, set.translate(err)
	}
	all := make([]Holding, len(keys))
	for i, key := range keys {
		f := holdings[cellIndex[i]]
		all[i] = set.holding(f)
		if err := all[i].narrowTo(set, f, key); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// holding converts a state of the register, and adds the masters' names.
func (set *masterSet) holding(f register.Holding) Holding {
	h := Holding{
		Status: f.Status, TimeLeft: f.TimeLeft, Holder: f.Holder, LeaseStart: f.LeaseStart, Fence: f.Fence,
		Masters: make([]MasterAnswer, len(set.masters)),
	}
	for i, m := range set.masters {
		h.Masters[i] = MasterAnswer{m.Name(), copyText(f.Copies[i], f.Errs[i])}
	}
	return h
}

func copyText(s register.CopyState, err error) string {
	switch {
	case s == register.CopyAbsent:
		return "free"
	case s == register.CopySame:
		return "held"
	case s == register.CopyDifferent:
		return "other"
	case err != nil:
		return master.CauseText(err)
	default:
		return "no answer"
	}
}

// narrowTo replaces the state of a cell by the state of one of its keys.
func (h *Holding) narrowTo(set *masterSet, cell register.Holding, key Key) error {
	if key.Tag != "" {
		h.Holder, h.LeaseStart, h.Fence = nil, time.Time{}, 0
	}
	if h.Status != StatusHeld {
		return nil
	}
	b, err := keygroup.Open(key.cellName(), cell.Snapshot)
	if err != nil {
		return err
	}
	l, err := keySnapshot(b, cell.Snapshot, key)
	if err != nil {
		return err
	}
	if h.TimeLeft = l.TimeLeft; !l.Present {
		h.Status, h.Holder, h.LeaseStart = StatusFree, nil, time.Time{}
		return nil
	}
	if l.Foreign || !keygroup.IsHolders(l.Value) {
		return nil
	}
	whole, _ := storedSnapshot(b, cell.Snapshot, key)
	return h.addHolders(set, key, whole)
}

// addHolders adds the holders of a lock that several clients may hold.
func (h *Holding) addHolders(set *masterSet, key Key, whole Snapshot) error {
	holders, err := keygroup.OpenHolders(whole)
	if err != nil {
		return err
	}
	h.Holder, h.LeaseStart, h.Slots = nil, time.Time{}, holders.Slots()
	for _, token := range holders.Tokens() {
		l := holders.Holder(token)
		one := LockHolder{Token: token, TimeLeft: l.TimeLeft}
		one.Client, one.LeaseStart = set.database(key.DB).GrantedTo(key.grantName(token), l.Version)
		h.Holders = append(h.Holders, one)
	}
	return nil
}

// Names calls page with the names of a database's keys, some hundred at a time, while page returns
// true. The names include every lock that a majority holds during the whole call. They may include
// other keys, and the same name several times.
//
// Errors: the error of page, *NoQuorumError if no majority answers, or the cause of ctx.
func (c *Cluster) Names(ctx context.Context, db int, page func(names []string) (more bool, err error)) error {
	_, err := withSet(ctx, c, func(set *masterSet) (struct{}, error) { return struct{}{}, set.Names(ctx, db, page) })
	return err
}

// Names implements Cluster.Names.
func (set *masterSet) Names(ctx context.Context, db int, page func(names []string) (more bool, err error)) error {
	votes := newNoQuorum(len(set.masters))
	if cells := page; set.cluster.opts.Tagged {
		page = func(names []string) (bool, error) {
			all, err := set.keyNames(ctx, db, names)
			if err != nil {
				return false, err
			}
			return cells(all)
		}
	}
	for _, m := range set.masters { // two majorities share a master
		more, scanErr, err := scanNames(ctx, m, db, page)
		switch {
		case err != nil || scanErr == nil && !more:
			return err
		case scanErr != nil:
			votes.add(&MasterError{Master: m.Name(), Err: scanErr})
			continue
		}
		if votes.VoteCount++; votes.VoteCount == Majority(len(set.masters)) {
			return nil
		}
	}
	return votes
}

// scanNames passes the names of a master's keys to page. scanErr is the reason why names may be
// missing.
func scanNames(
	ctx context.Context, m *master.Master, db int, page func([]string) (bool, error),
) (more bool, scanErr, err error) {
	for cursor, first := "0", true; first || cursor != "0"; first = false {
		var names []string
		names, cursor, scanErr = m.ScanKeys(ctx, db, cursor)
		switch {
		case ctx.Err() != nil:
			return false, nil, context.Cause(ctx)
		case scanErr != nil:
			return false, scanErr, nil
		}
		// A faulty master may send reserved names.
		if names = slices.DeleteFunc(names, isOwnName); len(names) == 0 {
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

// errLostVote is the cause for a master that may have lost data since its first reply.
var errLostVote = errors.New("lost its vote meanwhile")

// Remove takes a lock from its holders, by ballot, and reports whether there was a holder. With
// key.Holder it takes the lock only from the holder with that token, also if it is exclusive.
//
// Errors: the errors of Update.
func (c *Cluster) Remove(ctx context.Context, key Key) (bool, error) {
	return withSet(ctx, c, func(set *masterSet) (bool, error) { return set.Remove(ctx, key) })
}

// Remove implements Cluster.Remove. If a majority answers but the state of the key stays
// undetermined, it removes everything that the masters hold in the cell.
func (set *masterSet) Remove(ctx context.Context, key Key) (bool, error) {
	if key.Holder != "" {
		return set.removeToken(ctx, key)
	}
	present := false // in any run of the function
	out, err := set.Update(ctx, key, nil, func(l Snapshot) (Decision, error) {
		if !l.Present {
			return Decision{}, nil
		}
		present = true
		return Decision{Action: Remove}, nil
	})
	var noQuorum *NoQuorumError
	switch {
	case errors.As(err, &noQuorum) && noQuorum.HasMajority():
		removed, err := set.database(key.DB).ForceRemove(ctx, key.cellName())
		set.cluster.onFreed(key, Unlimited)
		return removed || present, set.translate(err) // the removal covers the value that a run saw
	}
	return out.Decision.Action == Remove, err
}

// Databases returns the numbers of databases in ascending order: database 0, and every database
// with a lock that a majority holds during the whole call. The result may include other databases.
//
// Errors: *NoQuorumError if no majority answers, or the cause of ctx.
func (c *Cluster) Databases(ctx context.Context) ([]int, error) {
	return withSet(ctx, c, func(set *masterSet) ([]int, error) { return set.Databases(ctx) })
}

// Databases implements Cluster.Databases.
func (set *masterSet) Databases(ctx context.Context) ([]int, error) {
	votes, all := newNoQuorum(len(set.masters)), []int{0}
	for _, m := range set.masters {
		found, err := m.Databases(ctx)
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case err != nil:
			votes.add(&MasterError{Master: m.Name(), Err: err})
			continue
		}
		all = append(all, found...)
		if votes.VoteCount++; votes.VoteCount == Majority(len(set.masters)) {
			slices.Sort(all)
			return slices.Compact(all), nil
		}
	}
	return nil, votes
}
