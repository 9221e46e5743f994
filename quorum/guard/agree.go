package guard

import (
	"context"
	"errors"
	"time"

	"redlock-proxy/quorum/guard/script"
)

// adoptRules writes this proxy's rules to the master if the master has no rules and no majority can
// have different rules. It returns the reason why the master has no vote: its rules differ, or a
// majority may have different rules.
func (g *Guard) adoptRules(ctx context.Context, v Report) (*QuarantineError, error) {
	c := g.set.rules.check(g.index)
	switch {
	case c.differences != "":
		return &QuarantineError{Cause: ReasonDifferentRules, Differences: c.differences}, nil
	case v.Rules != "" || g.set.rules.settings == "":
		return nil, nil
	case c.mayWrite:
		if written, err := g.writeRules(ctx, v); written || err != nil {
			return nil, err
		}
	}
	return &QuarantineError{Cause: Unverified}, nil
}

// pauseAfterRules returns the time until the next check of a master. cause is the result of
// adoptRules.
func pauseAfterRules(cause *QuarantineError) time.Duration {
	if cause != nil && cause.Cause == Unverified {
		return shortPause
	}
	return Heartbeat
}

// writeRules writes this proxy's rules to the master, and reports whether it did. It writes nothing
// if the master's rules have changed since the report.
func (g *Guard) writeRules(ctx context.Context, v Report) (bool, error) {
	text := g.set.rules.rulesToWrite()
	result, err := runInt(ctx, g.Conn, script.WriteRules, v.Rules, text)
	if result == 1 {
		v.Rules = text
		g.set.rules.observe(g.index, v)
	}
	return result == 1, err
}

// errUnstableMarker is the cause for a master whose state changes with every check.
var errUnstableMarker = errors.New("its marker keeps changing")
