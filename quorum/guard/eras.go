package guard

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"redlock-proxy/quorum/guard/reconfig"
	"redlock-proxy/quorum/place"
	"redlock-proxy/quorum/vote"
)

// Succession is a set of masters that is over, and what follows.
type Succession struct {
	// Era is the one that is over, or the one that follows if Begun is set: then its masters vote.
	Era   reconfig.Era
	Begun bool
	// Change is what follows; none where only others know.
	Change reconfig.Change
}

// eras is what a proxy knows of the sets that its masters are and were. No single master is
// believed: a marker by which the set is over is just that master's claim, until another one
// supports it.
type eras struct {
	names []string

	mu sync.Mutex
	// own is the set that they are, if known; since is from when this proxy knows that.
	known bool
	own   reconfig.Era
	since time.Time
	// statements are the last ones of the masters, by their number.
	statements map[int]statement
	// looked are those that were looked at, whether or not they have a marker.
	looked map[int]bool
	// believed are the nonces of markers with credible claims, refuted those that a majority
	// contradicted.
	believed, refuted map[string]bool
	// before has which master stated how many masters the set before had. If this proxy had that
	// set itself, former is it, and formers has which of these masters, by their number, were in
	// it.
	before  map[teller]bool
	former  reconfig.Era
	formers map[int]bool
	// over is what follows, if this set is over, or is another one's, as is believed.
	over *Succession
	// stirred is when a ballot was last seen by which something may follow; bound is what was
	// announced to masters, by their number.
	stirred time.Time
	bound   map[int]bound
	// leases are what masters said of who moves the locks, by their number.
	leases map[int]lease
}

// bound is where the locks are to be, and when that was heard.
type bound struct {
	to place.Place
	at time.Time
}

type teller struct{ masters, master int }

func newEras(masters []Master, joins *reconfig.Era, now time.Time) *eras {
	e := &eras{statements: map[int]statement{}, looked: map[int]bool{}, believed: map[string]bool{}, refuted: map[string]bool{}, before: map[teller]bool{}, bound: map[int]bound{}, leases: map[int]lease{}}
	for _, m := range masters {
		e.names = append(e.names, m.Name)
	}
	if joins != nil {
		e.known, e.own, e.since = true, *joins, now
	}
	return e
}

// follow notes the set that this one follows, if it does at once.
func (e *eras) follow(former *eras) {
	former.mu.Lock()
	defer former.mu.Unlock()
	if !e.known || !former.known || former.own.Number+1 != e.own.Number {
		return
	}
	e.former, e.formers = former.own, map[int]bool{}
	for i, name := range e.names {
		e.formers[i] = slices.Contains(former.names, name)
	}
}

// take takes the report of master i. isNews is set where others are to be asked at once, or can now
// be judged.
func (e *eras) take(i int, v Report, now time.Time) (isNews bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	m := v.Marker.Value
	e.looked[i] = true
	if !v.Marker.Valid {
		delete(e.statements, i)
		return e.settle(now)
	}
	era, ballot, _ := strings.Cut(v.Promise, " ")
	had := e.statements[i]
	s := statement{Marker: m, era: era, ballot: ballot, first: had.first, last: v.Sighting.Sent, alive: m.RunID == v.RunID, former: e.formers[i]}
	if had.Nonce != m.Nonce || had.Era != m.Era || !had.Seal.Is(m.Seal.Change) {
		s.first = now
	}
	if s.ballot != had.ballot && had.Nonce != "" {
		e.stirred = now
		if _, text, found := strings.Cut(s.ballot, boundFor); found && s.era == m.Era.String() {
			e.bound[i] = bound{place.Parse(text), now}
		}
	}
	e.statements[i] = s
	settled := e.settle(now)
	if e.positionOf(s) == positionBefore {
		e.before[teller{s.Seal.Before, i}] = true
	}
	for _, claim := range e.statements {
		if e.positionOf(claim) == positionOver {
			e.weigh(claim)
		}
	}
	return settled || s.first == now && e.positionOf(s) == positionOver
}

// settle finds out which set the masters are: the one that a majority states; or, while nobody
// states another, so many that they share one with every majority, or all that have a marker.
func (e *eras) settle(now time.Time) (settled bool) {
	if e.known {
		return false
	}
	era, n := e.likely()
	enough := n >= vote.ReadQuorum(len(e.names)) || n > 0 && len(e.looked) == len(e.names)
	if n < vote.Majority(len(e.names)) && (n < len(e.statements) || !enough) {
		return false
	}
	e.known, e.own = true, era
	if era.Number > 0 {
		e.since = now
	}
	if e.over != nil && e.over.Era.Number < era.Number {
		e.over = nil // it was this that followed
	}
	return true
}

// likely is the set that most masters say these are, or the latest of several.
func (e *eras) likely() (era reconfig.Era, masters int) {
	says := map[reconfig.Era]int{}
	for _, s := range e.statements {
		if s.Seal.IsNone() && s.Era.Is(e.names) {
			says[s.Era]++
		}
	}
	for one, n := range says {
		if n > masters || n == masters && one.Number > era.Number {
			era, masters = one, n
		}
	}
	return era, masters
}

// position is that of the marker that master i reported last.
func (e *eras) position(i int) position {
	e.mu.Lock()
	defer e.mu.Unlock()
	s, marked := e.statements[i]
	if !marked {
		return positionOwn
	}
	return e.positionOf(s)
}

// isOpen reports whether a master claims that the set is over, and is neither believed nor refuted:
// then no master is let in that does not copy from others that vote.
func (e *eras) isOpen() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, s := range e.statements {
		if e.positionOf(s) == positionOver && !e.refuted[s.Nonce] {
			return true
		}
	}
	return false
}

// isRefuted reports whether a majority contradicted what master i claims.
func (e *eras) isRefuted(i int) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	s, marked := e.statements[i]
	return marked && e.refuted[s.Nonce]
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

// pause is when to look again at a master that votes: soon, where something else is about to be
// decided.
func (e *eras) pause(now time.Time) time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.known && e.own.Place.Moves() || now.Sub(e.stirred) < stirTime {
		return stirPause
	}
	return Heartbeat
}

const (
	// stirPause is the wait between two looks while something else is about to be decided; stirTime
	// is for how long it is taken to be so after a ballot.
	stirPause = 20 * time.Millisecond
	stirTime  = 3 * Heartbeat
)

// boundFor is in a ballot before the place where its proposer will want the locks to be.
const boundFor = "~"

// isBoundFor reports whether the locks are about to be somewhere else, as was announced to more
// than one master a moment ago.
func (e *eras) isBoundFor(to place.Place) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.bound) == 0 { // as nearly always
		return false
	}
	n, now := 0, time.Now()
	for _, b := range e.bound {
		if b.to == to && now.Sub(b.at) < stirTime {
			n++
		}
	}
	return n > 0 && n >= believed(len(e.names))
}

// stated is the set that the masters are, if known, or that some say; none: nobody says any.
func (e *eras) stated() (own reconfig.Era, stated bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.known {
		return e.own, true
	}
	own, masters := e.likely()
	return own, masters > 0
}

// begin has them be that set from now on, unless another one is known meanwhile, which it returns.
func (e *eras) begin(own reconfig.Era) reconfig.Era {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.known {
		e.known, e.own = true, own
	}
	return e.own
}

// suffix is at the end of the nonces of this set's quarantine records, so that a claim to have all
// data is known to be about this set.
func (e *eras) suffix() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.own.Number == 0 {
		return ""
	}
	return "." + strconv.Itoa(e.own.Number)
}

// isNumbered reports whether markers show which masters are the set's.
func (e *eras) isNumbered() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.known && e.own.Number > 0
}

// isPlaced reports whether markers show where the locks are.
func (e *eras) isPlaced() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.known && e.own.Place != place.Undecided
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

// previous is how many masters the set before had, as most of them state; zero: not known.
func (e *eras) previous() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	says, before := map[int]int{}, 0
	for t := range e.before {
		if says[t.masters]++; says[t.masters] > says[before] || says[t.masters] == says[before] && t.masters > before {
			before = t.masters
		}
	}
	return before
}

// isBelieved reports whether the seal of a marker with that nonce counts.
func (e *eras) isBelieved(nonce string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.believed[nonce]
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

// lease is what a master said of the proxy that moves the locks.
type lease struct {
	// asked is when the master was asked last, renewed when it named one last.
	asked, renewed time.Time
}
