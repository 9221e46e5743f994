package guard

import (
	"context"
	"strings"
	"time"

	"redlock-proxy/quorum/guard/marker"
	"redlock-proxy/quorum/guard/reconfig"
	"redlock-proxy/quorum/location"
	"redlock-proxy/quorum/vote"
)

// The upstream keeps a record of the location of the locks (package location). The record decides
// if the masters have lost the location. If the masters report a state from before the record,
// nothing can decide.

// Compare takes the record, as read since a moment, or the read error. If a majority of the masters
// has contradicted the record since that moment, no master votes.
func (s *Set) Compare(has location.At, since time.Time, err error) {
	was := s.placeConflict.Load()
	now := s.compare(was, has, since, err)
	if now == was {
		return
	}
	s.placeConflict.Store(now)
	for _, g := range s.guards {
		g.Wake()
	}
}

// compare returns why no master votes, or nil. It keeps the present reason until it has evidence to
// the contrary.
func (s *Set) compare(was *QuarantineError, has location.At, since time.Time, err error) *QuarantineError {
	e := s.eras
	e.mu.Lock()
	defer e.mu.Unlock()
	statements := 0
	for _, one := range e.claims {
		if one.last.After(since) && e.positionOf(one) == positionOwn {
			statements++
		}
	}
	switch {
	case err != nil && was != nil && was.Why == Unverified: // without an upstream the masters decide
		return nil
	case err != nil || !e.known || e.ended != nil:
		return was
	}
	said := location.Report{At: e.own.At(), Known: true, By: e.names}
	switch _, err := said.Resolve(s.record, has, nil, false); {
	case err == nil:
		return nil
	case statements < vote.Majority(len(s.guards)) || was != nil && was.Why == LocationUnknown:
		return was
	default:
		return &QuarantineError{Why: LocationUnknown, Places: err.Error()}
	}
}

// startingEra returns the era in which a master is admitted: the era that other masters state, or
// that this proxy knows. If all have lost that information, the record decides. The record is read
// only now, so that it includes every decision made before the master was seen without its data.
//
// The error is a *QuarantineError.
func (s *Set) startingEra(ctx context.Context, proof string) (reconfig.Era, error) {
	own, stated := s.eras.stated()
	if s.record == nil || stated && proof != marker.ProofLease && proof != marker.ProofFresh {
		return s.eras.adopt(own), nil
	}
	has, unread := s.record.Read(ctx)
	said := location.Report{At: own.At(), Known: stated, By: s.eras.names}
	at, err := said.Resolve(s.record, has, unread, strings.Contains(s.rules.settings, LocksUpstream))
	if err != nil {
		return own, &QuarantineError{Why: LocationUnknown, Places: err.Error()}
	}
	if at != said.At {
		s.log.Info("location of the locks restored from the record at the upstream", "place", at.Place, "era", at.Era)
		own = reconfig.Change{Names: s.eras.names, Place: at.Place}.After(reconfig.Era{Number: at.Era - 1})
	}
	return s.eras.adopt(own), nil
}
