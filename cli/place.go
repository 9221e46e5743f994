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

// placing is where the locks are, for proxies that can move them.
type placing struct {
	// word is as in PROXY INFO, text a sentence.
	word, text string
}

// placeOf is where the locks are by the masters' markers; nil where they cannot be moved.
func placeOf(cfg conf.Config, masters []inspect.Finding) *placing {
	if !daemon.CanMove(cfg) {
		return nil
	}
	at, era, known := inspect.PlacedOn(masters)
	switch {
	case !known:
		return &placing{"unknown", "no majority of the masters knows where they are"}
	case at == place.Undecided && cfg.MoveFromUpstream:
		return &placing{place.Upstream.Shown(), "at the upstream (move-from-upstream) until redlock-proxy move has moved them to the masters"}
	case at == place.Undecided:
		return &placing{place.Masters.Shown(), "at the masters; they were never moved"}
	}
	p := &placing{at.Shown(), fmt.Sprintf("at the %v, where they were moved (era %d)", at, era)}
	if at.Moves() {
		p.text = fmt.Sprintf("being moved from the %v to the %v (era %d), for which commands on lock keys wait",
			at.Source(), at.Target(), era)
	}
	if cfg.MoveFromUpstream {
		p.text += "; move-from-upstream makes no difference any more"
	}
	return p
}

// lookForStrays finds lock keys at the upstream while the locks are at the masters.
func (s *inspection) lookForStrays(ctx context.Context, cfg conf.Config, certificates *certs.Certificates) {
	f := s.upstream
	if s.place == nil || s.place.word != place.Masters.Shown() || f == nil || f.Err != nil || f.Version == "" {
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
