package quorum

import (
	"context"
	"log/slog"
	"time"
)

// watchPause is the wait between two looks at which masters vote. A majority counts as lost after
// two: a master of which the vote is only looked at again is back before that.
const watchPause = 100 * time.Millisecond

// quorumWatch tells when the majority was lost and when it is back, once each.
type quorumWatch struct {
	// lost is since when there is none; zero: there is one. told is set once that was told.
	lost time.Time
	told bool
}

// transition is what a quorumWatch found.
type transition int

const (
	noChange transition = iota
	quorumLost
	quorumBack
)

// see takes whether locks can be had now. without is how long they could not.
func (a *quorumWatch) see(has bool, now time.Time) (what transition, without time.Duration) {
	switch {
	case has:
		what, without = noChange, now.Sub(a.lost)
		if a.told {
			what = quorumBack
		}
		*a = quorumWatch{}
	case a.lost.IsZero():
		a.lost = now
	case !a.told:
		a.told, what = true, quorumLost
	}
	return what, without
}

// HasQuorum reports whether locks can be had: a majority of the masters votes, and the legacy
// server, if there is one, answers.
func (c *Cluster) HasQuorum() bool {
	return voting(c.masters) >= Majority(len(c.masters)) && (c.legacy == nil || !c.legacy.IsDown())
}

// WatchQuorum logs when locks can no longer be had, and why, and when they can again, until ctx
// ends. had is whether they could at the start; where not, that was told already.
func (c *Cluster) WatchQuorum(ctx context.Context, log *slog.Logger, had bool) {
	seen := quorumWatch{told: !had}
	if !had {
		seen.lost = time.Now()
	}
	tick := time.NewTicker(watchPause)
	defer tick.Stop()
	for {
		switch what, without := seen.see(c.HasQuorum(), time.Now()); what {
		case quorumLost:
			log.Warn("quorum lost: locks are refused with NOQUORUM", "cause", c.absence().Error())
		case quorumBack:
			log.Info("quorum is back: locks can be had", "without", without.Round(time.Millisecond), "voting", voting(c.masters), "masters", len(c.masters))
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// absence says which masters do not vote now, and why.
func (c *Cluster) absence() *NoQuorumError {
	none := newNoQuorum(len(c.masters))
	for _, m := range c.Status() {
		switch {
		case m.Legacy && m.Err != nil:
			none.Legacy = &MasterError{Master: m.Name, Err: m.Err}
		case m.Legacy:
		case m.Err != nil:
			none.add(&MasterError{Master: m.Name, Err: m.Err})
		case m.Quarantine != nil:
			none.add(&MasterError{Master: m.Name, Err: m.Quarantine})
		default:
			none.Answered++
		}
	}
	return none
}
