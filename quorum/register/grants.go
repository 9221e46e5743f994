package register

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"redlock-proxy/quorum/cell"
)

// grant records a granted lock. Only one release uses it to delete the attempt in one round trip.
type grant struct {
	attempt cell.Attempt
	// ballotVersion is set if a ballot granted the lock. Then a ballot has to release it.
	ballotVersion string
	token         string
	// holder identifies the client, and leaseStart is the start of its lease, for Holdings.
	holder     any
	leaseStart time.Time
	ttl        time.Duration
	// heldSince is the time at which this proxy granted the lock, before any EXTEND. It is zero if
	// another proxy granted the lock.
	heldSince time.Time
	// expiresAt is the time at which the latest lease expires; zero means never.
	expiresAt time.Time
	// holders marks the masters that certainly took the lock, isPending the masters that may still
	// take it.
	holders, isPending []bool
	// mayArriveLate is set if the lock may still arrive at a master at any time, because a
	// connection broke. Then a ballot releases the lock. A removal by ballot stays visible for a
	// while, but a deleted cell looks like a cell that the lock never reached.
	mayArriveLate bool
	// replaced is set once the key holds another value.
	replaced bool
	// mayBeExtended is set if a client may know of a longer lease of this version.
	mayBeExtended bool
}

// grants holds the grants by key until their leases expire, even if other proxies removed the
// locks. It evicts the oldest grants if all grants together take too much memory.
type grants struct {
	mu      sync.Mutex
	byKey   map[string]*grant
	pruning pruning
	// evictedUntil is the start of the latest lease whose grant was evicted.
	evictedUntil time.Time
}

// maxGrantBytes limits the memory of grants after a search for expired grants; between two searches
// this memory may double. grantSize is the memory of a grant in addition to its key and its token.
const maxGrantBytes, grantSize = 48 << 20, 344

func newGrant(t TakeOptions, i int, a cell.Attempt, leaseStart time.Time, n int) *grant {
	entry := &grant{attempt: a, token: t.Tokens[i], holder: t.Holder, leaseStart: leaseStart, heldSince: leaseStart, ttl: t.TTL}
	marks := make([]bool, 2*n)
	entry.holders, entry.isPending = marks[:n:n], marks[n:]
	if t.TTL >= 0 {
		entry.expiresAt = leaseStart.Add(t.TTL)
	}
	return entry
}

func (g *grants) put(key string, entry *grant, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if putAndPrune(&g.pruning, g.byKey, key, entry, now) && g.size() > maxGrantBytes {
		g.evict()
	}
}

// size returns the memory that the grants take after a search for expired grants.
func (g *grants) size() int { return g.pruning.bytes + grantSize*len(g.byKey) }

// evict removes the oldest grants, so that the remaining grants take about half of the limit. A
// ballot releases a lock without a grant. evict sorts only a sample of the grants, because commands
// wait for mu meanwhile.
func (g *grants) evict() {
	for g.size() > maxGrantBytes {
		until := g.leaseStartAt(float64(g.size()-maxGrantBytes/2) / float64(g.size()))
		for key, entry := range g.byKey {
			if !entry.leaseStart.After(until) {
				g.pruning.bytes -= len(key) + entry.bytes()
				delete(g.byKey, key)
			}
		}
		g.raiseEvictedUntil(until)
	}
	g.pruning.entries = len(g.byKey)
}

// sampleSize is the number of grants in a sample. A share of a sample rarely differs from the share
// of all grants by more than 0.05.
const sampleSize = 1000

// leaseStartAt returns the time at or before which about this share of the leases began, by a
// sample. The share is at least 0 and less than 1, and there is a grant.
func (g *grants) leaseStartAt(share float64) time.Time {
	starts := make([]time.Time, 0, sampleSize)
	for _, entry := range g.byKey { // in random order
		if starts = append(starts, entry.leaseStart); len(starts) == sampleSize {
			break
		}
	}
	slices.SortFunc(starts, time.Time.Compare)
	return starts[int(share*float64(len(starts)))]
}

// noteEvictedUntil notes that grants of leases that began at leaseStart or earlier may have been
// evicted.
func (g *grants) noteEvictedUntil(leaseStart time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.raiseEvictedUntil(leaseStart)
}

func (g *grants) raiseEvictedUntil(leaseStart time.Time) {
	if leaseStart.After(g.evictedUntil) {
		g.evictedUntil = leaseStart
	}
}

// MayHaveEvicted reports whether the grant of a lease that began at leaseStart may have been
// evicted. Then this proxy does not know whether another client has extended the lock since.
func (r *Register) MayHaveEvicted(leaseStart time.Time) bool {
	r.grants.mu.Lock()
	defer r.grants.mu.Unlock()
	return !leaseStart.After(r.grants.evictedUntil)
}

func (g *grant) isExpired(now time.Time) bool { return !g.expiresAt.IsZero() && now.After(g.expiresAt) }

func (g *grant) bytes() int { return len(g.token) }

func (g *grant) currentVersion() string { return cmp.Or(g.ballotVersion, string(g.attempt)) }

// find returns the grant of a key, or nil if the grant does not match, or its value was replaced.
// The caller may read only the fields that never change.
func (g *grants) find(key string, match func(*grant) bool) *grant {
	g.mu.Lock()
	defer g.mu.Unlock()
	if entry := g.byKey[key]; entry != nil && !entry.replaced && match(entry) {
		return entry
	}
	return nil
}

// take removes the grant that find returns. It returns nil if a ballot has to release the lock.
func (g *grants) take(key string, match func(*grant) bool) *grant {
	g.mu.Lock()
	defer g.mu.Unlock()
	entry := g.byKey[key]
	if entry == nil || entry.replaced || !match(entry) {
		return nil
	}
	delete(g.byKey, key)
	if entry.ballotVersion != "" || entry.mayArriveLate {
		return nil
	}
	return entry
}

func hasToken(token string) func(*grant) bool {
	return func(g *grant) bool { return g.token == token }
}

func hasVersion(version string) func(*grant) bool {
	return func(g *grant) bool { return g.currentVersion() == version }
}

// ForgetVersion forgets the grant of a version, because no client holds it. It returns false if a
// round may have extended this version: then the client that requested the extension holds the
// lock.
func (r *Register) ForgetVersion(key, version string) bool {
	g := &r.grants
	g.mu.Lock()
	defer g.mu.Unlock()
	switch entry := g.byKey[key]; {
	case entry == nil || entry.replaced || entry.currentVersion() != version:
	case entry.mayBeExtended:
		return false
	default:
		delete(g.byKey, key)
	}
	return true
}

// findToExtend returns the grant of a key with a token, and notes that a round will extend it.
func (g *grants) findToExtend(key, token string) *grant {
	return g.find(key, func(entry *grant) bool {
		entry.mayBeExtended = entry.mayBeExtended || entry.token == token
		return entry.token == token
	})
}

// RecordGrant records a version of a key in a keygroup, or of a holder, for TakeGrant. heldSince is
// the time at which this proxy granted the lock, or zero.
func (r *Register) RecordGrant(key, token, version string, ttl time.Duration, holder any, heldSince time.Time) {
	now := r.masters.Now()
	entry := newGrant(TakeOptions{Tokens: []string{token}, TTL: ttl, Holder: holder}, 0, "", now, r.n)
	entry.ballotVersion, entry.heldSince = version, heldSince
	r.grants.put(key, entry, now)
}

// HeldSince returns the time at which this proxy granted the lock of a key with a token. It returns
// the zero time if another proxy granted the lock, or if the lock has expired, as far as this proxy
// knows.
func (r *Register) HeldSince(key, token string) time.Time {
	now := r.masters.Now()
	r.grants.mu.Lock()
	defer r.grants.mu.Unlock()
	if entry := r.grants.byKey[key]; entry != nil && entry.token == token && !entry.isExpired(now) {
		return entry.heldSince
	}
	return time.Time{}
}

// GrantedTo returns the client to which this proxy granted a version of a key, and the start of its
// lease. It returns nil if this proxy granted no such version.
func (r *Register) GrantedTo(key, version string) (holder any, since time.Time) {
	if entry := r.grants.find(key, hasVersion(version)); entry != nil {
		return entry.holder, entry.leaseStart
	}
	return nil, time.Time{}
}

// TakeGrant removes the grant of a key with a token, and returns its version and remaining lease,
// or nothing if this proxy granted no such lock.
func (r *Register) TakeGrant(key, token string) (version string, timeLeft time.Duration) {
	entry := r.grants.find(key, hasToken(token))
	if entry == nil {
		return "", 0
	}
	r.grants.take(key, hasToken(token))
	return entry.currentVersion(), r.remainingLease(entry)
}

// CopyGrants copies the grants of the register of the previous masters. Ballots release these
// locks, because this proxy does not know which of the new masters hold them.
func (r *Register) CopyGrants(previous *Register) {
	current, now := map[string]grant{}, r.masters.Now()
	previous.grants.mu.Lock()
	evictedUntil := previous.grants.evictedUntil
	for key, entry := range previous.grants.byKey {
		if !entry.replaced && !entry.isExpired(now) {
			current[key] = *entry
		}
	}
	previous.grants.mu.Unlock()
	r.grants.noteEvictedUntil(evictedUntil)
	for key, entry := range current {
		entry.ballotVersion, entry.holders, entry.isPending = entry.currentVersion(), make([]bool, r.n), make([]bool, r.n)
		r.grants.put(key, &entry, now)
	}
}

// setLease records a longer lease.
func (g *grants) setLease(key string, a cell.Attempt, leaseEnd time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	entry := g.byKey[key]
	if entry == nil || entry.attempt != a || entry.expiresAt.IsZero() {
		return
	}
	if leaseEnd.IsZero() || leaseEnd.After(entry.expiresAt) {
		entry.expiresAt = leaseEnd
	}
}

// markReplaced notes that a ballot replaced or removed the value of a key.
func (g *grants) markReplaced(key string, present bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if entry := g.byKey[key]; entry != nil {
		entry.replaced = true
	}
	if !present {
		delete(g.byKey, key)
	}
}

// noteReply records a later reply to a take, even while the lock is being released.
func (g *grants) noteReply(entry *grant, master int, reply Reply) {
	g.mu.Lock()
	defer g.mu.Unlock()
	entry.noteReply(master, reply)
}

// beginRetry notes that a lock is sent to a master again. It returns the remaining lease in whole
// milliseconds, cell.NoExpiry, or 0 if the lock is no longer held, as far as this proxy knows.
func (g *grants) beginRetry(key string, entry *grant, master int, now time.Time) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	left := entry.expiresAt.Sub(now).Truncate(time.Millisecond)
	switch {
	case g.byKey[key] != entry, entry.replaced, !entry.expiresAt.IsZero() && left <= 0:
		return 0
	case entry.expiresAt.IsZero():
		left = cell.NoExpiry
	}
	entry.isPending[master] = true
	return left
}

func (g *grants) snapshot(entry *grant) grant {
	g.mu.Lock()
	defer g.mu.Unlock()
	copied, n := *entry, len(entry.holders)
	marks := append(append(make([]bool, 0, 2*n), entry.holders...), entry.isPending...)
	copied.holders, copied.isPending = marks[:n:n], marks[n:]
	return copied
}

func (g *grant) noteReply(master int, reply Reply) {
	g.holders[master] = g.holders[master] || reply.isYes()
	g.isPending[master] = reply.State == Waiting || reply.State == Unknown
	g.mayArriveLate = g.mayArriveLate || reply.State == Unknown
}

// Guess returns the token with which this proxy took a key, or the value that its last ballot put,
// unless this proxy knows of a newer value.
func (r *Register) Guess(key string) (token string, ok bool) {
	if entry := r.grants.find(key, func(*grant) bool { return true }); entry != nil {
		return entry.token, true
	}
	return r.promises.value(key, r.masters.Now())
}
