package quorum

import (
	"context"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// DefaultMaxTTL is the longest TTL that locks are taken to have where Options does not
// say.
const DefaultMaxTTL = 24 * time.Hour

// longestTTL is what is known of the longest TTL in use. It is recorded on a majority
// of the masters before it is first used, so that a quarantine by lease need not last
// longer.
type longestTTL struct {
	masters int
	// limit is what is assumed where no record is known, and for locks without expiry.
	limit time.Duration
	// recorded stands on a majority of the masters for sure: up to it a grant needs no
	// record. It is a time.Duration.
	recorded atomic.Int64

	mu sync.Mutex
	// largest is the largest record ever seen or made.
	largest time.Duration
	// votes are the records of the masters that vote, by their number.
	votes map[int]time.Duration
	known bool
}

func newLongestTTL(masters int, limit time.Duration) *longestTTL {
	return &longestTTL{masters: masters, limit: limit, votes: map[int]time.Duration{}}
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

// saw takes the record of master i. One that does not vote may have forgotten it, but
// what it says was so.
func (l *longestTTL) saw(i int, record time.Duration, votes bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.largest = max(l.largest, record)
	if !votes {
		delete(l.votes, i)
		return
	}
	l.votes[i] = record
	if len(l.votes) > l.masters-Majority(l.masters) {
		l.known = true // they meet every majority that a record stands on
	}
	if len(l.votes) >= Majority(l.masters) {
		var all []time.Duration
		for _, r := range l.votes {
			all = append(all, r)
		}
		slices.Sort(all)
		l.raised(all[len(all)-Majority(l.masters)])
	}
}

// made takes a record that now stands on a majority.
func (l *longestTTL) made(record time.Duration) {
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

// none says that nothing was ever recorded: all masters are fresh.
func (l *longestTTL) none() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known = true
}

// inUse is the longest TTL that can be in use: the largest record known, or the limit
// where none is.
func (l *longestTTL) inUse() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.known {
		return max(l.largest, l.limit)
	}
	return l.largest
}

// seen is the largest record, whether or not it is known to be the largest there is.
func (l *longestTTL) seen() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.largest
}

// record makes sure that the longest TTL in use, on a majority of the masters, is not
// less than that of the change.
func (c *Cluster) record(ctx context.Context, change Change) error {
	ttl := change.longest(c.longest.limit)
	if c.unguarded || ttl <= time.Duration(c.longest.recorded.Load()) {
		return nil
	}
	if up(c.masters) < Majority(len(c.masters)) {
		// Nothing would come of it, but the masters in quarantine would wait for that TTL.
		if _, err := c.Read(ctx, Key{Name: longestKey}); err != nil {
			return err
		}
	}
	ttl = max(ttl, min(coarse(ttl), c.longest.limit))
	if _, err := c.begin(recordLongest(ttl)).commit(ctx); err != nil {
		return err
	}
	c.longest.made(ttl)
	return nil
}

// recordLongest raises the record to ttl where it is less.
func recordLongest(ttl time.Duration) Change {
	return Change{kind: kindPlain, key: Key{Name: longestKey}, args: []any{"EVAL", longestScript.src, 0, millis(ttl)}}
}

// longest is the longest TTL that the change gives; a lock without expiry has limit.
func (c Change) longest(limit time.Duration) time.Duration {
	switch c.kind {
	case kindAcquire, kindExtend:
		return finite(c.ttl, limit)
	case kindEdit:
		longest := time.Duration(0)
		for _, e := range c.edits {
			if e.Now.Present && !e.KeepLeft {
				longest = max(longest, finite(e.Now.Left, limit))
			}
		}
		return longest
	default:
		return 0
	}
}

func finite(ttl, limit time.Duration) time.Duration {
	if ttl < 0 {
		return limit
	}
	return ttl
}
