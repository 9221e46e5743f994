package guard

import (
	"context"
	"time"

	"redlock-proxy/quorum/guard/marker"
	"redlock-proxy/quorum/guard/reconfig"
	"redlock-proxy/quorum/location"
	"redlock-proxy/quorum/vote"
)

// The upstream keeps a record of the location of the locks (package location). If the masters have
// lost the location, the record decides. If the record contradicts the masters' report, no master
// votes.

// CompareRecord compares the record with the reports of the masters. learnedAt is the time at which
// this proxy learned the record. err is the error of the last read. If a majority of the masters
// contradicts the record in replies to later requests, no master votes.
func (s *Set) CompareRecord(recordedPlace location.EraPlace, learnedAt time.Time, err error) {
	previous := s.locationConflict.Load()
	conflict := s.recordConflict(previous, recordedPlace, learnedAt, err)
	if conflict == previous {
		return
	}
	s.locationConflict.Store(conflict)
	for _, g := range s.guards {
		g.Wake()
	}
}

// recordConflict returns why no master votes, or nil. It keeps the previous reason until there is
// evidence to the contrary.
func (s *Set) recordConflict(previous *QuarantineError, recordedPlace location.EraPlace, learnedAt time.Time, err error) *QuarantineError {
	e := s.eras
	e.mu.Lock()
	defer e.mu.Unlock()
	statements := 0
	for _, claim := range e.claims {
		if claim.lastAsked.After(learnedAt) && e.positionOf(claim) == positionOwn {
			statements++
		}
	}
	switch {
	case err != nil && previous != nil && previous.Cause == Unverified:
		// If the first read of the record fails, the masters decide.
		return nil
	case err != nil || !e.ownEraKnown || e.reconfiguration != nil:
		return previous
	}
	report := location.Report{EraPlace: e.ownEra.Location(), Known: true, Masters: e.names}
	switch _, err := report.Resolve(s.opts.Record, recordedPlace, nil, false); {
	case err == nil:
		return nil
	case statements < vote.Majority(len(s.guards)) || previous != nil && previous.Cause == LocationUnknown:
		return previous
	default:
		return &QuarantineError{Cause: LocationUnknown, LocationConflict: err.Error()}
	}
}

// startingEra returns the era in which a master is admitted: the era that markers state, or that this
// proxy knows. If there is none, the upstream's record decides. startingEra reads it only now, so
// that it includes every decision from before the master lost its data. Without an upstream, the
// quarantine records decide.
//
// The error is a *QuarantineError.
func (s *Set) startingEra(ctx context.Context, proof string) (reconfig.Era, error) {
	era, isMarked := s.eras.statedEra()
	switch {
	case !isMarked && s.eras.othersAreLater(era) && !s.override.forced:
		return era, &QuarantineError{Cause: ReasonDifferentRules, Differences: describeChangedList(nil, s.eras.names)}
	case s.opts.Record == nil || isMarked && proof != marker.ProofLease && proof != marker.ProofFresh:
		return s.eras.adoptEra(era), nil
	case !isMarked:
		era = reconfig.Era{}
	}
	recorded, readErr := s.opts.Record.Read(ctx)
	report := location.Report{EraPlace: era.Location(), Known: isMarked, Masters: s.eras.names}
	at, err := report.Resolve(s.opts.Record, recorded, readErr, assumesUpstream(s.rules.settings))
	if err != nil {
		return era, &QuarantineError{Cause: LocationUnknown, LocationConflict: err.Error()}
	}
	if at != report.EraPlace {
		s.opts.Logger.Info("location of the locks restored from the record at the upstream", "place", at.Place, "era", at.Era)
		era = reconfig.Change{Names: s.eras.names, Place: at.Place}.NextEra(reconfig.Era{Number: at.Era - 1})
	}
	return s.eras.adoptEra(era), nil
}
