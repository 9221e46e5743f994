package guard

import (
	"context"
	"strings"
	"time"

	"redlock-proxy/quorum/guard/marker"
	"redlock-proxy/quorum/guard/reconfig"
	"redlock-proxy/quorum/place"
	"redlock-proxy/quorum/vote"
)

// The upstream keeps a record of where the locks are (package place). It decides where the masters
// have forgotten that; where they say something from before it, nobody decides.

// Compare takes the record, as it has been since a moment, or why it cannot be read. If a majority
// of the masters said something since then that it contradicts, no master votes.
func (s *Set) Compare(has place.At, since time.Time, err error) {
	was := s.misplaced.Load()
	now := s.compare(was, has, since, err)
	if now == was {
		return
	}
	s.misplaced.Store(now)
	for _, g := range s.guards {
		g.Wake()
	}
}

// compare returns why no master votes, which is what it was until something else is seen.
func (s *Set) compare(was *QuarantineError, has place.At, since time.Time, err error) *QuarantineError {
	e := s.eras
	e.mu.Lock()
	defer e.mu.Unlock()
	statements := 0
	for _, one := range e.statements {
		if one.last.After(since) && e.positionOf(one) == positionOwn {
			statements++
		}
	}
	switch {
	case err != nil && was != nil && was.Why == Unproven: // without an upstream the masters decide
		return nil
	case err != nil || !e.known || e.over != nil:
		return was
	}
	said := place.Said{At: e.own.At(), Known: true, By: e.names}
	switch _, err := said.Settle(s.record, has, nil, false); {
	case err == nil:
		return nil
	case statements < vote.Majority(len(s.guards)) || was != nil && was.Why == Misplaced:
		return was
	default:
		return &QuarantineError{Why: Misplaced, Places: err.Error()}
	}
}

// beginning is the set in which a master is admitted: the one that others say, or that this proxy
// knows. Where all have forgotten it, it is as the record says, which is read only now: what was
// decided before the master was seen without its data is there.
//
// The error is a *QuarantineError.
func (s *Set) beginning(ctx context.Context, proof string) (reconfig.Era, error) {
	own, stated := s.eras.stated()
	if s.record == nil || stated && proof != marker.ProofLease && proof != marker.ProofFresh {
		return s.eras.begin(own), nil
	}
	has, unread := s.record.Read(ctx)
	said := place.Said{At: own.At(), Known: stated, By: s.eras.names}
	at, err := said.Settle(s.record, has, unread, strings.Contains(s.rules.settings, LocksUpstream))
	if err != nil {
		return own, &QuarantineError{Why: Misplaced, Places: err.Error()}
	}
	if at != said.At {
		s.log.Info("the masters have forgotten where the locks are: the record at the upstream says it", "place", at.Place, "era", at.Era)
		own = reconfig.Change{Names: s.eras.names, Place: at.Place}.After(reconfig.Era{Number: at.Era - 1})
	}
	return s.eras.begin(own), nil
}
