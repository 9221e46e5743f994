package guard

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"redlock-proxy/quorum/guard/marker"
	"redlock-proxy/quorum/guard/reconfig"
	"redlock-proxy/quorum/guard/script"
	"redlock-proxy/quorum/location"
	"redlock-proxy/quorum/vote"
)

// The era of the masters includes the location of the locks; see package location.

// Era returns the era in which the masters vote. known is false if too few masters have reported
// the era, and after its end.
func (s *Set) Era() (era reconfig.Era, known bool) {
	s.eras.mu.Lock()
	defer s.eras.mu.Unlock()
	return s.eras.ownEra, s.eras.ownEraKnown && s.eras.reconfiguration == nil
}

// OwnEra is like Era, but keeps returning the era after its end.
func (s *Set) OwnEra() (era reconfig.Era, known bool) {
	s.eras.mu.Lock()
	defer s.eras.mu.Unlock()
	return s.eras.ownEra, s.eras.ownEraKnown
}

// Confirm asks the masters, and returns nil if a majority still votes in the era.
func (s *Set) Confirm(ctx context.Context) error {
	confirmed := countParallel(s.guards, func(g *Guard) bool {
		t := g.currentTrust()
		if t.Nonce == "" || t.eraEnded {
			return false
		}
		text, err := g.Conn.Run(ctx, script.GetMarker)
		if err != nil || text != marker.AppendDatabase(t.String(), 0) {
			g.Wake()
			return false
		}
		// After a new term, the connection may reach another server.
		return g.currentTrust().term == t.term
	})
	if confirmed < vote.Majority(len(s.guards)) {
		return errors.New("no majority of the masters confirmed the location of the locks")
	}
	return ctx.Err()
}

// AnnounceChange makes other proxies check the masters often, because a decision on a change is
// about to follow. Each proxy that reaches the masters notices the announcement within a heartbeat.
func (s *Set) AnnounceChange(ctx context.Context, era reconfig.Era, ballot string) {
	s.prepare(ctx, era, ballot)
}

// AnnounceMove works like AnnounceChange, and also announces the future location of the locks.
func (s *Set) AnnounceMove(ctx context.Context, era reconfig.Era, ballot string, to location.Place) {
	s.prepare(ctx, era, ballot+locationSeparator+to.String())
}

// IsMoveAnnounced reports whether proxies announced a move of the locks to a location on at least
// witnessQuorum masters, less than changeWindow ago.
func (s *Set) IsMoveAnnounced(to location.Place) bool {
	e := s.eras
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.announcedLocations) == 0 { // the usual case
		return false
	}
	n, now := 0, time.Now()
	for _, b := range e.announcedLocations {
		if b.target == to && now.Sub(b.seenAt) < changeWindow {
			n++
		}
	}
	return n > 0 && n >= witnessQuorum(len(e.names))
}

// CheckMove returns the reason why the locks cannot be moved now, or nil.
func (s *Set) CheckMove() error {
	_, err := s.CheckChange(func(string) bool { return false })
	return err
}

// CheckFreeMemory returns the reason why the masters have no room for this number of bytes, or nil.
// It ignores masters that do not reply.
func (s *Set) CheckFreeMemory(ctx context.Context, bytes int64) error {
	errs := make([]error, len(s.guards))
	countParallel(s.guards, func(g *Guard) bool {
		v, err := g.Conn.Examine(ctx)
		if err == nil && v.FreeMemory >= 0 && v.FreeMemory < bytes {
			errs[g.index] = fmt.Errorf("master %s has room for only %d bytes (maxmemory)", g.Name, v.FreeMemory)
		}
		return err == nil
	})
	return errors.Join(errs...)
}

// pauseReportTTL is the time, in ms, for which a master keeps the proxies' reports of paused
// commands after the last report.
const pauseReportTTL = "600000"

// ReportPaused stores a report of this proxy's paused commands on the masters. It fails if no
// majority stored it.
func (s *Set) ReportPaused(ctx context.Context, text string) error {
	stored := countParallel(s.guards, func(g *Guard) bool {
		_, err := g.Conn.Run(ctx, script.StorePauseReport, s.opts.ID, text, pauseReportTTL)
		return err == nil
	})
	if stored < vote.Majority(len(s.guards)) {
		return errors.Join(errors.New("no majority of the masters stored in time that this proxy paused commands"), ctx.Err())
	}
	return nil
}

// PauseReports returns, by proxy ID, the reports of paused commands that at least witnessQuorum
// masters hold.
func (s *Set) PauseReports(ctx context.Context) map[string]string {
	var mu sync.Mutex
	counts, reports := map[[2]string]int{}, map[string]string{}
	countParallel(s.guards, func(g *Guard) bool {
		parts, err := runTexts(ctx, g.Conn, 0, 2, script.ReadPauseReports)
		mu.Lock()
		defer mu.Unlock()
		for ; err == nil && len(parts) > 0; parts = parts[2:] {
			report := [2]string{parts[0], strings.Clone(parts[1])}
			if counts[report]++; counts[report] >= witnessQuorum(len(s.guards)) {
				reports[report[0]] = report[1]
			}
		}
		return true
	})
	return reports
}
