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

// placeOf is where the locks are by the masters' markers, as proxies with this configuration see
// it, and what of that the upstream's record contradicts.
func placeOf(ctx context.Context, cfg conf.Config, certificates *certs.Certificates, masters []inspect.Finding) (at place.Said, disputed string) {
	if !daemon.HasPlaces(cfg) {
		return place.Said{At: place.At{Place: place.Masters}, Known: true}, ""
	}
	if at = inspect.PlacedOn(masters); at.Known {
		disputed = contradicted(ctx, cfg, certificates, at)
	}
	at.Place = at.OrBySetting(cfg.MoveFromUpstream)
	return at, disputed
}

// contradicted is what the upstream's record, if it can be read, contradicts in what the masters
// say.
func contradicted(ctx context.Context, cfg conf.Config, certificates *certs.Certificates, said place.Said) string {
	record, end, err := daemon.Record(cfg, certificates)
	if err != nil || record == nil {
		return ""
	}
	defer end()
	ctx, cancel := context.WithTimeout(ctx, cfg.UpstreamTimeout)
	defer cancel()
	has, unread := record.Read(ctx)
	if _, err := said.Settle(record, has, unread, cfg.MoveFromUpstream); err != nil {
		return err.Error()
	}
	return ""
}

func (s *inspection) placeText(cfg conf.Config) string {
	text := ""
	switch {
	case !s.at.Known:
		return "no majority of the masters knows where they are"
	case s.at.Era == 0 && s.at.Place == place.Upstream:
		return "at the upstream (move-from-upstream) until redlock-proxy move has moved them to the masters"
	case s.at.Era == 0:
		return "at the masters; they were never moved"
	case s.at.Moves():
		text = fmt.Sprintf("being moved from the %v to the %v (era %d), for which commands on lock keys wait", s.at.Source(), s.at.Target(), s.at.Era)
	default:
		text = fmt.Sprintf("at the %v, where they were moved (era %d)", s.at.Place, s.at.Era)
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
	if !daemon.CanMove(cfg) || !s.at.Known || s.at.Place != place.Masters || f == nil || f.Err != nil || f.Version == "" {
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
