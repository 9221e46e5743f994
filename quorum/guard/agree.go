package guard

import (
	"context"
	"errors"
	"time"

	"redlock-proxy/quorum/guard/script"
)

// refusal is why no master may vote for this proxy: a majority has other rules. Or nil.
func (g *Guard) refusal() *QuarantineError {
	if c := g.set.rules.on(g.index); c.byMajority {
		return &QuarantineError{Why: OtherRules, Differs: c.differs}
	}
	return nil
}

// agree has the master have this proxy's rules, if it has none and no majority can have others, and
// is why it has no vote where it has others, or may not have any yet.
func (g *Guard) agree(ctx context.Context, v Report) (*QuarantineError, error) {
	c := g.set.rules.on(g.index)
	switch {
	case c.differs != "":
		return &QuarantineError{Why: OtherRules, Differs: c.differs}, nil
	case v.Rules != "" || g.set.rules.settings == "":
		return nil, nil
	case c.claims:
		if did, err := g.settle(ctx, v); did || err != nil {
			return nil, err
		}
	}
	return &QuarantineError{Why: Unproven}, nil
}

// rulesPause is the wait for other masters to report their rules.
const rulesPause = 20 * time.Millisecond

// lookAgain is when to look again at a master that agree refused for a cause, or for none.
func lookAgain(cause *QuarantineError) time.Duration {
	if cause != nil && cause.Why == Unproven {
		return rulesPause
	}
	return Heartbeat
}

// settle puts the rules of this proxy in the place of those that the master reported.
func (g *Guard) settle(ctx context.Context, v Report) (bool, error) {
	text := g.set.rules.toWrite()
	did, err := amend(ctx, g.Conn, script.Settle, v.Rules, text)
	if did == 1 {
		v.Rules = text
		g.set.rules.saw(g.index, v)
	}
	return did == 1, err
}

// errUndecided is the cause of a master of which the state changes with every look.
var errUndecided = errors.New("its marker changes all the time")
