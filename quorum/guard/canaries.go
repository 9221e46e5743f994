package guard

import (
	"context"
	"strconv"
	"time"

	"redlock-proxy/quorum/guard/marker"
	"redlock-proxy/quorum/guard/script"
)

// knownTo is the canary that a look may miss: the one that was known before it left, for as long as
// is known by now. One that was made since may have come after it.
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
