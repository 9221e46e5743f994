package guard

import (
	"slices"
	"time"

	"redlock-proxy/quorum/location"
	"redlock-proxy/quorum/vote"
)

// noteMovers records that this proxy asked a master, and whether one of the proxies that announced
// themselves on the master moves the locks.
func (e *eraTracker) noteMovers(i int, proxies []Proxy, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := moveLease{lastAsked: now, lastRenewed: e.moveLeases[i].lastRenewed}
	for _, p := range proxies {
		if p.MoveEra > 0 && p.MoveEra == e.ownEra.Number {
			l.lastRenewed = now
		}
	}
	e.moveLeases[i] = l
}

// IsMoveLeaseExpired reports whether the locks are being moved and the lease of the move has
// expired. It has expired if this proxy asked a majority of the masters more than location.Lease
// after the last renewal.
func (s *Set) IsMoveLeaseExpired() bool {
	e := s.eras
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.ownEraKnown || e.reconfiguration != nil || !e.ownEra.Place.Moves() {
		return false
	}
	asked := e.nthLatestTime(vote.Majority(len(e.names)), func(l moveLease) time.Time { return l.lastAsked })
	renewed := e.nthLatestTime(witnessQuorum(len(e.names)), func(l moveLease) time.Time { return l.lastRenewed })
	if renewed.Before(e.ownEraSince) {
		renewed = e.ownEraSince
	}
	return asked.Sub(renewed) > location.Lease
}

// nthLatestTime returns the n-th latest of the masters' times.
func (e *eraTracker) nthLatestTime(n int, timeOf func(moveLease) time.Time) time.Time {
	times := make([]time.Time, len(e.names))
	for i, l := range e.moveLeases {
		times[i] = timeOf(l)
	}
	slices.SortFunc(times, func(a, b time.Time) int { return b.Compare(a) })
	return times[n-1]
}
