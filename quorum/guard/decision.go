package guard

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"redlock-proxy/internal/pacing"
	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/guard/marker"
	"redlock-proxy/quorum/guard/reconfig"
	"redlock-proxy/quorum/guard/script"
	"redlock-proxy/quorum/vote"
)

// promise holds a master's reply to a ballot.
type promise struct {
	guard *Guard
	// trust is the trust in the master. It must not change until the master accepts.
	trust   trust
	granted bool
	// ballot is the highest ballot that the master has promised.
	ballot string
}

// Decide lets a majority of an era's masters decide the next era, and seals the masters that it
// reaches. From then on the votes of these masters do not count in the old era. The result is the
// proposal, unless another proxy began a change earlier. ballot returns an unused ballot above a
// round.
//
// A ballot counts only if it took less than vote.RoundLimit. A master that lost its seal copies
// data from other masters only after that time. The other masters are sealed by then, so the
// copying master does not vote in the old era again.
func (s *Set) Decide(
	ctx context.Context, era reconfig.Era, proposal reconfig.Change, ballot func(round uint64) string,
) (reconfig.Change, error) {
	maxRound := uint64(0)
	for n := 0; ctx.Err() == nil; n++ {
		if n > 0 && pacing.Sleep(ctx, time.Duration(20+rand.IntN(50*min(n, 6)))*time.Millisecond) != nil {
			break
		}
		if next := s.Reconfiguration(); next != nil && next.Begun && next.Era.Number > era.Number {
			return reconfig.Change{}, errors.New("a change has been decided already")
		}
		start := time.Now()
		promises := s.prepare(ctx, era, ballot(maxRound))
		var seals []reconfig.Seal
		for _, p := range promises {
			maxRound = max(maxRound, cell.Ballot(p.ballot).Round())
			if p.granted {
				seals = append(seals, p.trust.Seal)
			}
		}
		change := reconfig.Choose(seals, proposal)
		if change.IsNone() || len(seals) < vote.Majority(change.PreviousMasterCount) {
			continue
		}
		accepted := s.accept(ctx, era, promises, change)
		if accepted >= vote.Majority(change.PreviousMasterCount) && time.Since(start) < vote.RoundLimit {
			return change, nil
		}
	}
	return reconfig.Change{}, errors.Join(errors.New("no majority of the masters agreed on the change in time"), ctx.Err())
}

// prepare requests promises from all masters that are known to be in the era, and to have lost
// nothing. It does not wait for masters that are down, because a ballot counts only for
// vote.RoundLimit.
func (s *Set) prepare(ctx context.Context, era reconfig.Era, ballot string) []promise {
	promises := make([]promise, len(s.guards))
	countParallel(s.guards, func(g *Guard) bool {
		t := g.currentTrust()
		p := promise{guard: g, trust: t}
		mayPromise := !g.IsDown() && t.Nonce != "" && t.Era == era && (t.Seal.IsNone() || s.eras.isCredible(t.Nonce))
		if !mayPromise || p.request(ctx, era, ballot) != nil {
			g.Wake()
		}
		promises[g.index] = p
		return p.granted
	})
	return promises
}

// request requests a promise from the master. Like a vote, the promise counts only if the trust in
// the master is still the same.
func (p *promise) request(ctx context.Context, era reconfig.Era, ballot string) error {
	g := p.guard
	field := marker.AppendDatabase(p.trust.Nonce, 0)
	reply := &probe{writes: true, field: field, hasSequence: true}
	reply.floor, reply.knownCanary = g.knownState(field, 0)
	sent := time.Now()
	parts, err := runTexts(ctx, g.Conn, 0, 1, script.Promise,
		marker.AppendDatabase(p.trust.String(), 0), ballot, field, era.String())
	switch {
	case err != nil:
		return err
	case len(parts) == 2:
		p.ballot = parts[1]
		return nil
	case len(parts) != 5:
		return fmt.Errorf("unexpected reply %v", parts)
	}
	reply.sequence, _ = strconv.ParseInt(parts[1], 10, 64)
	reply.clockReading = ClockReading{SentAt: sent, ReceivedAt: time.Now(), ServerTime: parseTime(parts[2:4])}
	reply.canary = parts[4]
	g.mu.Lock()
	defer g.mu.Unlock()
	if p.granted = g.isVoteValid(p.trust, reply); p.granted {
		p.ballot = ballot
	}
	return nil
}

// accept seals the masters that promised the ballot, and returns the number of sealed masters.
func (s *Set) accept(ctx context.Context, era reconfig.Era, promises []promise, change reconfig.Change) int {
	return countParallel(promises, func(p promise) bool {
		if !p.granted {
			return false
		}
		defer p.guard.Wake()
		m := p.trust.Marker
		m.Nonce, m.Proof, m.Seal = marker.NewNonce(), marker.ProofIntact, reconfig.Seal{Ballot: p.ballot, Change: change}
		result, err := runInt(ctx, p.guard.Conn, script.Seal,
			marker.AppendDatabase(p.trust.String(), 0), p.ballot, m.String(), era.String())
		return err == nil && result == 1
	})
}

// CheckChange returns the present era, or an error that states why the masters cannot be changed
// now. isKept reports whether the change keeps a master.
func (s *Set) CheckChange(isKept func(name string) bool) (reconfig.Era, error) {
	if s.opts.Off {
		return reconfig.Era{}, errors.New("the guard is off")
	}
	if s.Reconfiguration() != nil {
		return reconfig.Era{}, errors.New("the masters are being changed, or another proxy has changed them")
	}
	for _, g := range s.guards {
		if t := g.currentTrust(); isKept(g.Name) && (t.Nonce == "" || t.eraEnded || g.IsDown()) {
			return reconfig.Era{}, fmt.Errorf("master %s does not vote", g.Name)
		}
	}
	if err := s.checkChangeAllowed(); err != nil {
		return reconfig.Era{}, err
	}
	own, _ := s.eras.statedEra()
	return own, nil
}

// ReconfigurationTo returns the successor of this set of masters, or nil. If the successor consists
// of the named masters, the report of one master suffices, because the operator's list of names
// confirms it.
func (s *Set) ReconfigurationTo(names []string) *Reconfiguration {
	s.eras.mu.Lock()
	defer s.eras.mu.Unlock()
	for _, claim := range s.eras.claims {
		reconfiguration := claim.reconfiguration()
		if s.eras.positionOf(claim) == positionEnded && !s.eras.refutedNonces[claim.Nonce] &&
			reconfiguration.Begun && claim.Era.Number > 0 && claim.Era.HasMasters(names) {
			reconfiguration.Change.Names = names
			return &reconfiguration
		}
	}
	return s.eras.successor()
}

// Reconfiguration returns the known successor of this set of masters, or nil if there is none. The
// caller must not change it.
func (s *Set) Reconfiguration() *Reconfiguration {
	s.eras.mu.Lock()
	defer s.eras.mu.Unlock()
	return s.eras.successor()
}
