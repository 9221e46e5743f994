package quorum

import (
	"context"
	"time"
)

// Endless is the remaining time of a key without expiry.
const Endless time.Duration = -1

// Entry is what stands under a key, or is to stand there.
type Entry struct {
	// Present is false where there is no such key; then the rest means nothing.
	Present bool
	Value   string
	// Left is the remaining time, in whole milliseconds; Endless (or any negative
	// time) where the key has no expiry.
	Left time.Duration
}

// Edit is a change of one key, under a condition on what the key holds.
type Edit struct {
	Key Key
	// Was is the condition: absent, or this value. Its Left is not part of the
	// condition; it tells how much time to give back should the edit have to be
	// undone at a master that does not say (0: not known).
	Was Entry
	// Now is what the key is to hold: nothing, or this value for this time.
	Now Entry
	// KeepLeft leaves the remaining time as it is, on each master (KEEPTTL). With
	// Now the same value as Was it makes no change: the edit is only a condition.
	KeepLeft bool
}

// Outcome is what came of an Apply.
type Outcome struct {
	// Applied is set when a majority made all the edits.
	Applied bool
	// Validity is how long the shortest of the leases that the edits gave is valid
	// from now, or Endless where they gave none. It is set only with Applied.
	Validity time.Duration
	// Removed is set without Applied where edits that only remove were made by some
	// masters, which is not undone.
	Removed bool
	// Reach is, without Applied, how far edits came that give something.
	Reach Reach
	// Found is what the masters hold instead, one for each edit, as Read tells it.
	// It is set only without Applied.
	Found []Holding
}

// changes reports whether the edit is more than a condition.
func (e Edit) changes() bool {
	switch {
	case e.Was.Present != e.Now.Present:
		return true
	case !e.Now.Present:
		return false
	default:
		return e.Now.Value != e.Was.Value || !e.KeepLeft
	}
}

// gives reports whether the edit puts a value where it did not stand.
func (e Edit) gives() bool {
	return e.Now.Present && (!e.Was.Present || e.Now.Value != e.Was.Value)
}

// removes reports whether the edit takes a value away and puts none there.
func (e Edit) removes() bool { return e.Was.Present && !e.Now.Present }

// onlyRemoves is true of edits of which none but removes, as a release does. They
// are never undone: what they removed is what the caller wanted gone.
func onlyRemoves(edits []Edit) bool {
	removed := false
	for _, e := range edits {
		if e.changes() && !e.removes() {
			return false
		}
		removed = removed || e.removes()
	}
	return removed
}

// editsValidity is that of the shortest lease which the edits give, or Endless.
func editsValidity(edits []Edit, elapsed time.Duration) time.Duration {
	shortest := Endless
	for _, e := range edits {
		if e.Now.Present && !e.KeepLeft && e.Now.Left >= 0 && (shortest < 0 || e.Now.Left < shortest) {
			shortest = e.Now.Left
		}
	}
	return leaseValidity(shortest, elapsed)
}

// editGrants reports whether one of the edits gives a value to a key that did not
// hold it.
func (c Change) editGrants() bool {
	for _, e := range c.edits {
		if e.gives() {
			return true
		}
	}
	return false
}

// isLate reports whether a grant took so long that its lease is over, where it
// need not have been: one of 2 ms is never valid, and is what was asked for.
func (c Change) isLate(validity time.Duration) bool {
	return c.kind == kindEdit && c.editGrants() && validity != Endless && validity <= 0 && c.validity(0) > 0
}

// edited is the change that makes the edits: a Release or an Extend where it is
// one, which the masters do faster.
func edited(edits []Edit) Change {
	if e := edits[0]; len(edits) == 1 && e.Was.Present {
		switch {
		case !e.Now.Present:
			return Release(e.Key, e.Was.Value)
		case e.Now.Value == e.Was.Value && !e.KeepLeft && e.Now.Left > 0:
			return Extend(e.Key, e.Was.Value, e.Now.Left)
		}
	}
	return Change{kind: kindEdit, key: edits[0].Key, edits: edits}
}

// Apply makes edits of keys of one database, all or none on each master, and
// returns with the majority. Unless they were applied, Outcome.Found tells what is
// there instead; what some masters did apply is undone in the background, but for
// edits that only remove.
//
// Errors: *NoQuorumError, or the cause of ctx if that ended first. Then it is not
// known whether the edits stand: those that could be undone are.
func (c *Cluster) Apply(ctx context.Context, edits []Edit) (Outcome, error) {
	change := edited(edits)
	if err := c.record(ctx, change); err != nil {
		return Outcome{}, err
	}
	r := c.begin(change)
	verdict, err := r.wait(ctx)
	elapsed := time.Since(r.start)
	validity := r.change.validity(elapsed)
	if err == nil && verdict == Won && !r.isLate(elapsed) && !r.change.isLate(validity) {
		c.tellFreed(edits)
		return Outcome{Applied: true, Validity: validity}, nil
	}
	if verdict == NoQuorum {
		r.waitForAll(ctx)
	}
	found := r.found(edits)
	if r.change.undoes() {
		r.abandon()
	}
	switch {
	case err != nil:
		return Outcome{}, err
	case verdict == NoQuorum:
		return Outcome{}, r.noQuorum()
	default:
		return r.lost(edits, found), nil
	}
}

// lost is what came of edits that did not win.
func (r *round) lost(edits []Edit, found []Holding) Outcome {
	out := Outcome{Found: found, Removed: onlyRemoves(edits) && r.anyYes()}
	if r.change.editGrants() {
		out.Reach = r.reach()
	}
	return out
}

func (c *Cluster) tellFreed(edits []Edit) {
	for _, e := range edits {
		if e.removes() {
			c.freed(e.Key)
		}
	}
}

func (r *round) anyYes() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tally.Yes > 0
}

// found is what the masters' answers to a change say of each key.
func (r *round) found(edits []Edit) []Holding {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.holdings(len(edits), func(i int, got reply) (Entry, bool) {
		switch {
		case got.vote == voteFailed:
			return Entry{}, false
		case got.vote == voteYes && onlyRemoves(edits):
			return Entry{}, true
		case got.vote == voteYes && i < len(got.entries):
			was := edits[i].Was
			was.Left = got.entries[i].Left
			return was, true
		case got.vote == voteYes:
			return edits[i].Was, true
		case i < len(got.entries):
			return got.entries[i], true
		default:
			return Entry{}, got.vote == voteAbsent
		}
	})
}
