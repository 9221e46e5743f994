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

// maxTTLTracker holds this proxy's knowledge of the longest TTL in use. A majority of the masters
// records a TTL before it is first used. So a quarantine that waits for the longest lease lasts no
// longer than necessary.
type maxTTLTracker struct {
	masters int
	// limit is a time.Duration that only grows. The tracker assumes it if no record is known, and
	// for locks without expiry.
	limit atomic.Int64
	// maxRecordedTTL is a time.Duration that a majority of the masters has certainly recorded.
	// Grants of at most this TTL need no new record.
	maxRecordedTTL atomic.Int64

	mu sync.Mutex
	// largestTTL is the largest credible record that this proxy has seen or written.
	largestTTL time.Duration
	// records holds the records of all masters by index, votingRecords the records of the masters
	// that vote.
	records, votingRecords map[int]time.Duration
	// isLargestTTLKnown is set once largestTTL is certainly the largest record that exists.
	isLargestTTLKnown bool
}

func newMaxTTLTracker(masters int, limit time.Duration) *maxTTLTracker {
	l := &maxTTLTracker{masters: masters, records: map[int]time.Duration{}, votingRecords: map[int]time.Duration{}}
	l.limit.Store(int64(limit))
	return l
}

// Limit returns the TTL that the tracker assumes if no record is known, and for locks without
// expiry.
func (l *maxTTLTracker) Limit() time.Duration { return time.Duration(l.limit.Load()) }

// RaiseLimit raises the limit, unless it is high enough already.
func (l *maxTTLTracker) RaiseLimit(limit time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.limit.Store(max(l.limit.Load(), int64(limit)))
}

// roundUpTTL rounds a TTL up, by less than a quarter, so that new records are rare. It returns the
// next of 1, 1.25, 1.5, 1.75 and 2 times a power of two, in milliseconds.
func roundUpTTL(ttl time.Duration) time.Duration {
	ms := uint64((ttl + time.Millisecond - 1) / time.Millisecond)
	if ms <= 4 {
		return time.Duration(ms) * time.Millisecond
	}
	unit := uint64(1) << (bits.Len64(ms-1) - 3)
	return time.Duration((ms+unit-1)/unit*unit) * time.Millisecond
}

// IsRecorded reports whether a grant with this TTL needs no new record.
func (l *maxTTLTracker) IsRecorded(ttl time.Duration) bool {
	return ttl <= time.Duration(l.maxRecordedTTL.Load())
}

// RoundUp returns the record for a TTL: rounded up, to at most the limit. A TTL above the limit
// stays unchanged.
func (l *maxTTLTracker) RoundUp(ttl time.Duration) time.Duration {
	return max(ttl, min(roundUpTTL(ttl), l.Limit()))
}

// Observe stores the record of a master. The record counts even if the master has no vote and may
// have lost later records, because a proxy wrote it. A record above the limit and above every other
// master's is not credible, and counts as no record. refuted is set if a read quorum of voting
// masters has credible records, and this record is not credible.
func (l *maxTTLTracker) Observe(i int, record time.Duration, votes bool) (refuted bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.records[i] = record
	credible := l.maxCredibleTTL()
	for _, r := range l.records {
		if r <= credible {
			l.largestTTL = max(l.largestTTL, r)
		}
	}
	if !votes {
		delete(l.votingRecords, i)
		return false
	}
	l.votingRecords[i] = record
	credibleCount := 0
	for _, r := range l.votingRecords {
		if r <= credible {
			credibleCount++
		}
	}
	enough := credibleCount >= vote.ReadQuorum(l.masters)
	l.isLargestTTLKnown = l.isLargestTTLKnown || enough
	if len(l.votingRecords) >= vote.Majority(l.masters) {
		ttls := slices.Sorted(maps.Values(l.votingRecords))
		recorded := ttls[len(ttls)-vote.Majority(l.masters)]
		l.maxRecordedTTL.Store(max(l.maxRecordedTTL.Load(), int64(recorded)))
	}
	return enough && record > credible
}

// maxCredibleTTL returns the longest TTL of a credible record: the limit, the largest record seen,
// or a TTL that two masters report.
func (l *maxTTLTracker) maxCredibleTTL() time.Duration {
	highest, second := time.Duration(0), time.Duration(0)
	for _, r := range l.records {
		highest, second = max(highest, r), max(second, min(highest, r))
	}
	return max(l.Limit(), l.largestTTL, second)
}

// NoteRecorded notes that a majority of the masters has stored a record.
func (l *maxTTLTracker) NoteRecorded(record time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.largestTTL = max(l.largestTTL, record)
	l.maxRecordedTTL.Store(max(l.maxRecordedTTL.Load(), int64(record)))
}

// NoteNoRecords notes that no proxy has recorded a TTL, because all masters are fresh.
func (l *maxTTLTracker) NoteNoRecords() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isLargestTTLKnown = true
}

// TTLInUse returns the longest TTL that can be in use: the largest record, but at least the limit
// while a larger record may exist.
func (l *maxTTLTracker) TTLInUse() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.isLargestTTLKnown {
		return max(l.largestTTL, l.Limit())
	}
	return l.largestTTL
}

// Bound returns the largest record seen. known reports whether it is certainly the largest record
// that exists.
func (l *maxTTLTracker) Bound() (largestTTL time.Duration, known bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.largestTTL, l.isLargestTTLKnown
}

// LongestLostTTL returns the longest TTL of the locks that a master in quarantine may have lost.
// TTLs seen since the quarantine began count, too, because they may have been in use before.
func (l *maxTTLTracker) LongestLostTTL(r marker.Record) time.Duration {
	if r.IsFinal() {
		return r.Bound
	}
	if r.Bounded {
		return max(r.Bound, l.LargestRecord())
	}
	return l.TTLInUse()
}

// LargestRecord returns the largest record seen, even if a larger one may exist.
func (l *maxTTLTracker) LargestRecord() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.largestTTL
}
