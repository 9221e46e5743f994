package guard

import (
	"strings"
	"time"

	"redlock-proxy/quorum/guard/marker"
	"redlock-proxy/quorum/vote"
)

const (
	// ageKept is how long a number that was left on another master stays there.
	ageKept = 24 * time.Hour
	// retiredAge is above every number that a sequence reaches, and exact in Lua.
	retiredAge = 1 << 53
	// ageRenewed is after how long it is left again although it did not grow.
	ageRenewed = time.Hour
)

// ages are the highest numbers seen of sequences, by their fields.
type ages map[string]int64

func (a ages) saw(field string, n int64) { a[field] = max(a[field], n) }

// isOlder reports whether data with these numbers are older than what was seen.
func (a ages) isOlder(than ages, nonce string) bool {
	for field, n := range than {
		if strings.HasPrefix(field, nonce+"@") && a[field] < n {
			return true
		}
	}
	return false
}

// agesLeft is what was left on a master, and when.
type agesLeft map[string]struct {
	n  int64
	at time.Time
}

// due are the fields and numbers that are to be left there, and notes them as left.
func (l agesLeft) due(known ages, now time.Time) []any {
	var words []any
	for field, n := range known {
		if last, there := l[field]; !there || last.n < n || now.Sub(last.at) > ageRenewed {
			words = append(words, field, n)
			last.n, last.at = n, now
			l[field] = last
		}
	}
	return words
}

// elsewhere is what the other masters have of a sequence: on how many of them anything
// is kept for database 0, and the highest numbers.
type elsewhere struct {
	masters int
	ages    ages
}

// supports reports whether a master that holds these numbers under a nonce has all its
// data, as far as is known: of n masters, q−1 others have a number, and none a higher one.
func (w elsewhere) supports(has ages, nonce string, n int) bool {
	_, begun := has[marker.InDatabase(nonce, 0)]
	return begun && w.masters >= vote.Majority(n)-1 && !has.isOlder(w.ages, nonce)
}
