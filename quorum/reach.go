package quorum

import "time"

// Reach is how far edits came that were taken back: on which masters they may have
// stood for a moment. The zero Reach is that of none.
type Reach struct {
	// may is set for each master that may have made them.
	may []bool
	// slow is set where a master failed or took long, so that somebody who looked
	// meanwhile may have had answers from moments that lie far apart.
	slow bool
}

// promptly is what a round takes that is not slow: on a busy machine tens of milliseconds
// are nothing special.
const promptly = 100 * time.Millisecond

// NewReach is that of one try: may is set for each master that may have made the edits,
// slow where a master failed or took long.
func NewReach(may []bool, slow bool) Reach { return Reach{may, slow} }

// Join is how far several tries of the same came together: who looks cannot tell them
// apart.
func (r Reach) Join(other Reach) Reach {
	both := Reach{may: make([]bool, max(len(r.may), len(other.may))), slow: r.slow || other.slow}
	for i := range both.may {
		both.may[i] = i < len(r.may) && r.may[i] || i < len(other.may) && other.may[i]
	}
	return both
}

// Seen reports whether somebody may have seen what the edits gave on a majority.
func (r Reach) Seen() bool {
	n := 0
	for _, may := range r.may {
		if may {
			n++
		}
	}
	return r.slow && n >= Majority(len(r.may))
}

// reach is how far the change of this round came.
func (r *round) reach() Reach {
	r.mu.Lock()
	defer r.mu.Unlock()
	reach := Reach{may: make([]bool, r.tally.Masters), slow: time.Since(r.start) > promptly}
	if legacy := r.legacyAnswer(); legacy != nil && legacy.here && !legacy.mayHaveDone() {
		return reach // what it does not hold nobody holds
	}
	for i, a := range r.answers[:r.tally.Masters] {
		reach.may[i] = !a.here || a.mayHaveDone()
		reach.slow = reach.slow || a.here && a.vote == voteFailed
	}
	return reach
}
