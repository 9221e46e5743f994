package guard

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"redlock-proxy/quorum/guard/marker"
	"redlock-proxy/quorum/guard/script"
)

// A proxy publishes the sequence numbers that it has seen of one master on the other masters.
// GUARD.md (The sequence) states what the numbers prove.

// knownState returns the highest known number of a sequence, and the canary of its database.
func (g *Guard) knownState(field string, db int) (seq int64, c canary) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return max(g.seqs[field], script.FirstSeq), g.canaries[db]
}

// currentSeqs returns the known sequences of the last marker under which the master voted.
func (g *Guard) currentSeqs() writeSeqs {
	g.mu.Lock()
	defer g.mu.Unlock()
	seqs := writeSeqs{}
	for field, n := range g.seqs {
		if g.lastTrust.Nonce != "" && strings.HasPrefix(field, g.lastTrust.Nonce+"@") {
			seqs[field] = n
		}
	}
	return seqs
}

// publishSeqs stores the known numbers of the other masters on this master.
func (g *Guard) publishSeqs(ctx context.Context) error {
	otherSeqs := writeSeqs{}
	for _, other := range g.set.guards {
		if other != g {
			maps.Copy(otherSeqs, other.currentSeqs())
		}
	}
	pairs := g.published.takeDuePairs(otherSeqs, time.Now())
	if len(pairs) == 0 {
		return nil
	}
	if _, err := runInt(ctx, g.Conn, script.PublishSeqs, append([]any{marker.FormatMillis(seqTTL)}, pairs...)...); err != nil {
		clear(g.published) // the numbers may not have arrived
		return err
	}
	return nil
}

// publishFirstSeq stores the first number of a nonce's sequence on the other masters, before this
// master is admitted under that nonce. So from this master's first vote on, the other masters can
// confirm that it has all its data. This holds even if every proxy stops before the next checkup. A
// failure is harmless, because publishSeqs stores the number within a second.
func (g *Guard) publishFirstSeq(ctx context.Context, nonce string) {
	g.publishOnOtherMasters(ctx, nonce, script.FirstSeq)
}

// publishRetiredSeqs retires the nonce of a replaced marker, and of a claim that ended, except
// keptNonce. For this it stores on the other masters a number that no sequence reaches. So no proxy
// trusts a disk that is set back to the old marker.
func (g *Guard) publishRetiredSeqs(ctx context.Context, v Report, keptNonce string) {
	m, r := v.Marker.Value, v.Record.Value
	// If the marker has a different address, another master may vote under the same nonce.
	if v.Marker.Valid && m.Nonce != keptNonce && (m.Address == g.Name || m.Nonce == g.lastNonce()) {
		g.publishOnOtherMasters(ctx, m.Nonce, retiredSeq)
	}
	if r.Claim != "" && r.Claim != marker.NoClaim && r.Claim != keptNonce {
		g.publishOnOtherMasters(ctx, r.Claim, retiredSeq)
	}
}

// lastNonce returns the nonce of the last marker under which this proxy counted the master's votes.
func (g *Guard) lastNonce() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.lastTrust.Nonce
}

// publishOnOtherMasters stores a number of this master's sequence in database 0 on the other
// masters.
func (g *Guard) publishOnOtherMasters(ctx context.Context, nonce string, n int64) {
	countParallel(g.set.guards, func(other *Guard) bool {
		if other == g || !other.acceptsSeqs() {
			return false
		}
		_, err := runInt(ctx, other.Conn, script.PublishSeqs, marker.FormatMillis(seqTTL), marker.AppendDatabase(nonce, 0), n)
		return err == nil
	})
}

// acceptsSeqs reports whether numbers may be stored on the master: it replies, and need not stay
// empty.
func (g *Guard) acceptsSeqs() bool {
	if g.IsDown() {
		return false
	}
	cause := g.Quarantine()
	return cause == nil || cause.Cause != Empty && cause.Cause != AwaitsFreshStart && cause.Cause != Unverified
}

// peerSeqsOf asks all other masters that are up, with or without a vote, for the published numbers
// of the nonce's sequences. It returns the highest numbers.
func (g *Guard) peerSeqsOf(ctx context.Context, nonce string, ownSeqs writeSeqs) peerSeqs {
	w := peerSeqs{highestSeqs: writeSeqs{}}
	var fields []any
	for field := range ownSeqs {
		fields = append(fields, field)
	}
	for _, other := range g.set.guards {
		if other == g || other.IsDown() {
			continue
		}
		parts, err := runTexts(ctx, other.Conn, len(fields), 0, script.ReadPublishedSeqs, fields...)
		if err != nil {
			continue
		}
		for i, text := range parts {
			n, _ := strconv.ParseInt(text, 10, 64)
			w.highestSeqs.raise(fmt.Sprint(fields[i]), n)
			if n > 0 && fields[i] == marker.AppendDatabase(nonce, 0) {
				w.masters++
			}
		}
	}
	return w
}

// ownSeqs returns the master's own numbers of the sequences of a nonce. A missing number counts as
// zero if its database has a marker.
func (g *Guard) ownSeqs(ctx context.Context, nonce string) (writeSeqs, error) {
	parts, err := runTexts(ctx, g.Conn, 0, 2, script.ReadSequences, nonce)
	if err != nil {
		return nil, err
	}
	seqs := writeSeqs{}
	for ; len(parts) > 0; parts = parts[2:] {
		n, _ := strconv.ParseInt(parts[1], 10, 64)
		seqs[parts[0]] = n
	}
	return seqs, nil
}
