package guard

import (
	"strings"
	"time"

	"redlock-proxy/quorum/guard/marker"
	"redlock-proxy/quorum/vote"
)

const (
	// seqTTL is the time for which another master keeps a published number.
	seqTTL = 24 * time.Hour
	// retiredSeq is above every number that a sequence reaches. Lua can represent it exactly.
	retiredSeq = 1 << 53
	// seqRenewal is the time after which an unchanged number is published again.
	seqRenewal = time.Hour
)

// writeSeqs holds the highest known number of each sequence, by field.
type writeSeqs map[string]int64

// raise stores a number unless a higher one is known.
func (a writeSeqs) raise(field string, n int64) { a[field] = max(a[field], n) }

// isBehind reports whether data with these numbers are older than data with the known numbers.
func (a writeSeqs) isBehind(knownSeqs writeSeqs, nonce string) bool {
	for field, n := range knownSeqs {
		if strings.HasPrefix(field, nonce+"@") && a[field] < n {
			return true
		}
	}
	return false
}

// publishedSeqs holds the numbers that this proxy has published on a master, and the times.
type publishedSeqs map[string]struct {
	n  int64
	at time.Time
}

// takeDuePairs returns the fields and numbers to publish now, and records them as published.
func (l publishedSeqs) takeDuePairs(knownSeqs writeSeqs, now time.Time) []any {
	var pairs []any
	for field, n := range knownSeqs {
		if last, exists := l[field]; !exists || last.n < n || now.Sub(last.at) > seqRenewal {
			pairs = append(pairs, field, n)
			last.n, last.at = n, now
			l[field] = last
		}
	}
	return pairs
}

// peerSeqs holds the numbers of a nonce's sequences that the other masters keep.
type peerSeqs struct {
	// masters is the number of masters that keep a number for database 0.
	masters     int
	highestSeqs writeSeqs
}

// supports reports whether other masters confirm that a master with these numbers under a nonce has
// all its data. Together with this master, the masters that keep a number must be a majority of n,
// and none may keep a higher number.
func (w peerSeqs) supports(ownSeqs writeSeqs, nonce string, n int) bool {
	_, begun := ownSeqs[marker.AppendDatabase(nonce, 0)]
	return begun && w.masters >= vote.Majority(n)-1 && !ownSeqs.isBehind(w.highestSeqs, nonce)
}
