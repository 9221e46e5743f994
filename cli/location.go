package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"redlock-proxy/conf"
	"redlock-proxy/daemon"
	"redlock-proxy/internal/certs"
	"redlock-proxy/quorum/inspect"
	"redlock-proxy/quorum/location"
)

// lockLocation returns the location of the locks, as a proxy with this configuration determines it:
// by the masters' markers or, at a fresh start, by the upstream's record. The place is undecided if
// the setting of a proxy decides. contradiction describes how the record contradicts the masters or
// the setting.
func lockLocation(
	ctx context.Context, cfg conf.Config, certificates *certs.Certificates, masters []inspect.Finding,
) (at location.Report, contradiction string) {
	if !daemon.RecordsLocation(cfg) {
		return location.Report{EraPlace: location.EraPlace{Place: location.Masters}, Known: true}, ""
	}
	at = inspect.ReportedLocation(masters)
	if !at.Known && !startsFresh(cfg, masters) {
		return at, ""
	}
	record, end, err := daemon.LocationRecord(cfg, certificates)
	if err != nil {
		return at, ""
	}
	defer end()
	var recorded location.EraPlace
	if record != nil {
		ctx, cancel := context.WithTimeout(ctx, cfg.UpstreamTimeout)
		defer cancel()
		recorded, err = record.Read(ctx)
		if _, isRefused := errors.AsType[redis.Error](err); err != nil && !isRefused {
			return at, "" // the verdict says that the upstream is down
		}
	}
	resolved, err := at.Resolve(record, recorded, err, cfg.MoveFromUpstream)
	if err != nil {
		return at, err.Error()
	}
	at.EraPlace, at.Known = resolved, true
	return at, ""
}

// place returns the location of the locks for a proxy with this configuration.
func (s *inspection) place(cfg conf.Config) location.Place {
	return s.location.WithDefault(cfg.MoveFromUpstream)
}

func (s *inspection) locationText(cfg conf.Config) string {
	text := ""
	switch {
	case s.changing:
		return "the masters are being changed, or the locks moved"
	case !s.location.Known:
		return "no majority of the masters knows where they are"
	case s.location.Place == location.Undecided && cfg.MoveFromUpstream:
		return "at the upstream (move-from-upstream) until redlock-proxy move moves them to the masters"
	case s.location.Place == location.Undecided:
		return "at the masters; they were never moved"
	case s.location.Moves():
		text = fmt.Sprintf("being moved from the %v to the %v (era %d); "+
			"commands on lock keys wait until the move is complete",
			s.location.Source(), s.location.Target(), s.location.Era)
	default:
		text = fmt.Sprintf("at the %v (era %d)", s.location.Place, s.location.Era)
	}
	if cfg.MoveFromUpstream {
		text += "; move-from-upstream has no effect any more"
	}
	return text
}

// compareDatabases compares the numbers of databases of the servers that may hold the locks.
func (s *inspection) compareDatabases(cfg conf.Config) {
	var findings []*inspect.Finding
	for i := range s.masters {
		findings = append(findings, &s.masters[i])
	}
	if daemon.CanMove(cfg) {
		findings = append(findings, s.upstream)
	}
	inspect.CompareDatabases(findings...)
}

// findDirectLocks finds lock keys at the upstream while the locks are at the masters.
func (s *inspection) findDirectLocks(ctx context.Context, cfg conf.Config, certificates *certs.Certificates) {
	f := s.upstream
	atMasters := cfg.HasCluster() && len(cfg.LockKeys) > 0 ||
		daemon.CanMove(cfg) && s.location.Known && s.place(cfg) == location.Masters
	if !atMasters || f == nil || f.Err != nil || f.Version == "" {
		return
	}
	n, first, more, err := daemon.LockKeysAtUpstream(ctx, cfg, certificates)
	switch {
	case err != nil:
		f.Weaknesses = append(f.Weaknesses, fmt.Sprintf("cannot be searched for lock keys: %v", err))
	case n > 0:
		keys := "1 lock key is"
		if n > 1 {
			keys = fmt.Sprintf("%d lock keys are", n)
		}
		f.SettingsProblems = append(f.SettingsProblems,
			fmt.Sprintf("%s at the upstream while the locks are at the masters, such as %.100q: "+
				"clients lock at the upstream directly, or an earlier move did not remove all of them", keys, first))
	case more:
		f.Weaknesses = append(f.Weaknesses, "has too many keys to search for lock keys")
	}
}
