package guard

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"redlock-proxy/quorum/guard/reconfig"
	"redlock-proxy/quorum/location"
	"redlock-proxy/quorum/vote"
)

// Succession is an era that has ended, with its successor.
type Succession struct {
	// Era is the era that has ended. If Begun is set, Era is its successor, in which masters
	// already vote.
	Era   reconfig.Era
	Begun bool
	// Change is the successor; none if only other proxies know it.
	Change reconfig.Change
}

// eraTracker holds a proxy's knowledge of its masters' present and former eras. It trusts no single
// master: a marker that shows the end of the era is only a claim until another master supports it.
type eraTracker struct {
	names []string

	mu sync.Mutex
	// known is set if own is the present era; since is when this proxy learned it.
	known bool
	own   reconfig.Era
	since time.Time
	// claims holds the last claim of each master, by index.
	claims map[int]eraClaim
	// checked holds the masters that have been checked, with or without a marker.
	checked map[int]bool
	// credible holds the nonces of the markers with credible claims, refuted the nonces that a
	// majority contradicted.
	credible, refuted map[string]bool
	// sizes holds the masters' reports of the size of the previous set. If this proxy was in that
	// era itself, former is the era, and wasMember holds the indexes of its masters.
	sizes     map[sizeReport]bool
	former    reconfig.Era
	wasMember map[int]bool
	// ended is the succession, once it is credible that this era has ended or that the masters are
	// in a different era.
	ended *Succession
	// ballotSeen is when a new ballot was last seen: a change may follow. placesSeen holds the
	// locations that were announced with ballots, by index of the master.
	ballotSeen time.Time
	placesSeen map[int]announcedPlace
	// moveLeases holds each master's last report about the proxy that moves the locks, by index.
	moveLeases map[int]moveLease
}

// announcedPlace is a future location of the locks, and when it was announced.
type announcedPlace struct {
	to location.Place
	at time.Time
}

type sizeReport struct{ masters, master int }

func newEraTracker(masters []Master, joins *reconfig.Era, now time.Time) *eraTracker {
	e := &eraTracker{
		claims: map[int]eraClaim{}, checked: map[int]bool{}, credible: map[string]bool{}, refuted: map[string]bool{},
		sizes: map[sizeReport]bool{}, placesSeen: map[int]announcedPlace{}, moveLeases: map[int]moveLease{},
	}
	for _, m := range masters {
		e.names = append(e.names, m.Name)
	}
	if joins != nil {
		e.known, e.own, e.since = true, *joins, now
	}
	return e
}

// setFormer records the former era, if this era follows it directly.
func (e *eraTracker) setFormer(former *eraTracker) {
	former.mu.Lock()
	defer former.mu.Unlock()
	if !e.known || !former.known || former.own.Number+1 != e.own.Number {
		return
	}
	e.former, e.wasMember = former.own, map[int]bool{}
	for i, name := range e.names {
		e.wasMember[i] = slices.Contains(former.names, name)
	}
}

// observe stores the report of a master. isNews is set if the other masters must be checked at
// once, or can be judged now.
func (e *eraTracker) observe(i int, v Report, now time.Time) (isNews bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	m := v.Marker.Value
	e.checked[i] = true
	if !v.Marker.Valid {
		delete(e.claims, i)
		return e.settle(now)
	}
	era, ballot, _ := strings.Cut(v.Promise, " ")
	had := e.claims[i]
	s := eraClaim{
		Marker: m, era: era, ballot: ballot, first: had.first, last: v.Sighting.Sent,
		alive: m.RunID == v.RunID, former: e.wasMember[i],
	}
	if had.Nonce != m.Nonce || had.Era != m.Era || !had.Seal.Is(m.Seal.Change) {
		s.first = now
	}
	if s.ballot != had.ballot && had.Nonce != "" {
		e.ballotSeen = now
		if _, text, found := strings.Cut(s.ballot, placeSeparator); found && s.era == m.Era.String() {
			e.placesSeen[i] = announcedPlace{location.Parse(text), now}
		}
	}
	e.claims[i] = s
	settled := e.settle(now)
	if e.positionOf(s) == positionFormer {
		e.sizes[sizeReport{s.Seal.Before, i}] = true
	}
	for _, claim := range e.claims {
		if e.positionOf(claim) == positionEnded {
			e.evaluate(claim)
		}
	}
	return settled || s.first == now && e.positionOf(s) == positionEnded
}

// settle determines the present era: the era that a majority states. If no master states a
// different era, fewer masters suffice: enough to share a master with every majority or, once all
// masters have been checked, all with a marker.
func (e *eraTracker) settle(now time.Time) (settled bool) {
	if e.known {
		return false
	}
	era, n := e.mostStated()
	enough := n >= vote.ReadQuorum(len(e.names)) || n > 0 && len(e.checked) == len(e.names)
	if n < vote.Majority(len(e.names)) && (n < len(e.claims) || !enough) {
		return false
	}
	e.known, e.own = true, era
	if era.Number > 0 {
		e.since = now
	}
	if e.ended != nil && e.ended.Era.Number < era.Number {
		e.ended = nil // ended is the predecessor of the present era
	}
	return true
}

// mostStated returns the era that most masters state, the latest one if several tie.
func (e *eraTracker) mostStated() (era reconfig.Era, masters int) {
	says := map[reconfig.Era]int{}
	for _, s := range e.claims {
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

// position returns the position of the marker that a master reported last.
func (e *eraTracker) position(i int) eraPosition {
	e.mu.Lock()
	defer e.mu.Unlock()
	s, marked := e.claims[i]
	if !marked {
		return positionOwn
	}
	return e.positionOf(s)
}

// hasOpenClaim reports whether a master claims that the era has ended, and the claim is neither
// credible nor refuted. Then a master is admitted only by copying from other masters that vote.
func (e *eraTracker) hasOpenClaim() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, s := range e.claims {
		if e.positionOf(s) == positionEnded && !e.refuted[s.Nonce] {
			return true
		}
	}
	return false
}

// isRefuted reports whether a majority contradicted a master's claim.
func (e *eraTracker) isRefuted(i int) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	s, marked := e.claims[i]
	return marked && e.refuted[s.Nonce]
}

func (e *eraTracker) isOver() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.ended != nil
}

// hasBegun reports whether masters vote in an era with this number, or a later one.
func (e *eraTracker) hasBegun(number int) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.ended != nil && e.ended.Begun && e.ended.Era.Number >= number
}

// checkPause returns the time until the next check of a master that votes. It is short if a
// decision on a change may be near.
func (e *eraTracker) checkPause(now time.Time) time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.known && e.own.Place.Moves() || now.Sub(e.ballotSeen) < changeTime {
		return changePause
	}
	return Heartbeat
}

const (
	// changePause is the wait between two checks during changeTime after a ballot: a decision may
	// follow.
	changePause = 20 * time.Millisecond
	changeTime  = 3 * Heartbeat
)

// placeSeparator precedes, in a ballot, the location of the locks that its proposer will want.
const placeSeparator = "~"

// isMoveAnnounced reports whether a move of the locks to a location was announced to enough masters
// less than changeTime ago.
func (e *eraTracker) isMoveAnnounced(to location.Place) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.placesSeen) == 0 { // the usual case
		return false
	}
	n, now := 0, time.Now()
	for _, b := range e.placesSeen {
		if b.to == to && now.Sub(b.at) < changeTime {
			n++
		}
	}
	return n > 0 && n >= witnessQuorum(len(e.names))
}

// stated returns the present era if it is known, else the era that most masters state. stated is
// false if there is none.
func (e *eraTracker) stated() (own reconfig.Era, stated bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.known {
		return e.own, true
	}
	own, masters := e.mostStated()
	return own, masters > 0
}

// adopt makes an era the present one, unless another era is already known, and returns the present
// era.
func (e *eraTracker) adopt(own reconfig.Era) reconfig.Era {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.known {
		e.known, e.own = true, own
	}
	return e.own
}

// recordSuffix returns the end of the nonces of this era's quarantine records. It ties a claim to
// have all data to this era.
func (e *eraTracker) recordSuffix() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.own.Number == 0 {
		return ""
	}
	return "." + strconv.Itoa(e.own.Number)
}

// isNumbered reports whether markers show which masters belong to the era.
func (e *eraTracker) isNumbered() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.known && e.own.Number > 0
}

// isPlaced reports whether markers show the location of the locks.
func (e *eraTracker) isPlaced() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.known && e.own.Place != location.Undecided
}

// age returns how long this proxy has known that the era follows an earlier one. During that time
// the earlier era granted nothing.
func (e *eraTracker) age(now time.Time) time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.since.IsZero() {
		return 1<<63 - 1
	}
	return now.Sub(e.since)
}

// formerSize returns the size of the previous set, as most of its masters state it, or zero if
// unknown.
func (e *eraTracker) formerSize() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	says, before := map[int]int{}, 0
	for t := range e.sizes {
		if says[t.masters]++; says[t.masters] > says[before] || says[t.masters] == says[before] && t.masters > before {
			before = t.masters
		}
	}
	return before
}

// isCredible reports whether the seal of the marker with this nonce counts.
func (e *eraTracker) isCredible(nonce string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.credible[nonce]
}

// Except returns the guards of all masters except the named ones.
func (s *Set) Except(names []string) []*Guard {
	var others []*Guard
	for _, g := range s.guards {
		if !slices.Contains(names, g.Name) {
			others = append(others, g)
		}
	}
	return others
}

// moveLease is a master's report about the proxy that moves the locks.
type moveLease struct {
	// asked is when the master was last asked, renewed when it last named a proxy that moves the
	// locks.
	asked, renewed time.Time
}
