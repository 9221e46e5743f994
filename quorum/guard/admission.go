package guard

import (
	"context"
	"log/slog"
	"time"

	"redlock-proxy/quorum/guard/marker"
	"redlock-proxy/quorum/guard/script"
)

// quarantine puts the master into quarantine, for all proxies.
func (g *Guard) quarantine(ctx context.Context, v Report, why Reason, claim string) error {
	did, err := amend(ctx, g.Conn, script.Quarantine, v.Marker.Text, v.Record.Text, g.newRecord(v, why, claim).String())
	if did == 1 {
		g.retire(ctx, v, claim)
	}
	return err
}

func (g *Guard) newRecord(v Report, why Reason, claim string) marker.Record {
	r := marker.Record{RunID: v.RunID, Nonce: g.set.nonce() + g.set.eras.suffix(), Since: v.Sighting.ServerTime.Milliseconds(), Claim: claim, Reason: string(why)}
	if claim != marker.NoClaim {
		r.ClaimOf = g.Name
	}
	return r
}

// reword has the marker say that the master is not durable any more, and which master_replid it
// has.
func (g *Guard) reword(ctx context.Context, v Report) error {
	m := v.Marker.Value
	m.Durable, m.ReplID = m.Durable && v.Durable(), v.ReplID
	_, err := amend(ctx, g.Conn, script.Reword, v.Marker.Text, m.String())
	return err
}

// admit lets the master vote, for all proxies. more are the further arguments of a proof.
func (g *Guard) admit(ctx context.Context, v Report, proof string, more ...any) (int64, error) {
	era, err := g.set.beginning(ctx, proof)
	if err != nil {
		return 0, err
	}
	m := marker.Marker{
		RunID: v.RunID, ReplID: v.ReplID, Nonce: g.set.nonce(),
		Durable: v.Durable(), Evicted: v.Evicted, Proof: proof, Address: g.Name, Era: era,
	}
	if proof == marker.ProofJoined {
		proof = marker.ProofCaughtUp // is what the script is to look for
	}
	if proof != marker.ProofFresh { // for which all masters have to be empty
		g.introduce(ctx, m.Nonce)
	}
	args := append([]any{v.Marker.Text, v.Record.Text, m.String(), marker.Millis(g.set.longest.Seen()), proof}, more...)
	did, err := amend(ctx, g.Conn, script.Admit, args...)
	if err == nil && did == 1 {
		g.retire(ctx, v, m.Nonce)
		g.log.Debug("master admitted", "master", g.Name, "proof", proof)
	}
	return did, err
}

// denyVote notes that the master has no vote, and why. It is logged once, and again where it takes
// much longer than was logged.
func (g *Guard) denyVote(cause *QuarantineError) {
	g.mu.Lock()
	defer g.mu.Unlock()
	had := g.withdraw(cause.Why)
	if had || g.cause.Why != cause.Why || cause.isMuchLater(g.announced) {
		g.announced = cause.Ready
		level := slog.LevelWarn
		if cause.Why == AwaitsFreshStart || cause.Why == Succeeded {
			level = slog.LevelDebug
		}
		g.log.Log(context.Background(), level, "master in quarantine", "master", g.Name, "cause", cause.Error())
	}
	g.cause = cause
}

// Changed is when the master was given its vote or lost it last; zero if it never had one.
func (g *Guard) Changed() time.Time {
	if g == nil || g.set.off {
		return time.Time{}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.changed
}

// Figures are what is counted and measured of a master that has a guard.
type Figures struct {
	// CatchUps is how often this proxy had the master catch up.
	CatchUps int64
	// ClockOffset is by how much the master's clock is ahead of the wall clock of this machine;
	// ClockKnown is false where that is not known.
	ClockOffset time.Duration
	ClockKnown  bool
}

// Figures are those of now.
func (g *Guard) Figures() Figures {
	if g == nil {
		return Figures{}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	offset, known := g.clock.Offset(time.Now())
	return Figures{CatchUps: g.catchUps, ClockOffset: offset, ClockKnown: known}
}

// Watches reports whether a guard decides whether the master votes.
func (g *Guard) Watches() bool { return g != nil && !g.set.off }
