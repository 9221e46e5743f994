package guard

import (
	"context"
	"strconv"
	"time"

	"redlock-proxy/quorum/guard/marker"
	"redlock-proxy/quorum/guard/script"
)

// expectedCanary returns the canary that a check must find: the canary that was known before the
// check was sent, with its present expiry. A newer canary may have been created after the check.
func (g *Guard) expectedCanary(p *probe) canary {
	if current := g.canaries[p.db]; current.value == p.knownCanary.value {
		return current
	}
	return p.knownCanary
}

// renewCanaries renews the canaries in all databases of a master with this marker. It also records
// whether a canary was missing, and each database's sequence number.
func (g *Guard) renewCanaries(ctx context.Context, markerText, nonce string) error {
	seqsBefore := g.currentSeqs()
	sent := time.Now()
	parts, err := runTexts(ctx, g.Conn, 0, 4, script.RenewCanaries,
		markerText, marker.NewNonce(), marker.FormatMillis(canaryTTL), nonce)
	if err != nil {
		return err
	}
	got := time.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(parts) > 0 {
		g.lastProof = sent
	}
	for ; len(parts) > 0; parts = parts[4:] {
		db, _ := strconv.Atoi(parts[0])
		g.canaryMissed = g.canaryMissed || g.canaries[db].isMissed(parts[1], got)
		g.canaries[db] = newCanary(parts[2], sent)
		field := marker.AppendDatabase(nonce, db)
		n, _ := strconv.ParseInt(parts[3], 10, 64)
		g.seqWentBack = g.seqWentBack || n < seqsBefore[field]
		g.seqs.raise(field, n)
	}
	return nil
}
