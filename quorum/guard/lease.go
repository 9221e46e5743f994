package guard

import (
	"slices"
	"time"

	"redlock-proxy/quorum/place"
	"redlock-proxy/quorum/vote"
)

// heard takes what proxies announced on master i.
func (e *eras) heard(i int, proxies []Proxy, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := lease{asked: now, renewed: e.leases[i].renewed}
	for _, p := range proxies {
		if p.Moves > 0 && p.Moves == e.own.Number {
			l.renewed = now
		}
	}
	e.leases[i] = l
}

// Lapsed reports whether the locks are being moved, and no proxy was seen to do so for as long as a
// lease lasts: by what a majority of the masters was asked since.
func (s *Set) Lapsed() bool {
	e := s.eras
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.known || e.over != nil || !e.own.Place.Moves() {
		return false
	}
	asked := e.latest(vote.Majority(len(e.names)), func(l lease) time.Time { return l.asked })
	renewed := e.latest(believed(len(e.names)), func(l lease) time.Time { return l.renewed })
	if renewed.Before(e.since) {
		renewed = e.since
	}
	return asked.Sub(renewed) > place.Lease
}

// latest returns the n-th latest of the times that masters have.
func (e *eras) latest(n int, of func(lease) time.Time) time.Time {
	times := make([]time.Time, len(e.names))
	for i, l := range e.leases {
		times[i] = of(l)
	}
	slices.SortFunc(times, func(a, b time.Time) int { return b.Compare(a) })
	return times[n-1]
}
