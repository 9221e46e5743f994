package guard

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"redlock-proxy/internal/pacing"
	"redlock-proxy/quorum/guard/marker"
	"redlock-proxy/quorum/guard/reconfig"
	"redlock-proxy/quorum/guard/script"
	"redlock-proxy/quorum/vote"
)

var (
	errBegun     = errors.New("it is decided already")
	errUnsettled = errors.New("no majority of the masters agreed on what follows")
)

// promise is what a master answered to a ballot.
type promise struct {
	guard *Guard
	// under is what it is trusted by, which must not change until it accepts.
	under trust
	gave  bool
	above string // the ballot that it promised before
}

// Decide has a majority of masters of an era agree on what follows it, and seals those that are
// reached: from then on none of their votes counts in that era. It is wanted, unless another change
// was begun before. ballot gives one that was never used before, above a number.
//
// A ballot counts only if it took less than a round may: a master that forgot what it accepted
// copies from others later than that. They are sealed by then, so it does not vote in that era
// again.
func (s *Set) Decide(ctx context.Context, era reconfig.Era, wanted reconfig.Change, ballot func(above uint64) string) (reconfig.Change, error) {
	above := uint64(0)
	for try := 0; ctx.Err() == nil; try++ {
		if try > 0 && pacing.Sleep(ctx, time.Duration(20+rand.IntN(50*min(try, 6)))*time.Millisecond) != nil {
			break
		}
		if s.eras.hasBegun(era.Number + 1) {
			return reconfig.Change{}, errBegun
		}
		began := time.Now()
		promises := s.prepare(ctx, era, ballot(above))
		var seals []reconfig.Seal
		for _, p := range promises {
			above = max(above, roundOf(p.above))
			if p.gave {
				seals = append(seals, p.under.Seal)
			}
		}
		change := reconfig.Choose(seals, wanted)
		if change.IsNone() || len(seals) < vote.Majority(change.Before) {
			continue
		}
		accepted := s.accept(ctx, era, promises, change)
		if accepted >= vote.Majority(change.Before) && time.Since(began) < vote.RoundLimit {
			return change, nil
		}
	}
	return reconfig.Change{}, errors.Join(errUnsettled, ctx.Err())
}

// ballotDigits is how many digits of a ballot are its round.
const ballotDigits = 12

func roundOf(ballot string) uint64 {
	if len(ballot) < ballotDigits {
		return 0
	}
	n, _ := strconv.ParseUint(ballot[:ballotDigits], 10, 64)
	return n
}

// prepare asks all masters that are known to be of the era, and to have forgotten nothing. One that
// is down is not waited for: a ballot counts only for the time of a round.
func (s *Set) prepare(ctx context.Context, era reconfig.Era, ballot string) []promise {
	promises := make([]promise, len(s.guards))
	countAtOnce(s.guards, func(g *Guard) bool {
		t := g.trusted()
		p := promise{guard: g, under: t}
		if g.IsDown() || t.Nonce == "" || t.Era != era || !t.Seal.IsNone() && !s.eras.isBelieved(t.Nonce) || p.ask(ctx, era, ballot) != nil {
			g.Wake()
		}
		promises[g.index] = p
		return p.gave
	})
	return promises
}

// ask asks for a promise. It counts as a vote does: if the master is the one that is trusted.
func (p *promise) ask(ctx context.Context, era reconfig.Era, ballot string) error {
	g := p.guard
	field := marker.InDatabase(p.under.Nonce, 0)
	seen := &look{writes: true, field: field, number: true}
	seen.floor, seen.known = g.knows(field, 0)
	sent := time.Now()
	parts, err := ask(ctx, g.Conn, 0, 1, script.Promise, marker.InDatabase(p.under.String(), 0), ballot, field, era.String())
	switch {
	case err != nil:
		return err
	case len(parts) == 2:
		p.above = parts[1]
		return nil
	case len(parts) != 5:
		return fmt.Errorf("unexpected answer %v", parts)
	}
	seen.sequence, _ = strconv.ParseInt(parts[1], 10, 64)
	seen.sighting = Sighting{Sent: sent, Got: time.Now(), ServerTime: timeOf(parts[2:4])}
	seen.canary = parts[4]
	g.mu.Lock()
	defer g.mu.Unlock()
	if p.gave = g.counts(p.under, seen); p.gave {
		p.above = ballot
	}
	return nil
}

// accept seals those that promised, and returns how many.
func (s *Set) accept(ctx context.Context, era reconfig.Era, promises []promise, change reconfig.Change) int {
	return countAtOnce(promises, func(p promise) bool {
		if !p.gave {
			return false
		}
		defer p.guard.Wake()
		m := p.under.Marker
		m.Nonce, m.Proof, m.Seal = s.nonce(), marker.ProofRemark, reconfig.Seal{Ballot: p.above, Change: change}
		n, err := amend(ctx, p.guard.Conn, script.Seal, marker.InDatabase(p.under.String(), 0), p.above, m.String(), era.String())
		return err == nil && n == 1
	})
}

// MayChange is why the masters cannot be changed now to some of which these stay, or nil, and which
// set they are.
func (s *Set) MayChange(stays func(name string) bool) (reconfig.Era, error) {
	if s.off {
		return reconfig.Era{}, errors.New("the guard is off")
	}
	if s.Succession() != nil {
		return reconfig.Era{}, errors.New("they are being changed, or were by another proxy")
	}
	for _, g := range s.guards {
		if t := g.trusted(); stays(g.Name) && (t.Nonce == "" || t.over || g.IsDown()) {
			return reconfig.Era{}, fmt.Errorf("%s does not vote", g.Name)
		}
	}
	if err := s.hindrance(); err != nil {
		return reconfig.Era{}, err
	}
	own, _ := s.eras.stated()
	return own, nil
}

// SuccessionTo is what follows this set of masters, or nil. That these do, one master alone is
// believed, since an operator named them, too.
func (s *Set) SuccessionTo(names []string) *Succession {
	s.eras.mu.Lock()
	for _, one := range s.eras.statements {
		next := one.follows()
		if s.eras.positionOf(one) == positionOver && !s.eras.refuted[one.Nonce] && next.Begun && one.Era.Number > 0 && one.Era.Is(names) {
			s.eras.mu.Unlock()
			next.Change.Names = names
			return &next
		}
	}
	s.eras.mu.Unlock()
	return s.Succession()
}

// Succession is what follows this set of masters, or nil while nothing does, as far as is known.
func (s *Set) Succession() *Succession {
	s.eras.mu.Lock()
	defer s.eras.mu.Unlock()
	if s.eras.over == nil {
		return nil
	}
	over := *s.eras.over
	return &over
}
