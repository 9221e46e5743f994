package guard

import (
	"strings"
	"time"

	"redlock-proxy/quorum/guard/marker"
	"redlock-proxy/quorum/vote"
)

const (
	// seqTTL is how long another master keeps a published number.
	seqTTL = 24 * time.Hour
	// retiredSeq is above every number that a sequence reaches, and exact in Lua.
	retiredSeq = 1 << 53
	// seqRenewal is the time after which an unchanged number is published again.
	seqRenewal = time.Hour
)

// writeSeqs holds the highest known number of each sequence, by field.
type writeSeqs map[string]int64

func (a writeSeqs) raise(field string, n int64) { a[field] = max(a[field], n) }

// isBehind reports whether data with these numbers are older than data with the known ones.
func (a writeSeqs) isBehind(than writeSeqs, nonce string) bool {
	for field, n := range than {
		if strings.HasPrefix(field, nonce+"@") && a[field] < n {
			return true
		}
	}
	return false
}

// publishedSeqs holds the numbers that were published on a master, and when.
type publishedSeqs map[string]struct {
	n  int64
	at time.Time
}

// due returns the fields and numbers to publish now, and records them as published.
func (l publishedSeqs) due(known writeSeqs, now time.Time) []any {
	var words []any
	for field, n := range known {
		if last, there := l[field]; !there || last.n < n || now.Sub(last.at) > seqRenewal {
			words = append(words, field, n)
			last.n, last.at = n, now
			l[field] = last
		}
	}
	return words
}

// peerSeqs holds the numbers of a sequence that the other masters keep: the highest ones, and how
// many masters keep one for database 0.
type peerSeqs struct {
	masters int
	seqs    writeSeqs
}

// supports reports whether a master with these numbers under a nonce has all its data, as far as
// known: of n masters, at least q−1 other masters keep a number, and none a higher one.
func (w peerSeqs) supports(has writeSeqs, nonce string, n int) bool {
	_, begun := has[marker.InDatabase(nonce, 0)]
	return begun && w.masters >= vote.Majority(n)-1 && !has.isBehind(w.seqs, nonce)
}
