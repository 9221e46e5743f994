package guard

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"redlock-proxy/quorum/guard/marker"
	"redlock-proxy/quorum/guard/script"
	"redlock-proxy/quorum/guard/succession"
	"redlock-proxy/quorum/vote"
)

// place is where a marker stands among the sets of masters, as a proxy sees it.
type place int

const (
	placeOwn    place = iota // its master votes in this proxy's set
	placeOver                // that set is over, or the master is of another one
	placeBefore              // it voted in the set before this proxy's, and holds what it held then
	placeStale               // it is from a set before, and proves nothing
)

// Succession is a set of masters that is over, and what follows.
type Succession struct {
	// Era is the one that is over, or the one that follows if Begun is set: then its masters vote.
	Era   succession.Era
	Begun bool
	// Change is what follows; none where only others know.
	Change succession.Change
}

// eras is what a proxy knows of the sets that its masters are and were.
type eras struct {
	names []string

	mu sync.Mutex
	// own is the set that they are, if known; since is from when this proxy knows that.
	known bool
	own   succession.Era
	since time.Time
	// before is how many masters the set before had; zero: not known.
	before int
	// over is what follows, if this set is over, or is another one's.
	over *Succession
}

func newEras(masters []Master, joins *succession.Era, now time.Time) *eras {
	e := &eras{}
	for _, m := range masters {
		e.names = append(e.names, m.Name)
	}
	if joins != nil {
		e.known, e.own, e.since = true, *joins, now
	}
	return e
}

// place is that of a marker.
func (e *eras) place(m marker.Marker, now time.Time) place {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case m.Seal.IsNone():
		return e.placeVoting(m.Era, now)
	case e.known && m.Seal.After(m.Era) == e.own:
		e.before = m.Seal.Before
		return placeBefore
	case e.known && m.Era.Number < e.own.Number:
		return placeStale
	default:
		e.ends(Succession{Era: m.Era, Change: m.Seal.Change})
		return placeOver
	}
}

// placeOf is that of the marker that a master told of.
func (e *eras) placeOf(v Report, now time.Time) (at place, marked bool) {
	m, marked := markerOf(v)
	if !marked {
		return placeOwn, false
	}
	return e.place(m, now), true
}

// placeVoting is for a marker without a seal.
func (e *eras) placeVoting(era succession.Era, now time.Time) place {
	switch {
	case e.known && era == e.own:
		return placeOwn
	case e.known && era.Number < e.own.Number:
		return placeStale
	case !e.known && era.Is(e.names):
		e.known, e.own = true, era
		if era.Number > 0 {
			e.since = now
		}
		if e.over != nil && e.over.Era.Number < era.Number {
			e.over = nil // it was this that followed
		}
		return placeOwn
	}
	next := Succession{Era: era, Begun: true}
	if era.Is(e.names) {
		next.Change.Names = e.names
	}
	e.ends(next)
	return placeOver
}

// ends notes what follows; the latest stands.
func (e *eras) ends(next Succession) {
	if e.over == nil || rank(next) >= rank(*e.over) {
		e.over = &next
	}
}

func rank(s Succession) int {
	if s.Begun {
		return 2 * s.Era.Number
	}
	return 2*s.Era.Number + 1
}

func (e *eras) isOver() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.over != nil
}

// hasBegun reports whether masters vote in a set of that number, or a later one.
func (e *eras) hasBegun(number int) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.over != nil && e.over.Begun && e.over.Era.Number >= number
}

// begun is the set in which a master is admitted.
func (e *eras) begun() succession.Era {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.known = true
	return e.own
}

// suffix is at the end of the nonces of this set's quarantine records, so that a claim to have all data is
// known to be about this set.
func (e *eras) suffix() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.own.Number == 0 {
		return ""
	}
	return "." + strconv.Itoa(e.own.Number)
}

// isNumbered reports whether markers tell which masters are the set's.
func (e *eras) isNumbered() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.known && e.own.Number > 0
}

// lasted is for how long this proxy has known that the set follows another. Nothing was granted
// in the one before since then.
func (e *eras) lasted(now time.Time) time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.since.IsZero() {
		return 1<<63 - 1
	}
	return now.Sub(e.since)
}

func (e *eras) previous() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.before
}

// Succession is what follows this set of masters, or nil while nothing does, as far as is known.
func (s *Set) Succession() *Succession {
	s.eras.mu.Lock()
	defer s.eras.mu.Unlock()
	if s.eras.over == nil {
		return nil
	}
	over := *s.eras.over
	return &over
}

// leave has a master alone whose set is over. One that was sealed in this proxy's sight is known as what
// it was then: others may copy from it, and its word counts in what is to follow.
func (g *Guard) leave(ctx context.Context, v Report, past memory) (time.Duration, error) {
	m, marked := markerOf(v)
	intact := marked && !m.Seal.IsNone() && m.RunID == v.RunID
	if intact {
		past.place = placeBefore
		verdict, _ := judgeMarked(v, m, past)
		intact = verdict == onJoin
	}
	if !intact {
		g.stand(&QuarantineError{Why: Succeeded})
		return Heartbeat / 4, nil
	}
	pause, err := g.vote(ctx, v)
	g.explain(&QuarantineError{Why: Succeeded})
	return min(pause, Heartbeat/4), err
}

// explain notes why a master whose set is over has no vote.
func (g *Guard) explain(cause *QuarantineError) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.trust.over || g.trust.nonce == "" {
		g.cause = cause
	}
}

// join has a master that voted in the set before vote in this one: as soon as it holds what every
// majority of that one held. It forgot nothing, so it is one of those that are copied from.
func (g *Guard) join(ctx context.Context, v Report) (time.Duration, error) {
	if pause, err := g.vote(ctx, v); pause == 0 || err != nil {
		return pause, err
	}
	g.explain(&QuarantineError{Why: Joins})
	from := g.set.originFor(g)
	switch {
	case !from.before && len(from.sources) >= vote.Majority(len(g.set.guards)): // it catches up from these, as any
		return 0, g.quarantine(ctx, v, Joins, marker.NoClaim)
	case !from.before || !from.enough() || from.member(g) < 0,
		len(from.sources) < from.masters && g.set.eras.lasted(time.Now()) < moreOrigins:
		return joinPause, nil
	case v.Record == "":
		_, err := amend(ctx, g.Conn, script.Await, v.Marker, g.newRecord(v, Joins, marker.NoClaim).String())
		return 0, err
	}
	return g.gaveUp(g.catchUp(ctx, v, from)), nil
}

const (
	// joinPause is the wait for others to be copied from.
	joinPause = 20 * time.Millisecond
	// moreOrigins is how much longer it is waited for all of the set before: who reads fewer can tell fewer
	// locks from leftovers.
	moreOrigins = 300 * time.Millisecond
)

// originFor is what a master is to be copied from: others that vote, or, as long as no majority of
// them does, masters that voted in the set before. These hold every lock of that set, by its rules; there
// is none of this set yet.
func (s *Set) originFor(g *Guard) origin {
	voters := s.voters(g.index)
	ordinary := origin{sources: voters, masters: len(s.guards)}
	if len(voters) >= vote.Majority(len(s.guards)) {
		return ordinary
	}
	from, waits := origin{masters: s.eras.previous(), before: true}, false
	for _, one := range append(s.guards[:len(s.guards):len(s.guards)], s.before...) {
		t := one.trusted()
		m, _ := marker.Parse(t.marker)
		joined := !t.over && one.set == s && m.Proof == marker.ProofJoined
		if t.nonce == "" || one.IsDown() || !joined && !(t.over && s.eras.follows(m)) {
			continue
		}
		waits = waits || t.over
		from.sources = append(from.sources, source{one, t})
	}
	if !waits {
		return ordinary
	}
	return from
}

// follows reports whether the set follows the one in which a master was sealed with this marker.
func (e *eras) follows(m marker.Marker) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.known && !m.Seal.IsNone() && m.Seal.After(m.Era) == e.own
}

// Except are the guards of masters that are not among those with these names.
func (s *Set) Except(names []string) []*Guard {
	var others []*Guard
	for _, g := range s.guards {
		if !slices.Contains(names, g.Name) {
			others = append(others, g)
		}
	}
	return others
}
