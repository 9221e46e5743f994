package guard

import (
	"context"
	"strconv"
	"time"

	"redlock-proxy/quorum/guard/marker"
	"redlock-proxy/quorum/guard/script"
)

// expectedCanary returns the canary whose absence a check may notice: the canary that was known
// before the check was sent, with its present expiry. A canary made since may be later than the
// check.
func (g *Guard) expectedCanary(p *look) canary {
	if now := g.canaries[p.db]; now.value == p.known.value {
		return now
	}
	return p.known
}

// renewCanaries renews the canaries in all databases of a master with this marker. It records
// whether one was missing, and the sequence numbers.
func (g *Guard) renewCanaries(ctx context.Context, markerText, nonce string) error {
	before := g.currentSeqs()
	sent := time.Now()
	parts, err := runTexts(ctx, g.Conn, 0, 4, script.RenewCanaries,
		markerText, g.set.nonce(), marker.Millis(canaryLife), nonce)
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
		g.seqs.raise(field, n)
	}
	return nil
}
