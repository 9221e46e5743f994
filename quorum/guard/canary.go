package guard

import (
	"context"
	"strconv"
	"time"

	"redlock-proxy/quorum/guard/marker"
	"redlock-proxy/quorum/guard/script"
	"redlock-proxy/quorum/vote"
)

// A clock that jumps forward and back between two looks has not moved when it is looked
// at, but keys have expired in between. So beside each marker there is a canary: a key that
// lives for canaryLife and is renewed with every heartbeat. Where it is gone, or another
// one, although it should still live by our clock, and the clock itself fits, time jumped
// and came back.

// canaryLife is longer than a heartbeat and what a checkup may take. A jump that is shorter
// than its half is not seen; it can only end leases that were about to end.
const canaryLife = 2 * Heartbeat

// canary is one that was seen alive, and until when it must live by our clock.
type canary struct {
	value string
	until time.Time
}

// renewedAt is a canary that was renewed after sent.
func renewedAt(value string, sent time.Time) canary {
	return canary{value: value, until: sent.Add(canaryLife - vote.Allowance(canaryLife) - clockNoise)}
}

// isMissed reports whether another value, or none, at a moment before now means that time
// jumped.
func (c canary) isMissed(value string, now time.Time) bool {
	return c.value != "" && c.value != value && now.Before(c.until)
}

// knownTo is the canary that a look may miss: the one that was known before it left, for as long as is
// known by now. One that was made since may have come after it.
func (g *Guard) knownTo(p *look) canary {
	if now := g.canaries[p.db]; now.value == p.known.value {
		return now
	}
	return p.known
}

// renewCanaries renews the canaries in all databases of a master with this marker, and looks
// whether they were alive, and how far the sequences went.
func (g *Guard) renewCanaries(ctx context.Context, markerText, nonce string) error {
	before := g.livingAges()
	sent := time.Now()
	parts, err := ask(ctx, g.Conn, 0, 4, script.RenewCanaries, markerText, g.set.nonce(), marker.Millis(canaryLife), nonce)
	if err != nil {
		return err
	}
	got := time.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(parts) > 0 {
		g.proved = sent
	}
	for ; len(parts) > 0; parts = parts[4:] {
		db, _ := strconv.Atoi(parts[0])
		g.canaryMissed = g.canaryMissed || g.canaries[db].isMissed(parts[1], got)
		g.canaries[db] = renewedAt(parts[2], sent)
		field := marker.InDatabase(nonce, db)
		n, _ := strconv.ParseInt(parts[3], 10, 64)
		g.older = g.older || n < before[field]
		g.ages.saw(field, n)
	}
	return nil
}
