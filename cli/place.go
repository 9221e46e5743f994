package cli

import (
	"context"
	"fmt"

	"redlock-proxy/conf"
	"redlock-proxy/daemon"
	"redlock-proxy/internal/certs"
	"redlock-proxy/quorum/inspect"
	"redlock-proxy/quorum/place"
)

// placeOf is where the locks are by the masters' markers, as proxies with this configuration see it.
func placeOf(cfg conf.Config, masters []inspect.Finding) (at place.Place, era int, known bool) {
	if !daemon.HasPlaces(cfg) {
		return place.Masters, 0, true
	}
	at, era, known = inspect.PlacedOn(masters)
	return at.OrBySetting(cfg.MoveFromUpstream), era, known
}

func (s *inspection) placeText(cfg conf.Config) string {
	text := ""
	switch {
	case !s.known:
		return "no majority of the masters knows where they are"
	case s.era == 0 && s.at == place.Upstream:
		return "at the upstream (move-from-upstream) until redlock-proxy move has moved them to the masters"
	case s.era == 0:
		return "at the masters; they were never moved"
	case s.at.Moves():
		text = fmt.Sprintf("being moved from the %v to the %v (era %d), for which commands on lock keys wait", s.at.Source(), s.at.Target(), s.era)
	default:
		text = fmt.Sprintf("at the %v, where they were moved (era %d)", s.at, s.era)
	}
	if cfg.MoveFromUpstream {
		text += "; move-from-upstream makes no difference any more"
	}
	return text
}

// compareDatabases compares the servers between which locks are moved, or else the masters.
func (s *inspection) compareDatabases(cfg conf.Config) {
	var all []*inspect.Finding
	for i := range s.masters {
		all = append(all, &s.masters[i])
	}
	if daemon.CanMove(cfg) {
		all = append(all, s.upstream)
	}
	inspect.CompareDatabases(all...)
}

// lookForStrays finds lock keys at the upstream while the locks are at the masters.
func (s *inspection) lookForStrays(ctx context.Context, cfg conf.Config, certificates *certs.Certificates) {
	f := s.upstream
	if !daemon.CanMove(cfg) || !s.known || s.at != place.Masters || f == nil || f.Err != nil || f.Version == "" {
		return
	}
	n, first, more, err := daemon.LockKeysAtUpstream(ctx, cfg, certificates)
	switch {
	case err != nil:
		f.Weak = append(f.Weak, fmt.Sprintf("could not be looked through for lock keys: %v", err))
	case n > 0:
		f.Amiss = append(f.Amiss, fmt.Sprintf("%d lock keys are here while the locks are at the masters, such as %.100q: somebody locks here directly, or they were left", n, first))
	case more:
		f.Weak = append(f.Weak, "has too many keys to be looked through for lock keys")
	}
}
