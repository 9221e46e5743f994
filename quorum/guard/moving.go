package guard

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"redlock-proxy/quorum/guard/marker"
	"redlock-proxy/quorum/guard/reconfig"
	"redlock-proxy/quorum/guard/script"
	"redlock-proxy/quorum/place"
	"redlock-proxy/quorum/vote"
)

// The era of the masters shows where the locks are; see package place.

// Era is the one in which the masters vote; known is false as long as too few of them reported it,
// and once it is known to be over.
func (s *Set) Era() (era reconfig.Era, known bool) {
	s.eras.mu.Lock()
	defer s.eras.mu.Unlock()
	return s.eras.own, s.eras.known && s.eras.over == nil
}

// OwnEra is Era also once it is over.
func (s *Set) OwnEra() (era reconfig.Era, known bool) {
	s.eras.mu.Lock()
	defer s.eras.mu.Unlock()
	return s.eras.own, s.eras.known
}

// Confirm asks whether a majority of the masters votes in the era still, after it was called. It is
// nil if so.
func (s *Set) Confirm(ctx context.Context) error {
	confirmed := countAtOnce(s.guards, func(g *Guard) bool {
		t := g.trusted()
		if t.Nonce == "" || t.over {
			return false
		}
		text, err := g.Conn.Run(ctx, script.Marked)
		if err != nil || text != marker.InDatabase(t.String(), 0) {
			g.Wake()
			return false
		}
		return g.trusted().term == t.term // else another life of it may have answered
	})
	if confirmed < vote.Majority(len(s.guards)) {
		return errUnconfirmed
	}
	return ctx.Err()
}

var errUnconfirmed = errors.New("no majority of the masters confirmed where the locks are")

// Stir has proxies look at the masters again and again, since something is about to be decided.
// Those that are reached do so within a heartbeat.
func (s *Set) Stir(ctx context.Context, era reconfig.Era, ballot string) {
	s.prepare(ctx, era, ballot)
}

// Bind is Stir, and has them know where the locks are to be.
func (s *Set) Bind(ctx context.Context, era reconfig.Era, ballot string, to place.Place) {
	s.prepare(ctx, era, ballot+boundFor+to.String())
}

// IsBoundFor reports whether the locks are about to be somewhere else, by Bind a moment ago.
func (s *Set) IsBoundFor(to place.Place) bool { return s.eras.isBoundFor(to) }

// MayMove is why locks cannot be moved now, or nil.
func (s *Set) MayMove() error {
	_, err := s.MayChange(func(string) bool { return false })
	return err
}

// MayHold is why the masters cannot hold so many more bytes, or nil. Those that do not answer are
// left out.
func (s *Set) MayHold(ctx context.Context, bytes int64) error {
	full := make([]error, len(s.guards))
	countAtOnce(s.guards, func(g *Guard) bool {
		v, err := g.Conn.Examine(ctx)
		if err == nil && v.Room >= 0 && v.Room < bytes {
			full[g.index] = fmt.Errorf("master %s has room for %d (maxmemory)", g.Name, v.Room)
		}
		return err == nil
	})
	return errors.Join(full...)
}

// ID is that of the proxy.
func (s *Set) ID() string { return s.id }

// heldFor is how long a proxy's report of what it holds back is kept, in ms.
const heldFor = "600000"

// SayHeld leaves on the masters what this proxy holds back. It fails where no majority took it.
func (s *Set) SayHeld(ctx context.Context, text string) error {
	took := countAtOnce(s.guards, func(g *Guard) bool {
		_, err := g.Conn.Run(ctx, script.Hold, s.id, text, heldFor)
		return err == nil
	})
	if took < vote.Majority(len(s.guards)) {
		return errors.Join(errUnsaid, ctx.Err())
	}
	return nil
}

var errUnsaid = errors.New("no majority of the masters took it")

// Held is what proxies reported last of what they hold back, by their ID: where two masters have
// the same, or the only one has it.
func (s *Set) Held(ctx context.Context) map[string]string {
	var mu sync.Mutex
	says, held := map[[2]string]int{}, map[string]string{}
	countAtOnce(s.guards, func(g *Guard) bool {
		parts, err := ask(ctx, g.Conn, 0, 2, script.Held)
		mu.Lock()
		defer mu.Unlock()
		for ; err == nil && len(parts) > 0; parts = parts[2:] {
			one := [2]string{parts[0], strings.Clone(parts[1])}
			if says[one]++; says[one] >= believed(len(s.guards)) {
				held[one[0]] = one[1]
			}
		}
		return true
	})
	return held
}
