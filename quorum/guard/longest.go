package guard

import (
	"maps"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"redlock-proxy/quorum/guard/marker"
	"redlock-proxy/quorum/vote"
)

// longestTTL is what is known of the longest TTL in use. It is recorded on a majority
// of the masters before it is first used, so that a quarantine by lease need not last
// longer.
type longestTTL struct {
	masters int
	// limit is what is assumed where no record is known, and for locks without expiry. It is a
	// time.Duration, and only ever grows.
	limit atomic.Int64
	// recorded is on a majority of the masters for sure: up to it a grant needs no
	// record. It is a time.Duration.
	recorded atomic.Int64

	mu sync.Mutex
	// largest is the largest record ever seen or made, of those that are credible.
	largest time.Duration
	// records are those of all masters, by their number; votes are those of the masters that vote.
	records, votes map[int]time.Duration
	known          bool
}

// newLongest knows of none, as yet, of so many masters; limit is what is taken for it then.
func newLongest(masters int, limit time.Duration) *longestTTL {
	l := &longestTTL{masters: masters, records: map[int]time.Duration{}, votes: map[int]time.Duration{}}
	l.limit.Store(int64(limit))
	return l
}

// Limit is what is assumed where no record is known, and for locks without expiry.
func (l *longestTTL) Limit() time.Duration { return time.Duration(l.limit.Load()) }

// RaiseLimit raises it, unless it is as long already.
func (l *longestTTL) RaiseLimit(limit time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.limit.Store(max(l.limit.Load(), int64(limit)))
}

// coarse rounds a TTL up, by less than a quarter, so that records are rare: to the next
// of 1, 1.25, 1.5, 1.75 and 2 times a power of two, in milliseconds.
func coarse(ttl time.Duration) time.Duration {
	ms := uint64((ttl + time.Millisecond - 1) / time.Millisecond)
	if ms <= 4 {
		return time.Duration(ms) * time.Millisecond
	}
	unit := uint64(1) << (bits.Len64(ms-1) - 3)
	return time.Duration((ms+unit-1)/unit*unit) * time.Millisecond
}

// IsRecorded reports whether a grant of that TTL needs no record any more.
func (l *longestTTL) IsRecorded(ttl time.Duration) bool {
	return ttl <= time.Duration(l.recorded.Load())
}

// RoundedUp is the record for a TTL: rounded up, but not beyond the limit for its sake.
func (l *longestTTL) RoundedUp(ttl time.Duration) time.Duration {
	return max(ttl, min(coarse(ttl), l.Limit()))
}

// Saw takes the record of master i. One that does not vote may have forgotten later ones, but its
// record was made: unless it is above the limit, and above that of any other master. Then it counts
// as one without a record, which is returned once the others are enough to know better.
func (l *longestTTL) Saw(i int, record time.Duration, votes bool) (refuted bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.records[i] = record
	credible := l.credible()
	for _, r := range l.records {
		if r <= credible {
			l.largest = max(l.largest, r)
		}
	}
	if !votes {
		delete(l.votes, i)
		return false
	}
	l.votes[i] = record
	believed := 0
	for _, r := range l.votes {
		if r <= credible {
			believed++
		}
	}
	enough := believed >= vote.ReadQuorum(l.masters)
	l.known = l.known || enough
	if len(l.votes) >= vote.Majority(l.masters) {
		all := slices.Sorted(maps.Values(l.votes))
		l.raised(all[len(all)-vote.Majority(l.masters)])
	}
	return enough && record > credible
}

// credible is up to which TTL records are believed: the limit, or what was seen, or what two
// masters say.
func (l *longestTTL) credible() time.Duration {
	highest, second := time.Duration(0), time.Duration(0)
	for _, r := range l.records {
		highest, second = max(highest, r), max(second, min(highest, r))
	}
	return max(l.Limit(), l.largest, second)
}

// Made takes a record that is now on a majority.
func (l *longestTTL) Made(record time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.largest = max(l.largest, record)
	l.raised(record)
}

func (l *longestTTL) raised(record time.Duration) {
	if int64(record) > l.recorded.Load() {
		l.recorded.Store(int64(record))
	}
}

// None notes that nothing was ever recorded: all masters are fresh.
func (l *longestTTL) None() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known = true
}

// InUse is the longest TTL that can be in use: the largest record known, or the limit
// where none is.
func (l *longestTTL) InUse() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.known {
		return max(l.largest, l.Limit())
	}
	return l.largest
}

// Bound is the largest record seen, and whether it is known to be the largest there is.
func (l *longestTTL) Bound() (largest time.Duration, known bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.largest, l.known
}

// Forgotten is the longest TTL that anything which a master in quarantine may have forgotten
// was granted with. What was seen since counts as well: it may have been in use before.
func (l *longestTTL) Forgotten(r marker.Record) time.Duration {
	if r.IsFinal() {
		return r.Bound
	}
	if r.Bounded {
		return max(r.Bound, l.Seen())
	}
	return l.InUse()
}

// Seen is the largest record, whether or not it is known to be the largest there is.
func (l *longestTTL) Seen() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.largest
}
