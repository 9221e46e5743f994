package guard

import (
	"context"
	"errors"
	"time"

	"redlock-proxy/quorum/guard/script"
)

// rulesRefusal returns the error for this proxy if a majority has different rules; otherwise nil.
func (g *Guard) rulesRefusal() *QuarantineError {
	if c := g.set.rules.consentFor(g.index); c.majorityDiffers {
		return &QuarantineError{Why: OtherRules, Differs: c.differs}
	}
	return nil
}

// adoptRules writes this proxy's rules to the master if the master has no rules and no majority can
// have different ones. It returns the reason why the master has no vote: its rules differ, or it
// must not get any yet.
func (g *Guard) adoptRules(ctx context.Context, v Report) (*QuarantineError, error) {
	c := g.set.rules.consentFor(g.index)
	switch {
	case c.differs != "":
		return &QuarantineError{Why: OtherRules, Differs: c.differs}, nil
	case v.Rules != "" || g.set.rules.settings == "":
		return nil, nil
	case c.claims:
		if did, err := g.writeRules(ctx, v); did || err != nil {
			return nil, err
		}
	}
	return &QuarantineError{Why: Unverified}, nil
}

// rulesPause is the wait until other masters have reported their rules.
const rulesPause = 20 * time.Millisecond

// nextLook returns the time until the next check of a master that adoptRules refused for a cause,
// or nil.
func nextLook(cause *QuarantineError) time.Duration {
	if cause != nil && cause.Why == Unverified {
		return rulesPause
	}
	return Heartbeat
}

// writeRules replaces the rules that the master reported with this proxy's rules.
func (g *Guard) writeRules(ctx context.Context, v Report) (bool, error) {
	text := g.set.rules.rulesToWrite()
	did, err := runInt(ctx, g.Conn, script.WriteRules, v.Rules, text)
	if did == 1 {
		v.Rules = text
		g.set.rules.observe(g.index, v)
	}
	return did == 1, err
}

// errUndecided is the cause for a master whose state changes with every check.
var errUndecided = errors.New("its marker keeps changing")
