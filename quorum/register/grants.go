package register

import (
	"cmp"
	"sync"
	"time"

	"redlock-proxy/quorum/cell"
)

// grant records a lock that this proxy granted. A release that names the attempt takes one round
// trip. Only one release may name it, once.
type grant struct {
	attempt cell.Attempt
	// ballotVersion is set if a ballot granted the lock. Then a ballot releases it, too.
	ballotVersion string
	token         string
	// holder identifies the client that took the lock, and since is when it did, for Holdings.
	holder any
	since  time.Time
	ttl    time.Duration
	// ends is when the last lease of the lock expires, zero for never.
	ends time.Time
	// holders marks the masters that certainly took the lock, by their number. pending marks the
	// masters where it may still arrive.
	holders, pending []bool
	// mayArriveLate is set if the lock may still arrive at a master at any time, because the
	// connection that carried it broke. Then a ballot releases the lock. What the ballot leaves
	// stays for a while, but a deleted cell looks like one that never arrived.
	mayArriveLate bool
	// replaced is set once the key holds another value.
	replaced bool
	// mayBeExtended is set if a client was told, or may have been told, of a longer lease of this
	// version.
	mayBeExtended bool
}

// grants holds the grants by key. A lock that ended elsewhere stays until its lease expires.
type grants struct {
	mu      sync.Mutex
	byKey   map[string]*grant
	pruning pruning
}

// newGrant returns a grant of key number i, with a lease that began at since, on n masters.
func newGrant(t Terms, i int, a cell.Attempt, since time.Time, n int) *grant {
	entry := &grant{attempt: a, token: t.Tokens[i], holder: t.Holder, since: since, ttl: t.TTL}
	marks := make([]bool, 2*n)
	entry.holders, entry.pending = marks[:n:n], marks[n:]
	if t.TTL >= 0 {
		entry.ends = since.Add(t.TTL)
	}
	return entry
}

func (g *grants) put(key string, entry *grant, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	putAndPrune(&g.pruning, g.byKey, key, entry, now)
}

func (g *grant) expired(now time.Time) bool { return !g.ends.IsZero() && now.After(g.ends) }

func (g *grant) bytes() int { return len(g.token) }

// currentVersion returns the version of the value that the grant put.
func (g *grant) currentVersion() string { return cmp.Or(g.ballotVersion, string(g.attempt)) }

// find returns the grant of a key if it satisfies a condition and its value was not replaced, or
// nil. The caller may read the fields that never change.
func (g *grants) find(key string, is func(*grant) bool) *grant {
	g.mu.Lock()
	defer g.mu.Unlock()
	if entry := g.byKey[key]; entry != nil && !entry.replaced && is(entry) {
		return entry
	}
	return nil
}

// take removes and returns the grant that find would return. Only one caller gets it. take returns
// nil if a ballot has to release the lock.
func (g *grants) take(key string, is func(*grant) bool) *grant {
	g.mu.Lock()
	defer g.mu.Unlock()
	entry := g.byKey[key]
	if entry == nil || entry.replaced || !is(entry) {
		return nil
	}
	delete(g.byKey, key)
	if entry.ballotVersion != "" || entry.mayArriveLate {
		return nil
	}
	return entry
}

// withToken returns a condition that a grant with this token satisfies.
func withToken(token string) func(*grant) bool {
	return func(g *grant) bool { return g.token == token }
}

// withVersion returns a condition that a grant of this version satisfies.
func withVersion(version string) func(*grant) bool {
	return func(g *grant) bool { return g.currentVersion() == version }
}

// ForgetVersion forgets that this proxy granted a version of a key, because no client holds it. It
// returns false if a round may have extended this very version. Then the client that asked for the
// extension holds the lock.
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

// findToExtend returns the grant of a key with a token, and notes that one round is about to extend
// it.
func (g *grants) findToExtend(key, token string) *grant {
	return g.find(key, func(entry *grant) bool {
		entry.mayBeExtended = entry.mayBeExtended || entry.token == token
		return entry.token == token
	})
}

// Remember notes a version of a key that a change of a cell with several keys granted. Forget
// returns it.
func (r *Register) Remember(key, token, version string, ttl time.Duration) {
	now := r.masters.Now()
	entry := newGrant(Terms{Tokens: []string{token}, TTL: ttl}, 0, "", now, r.n)
	entry.ballotVersion = version
	r.grants.put(key, entry, now)
}

// Forget forgets the grant of a key to a token. It returns the version and the remaining lease, or
// nothing if this proxy granted no such lock.
func (r *Register) Forget(key, token string) (version string, left time.Duration) {
	entry := r.grants.find(key, withToken(token))
	if entry == nil {
		return "", 0
	}
	r.grants.take(key, withToken(token))
	return entry.currentVersion(), r.leaseLeft(entry)
}

// Inherit copies the grants of another register, which used the previous masters. A ballot releases
// the inherited locks, because it is unknown which of the new masters hold them.
func (r *Register) Inherit(before *Register) {
	known, now := map[string]grant{}, r.masters.Now()
	before.grants.mu.Lock()
	for key, entry := range before.grants.byKey {
		if !entry.replaced && !entry.expired(now) {
			known[key] = *entry
		}
	}
	before.grants.mu.Unlock()
	for key, entry := range known {
		entry.ballotVersion, entry.holders, entry.pending = entry.currentVersion(), make([]bool, r.n), make([]bool, r.n)
		r.grants.put(key, &entry, now)
	}
}

// setLease notes a longer lease.
func (g *grants) setLease(key string, a cell.Attempt, ends time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	entry := g.byKey[key]
	if entry == nil || entry.attempt != a || entry.ends.IsZero() {
		return
	}
	if ends.IsZero() || ends.After(entry.ends) {
		entry.ends = ends
	}
}

// markReplaced notes that the value of a key was replaced, or removed by a ballot.
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

// noteReply notes the reply of one more master to a lock, even while the lock is being released.
func (g *grants) noteReply(entry *grant, master int, reply Reply) {
	g.mu.Lock()
	defer g.mu.Unlock()
	entry.noteReply(master, reply)
}

// beginRetry notes that a lock is on its way to a master again. It returns the remaining lease in
// whole milliseconds, or cell.Endless. It returns 0 if, as far as this proxy knows, the lock is not
// held any more.
func (g *grants) beginRetry(key string, entry *grant, master int, now time.Time) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	left := entry.ends.Sub(now).Truncate(time.Millisecond)
	switch {
	case g.byKey[key] != entry, entry.replaced, !entry.ends.IsZero() && left <= 0:
		return 0
	case entry.ends.IsZero():
		left = cell.Endless
	}
	entry.pending[master] = true
	return left
}

// snapshot returns a copy of a grant.
func (g *grants) snapshot(entry *grant) grant {
	g.mu.Lock()
	defer g.mu.Unlock()
	now, n := *entry, len(entry.holders)
	marks := append(append(make([]bool, 0, 2*n), entry.holders...), entry.pending...)
	now.holders, now.pending = marks[:n:n], marks[n:]
	return now
}

// noteReply notes the reply of a master to the attempt.
func (g *grant) noteReply(master int, reply Reply) {
	g.holders[master] = g.holders[master] || reply.yes()
	g.pending[master] = reply.State == Waiting || reply.State == Unknown
	g.mayArriveLate = g.mayArriveLate || reply.State == Unknown
}

// Guess returns the token under which this proxy took a key, or the value that its last ballot put
// there, unless it knows of a newer value.
func (r *Register) Guess(key string) (token string, ok bool) {
	if entry := r.grants.find(key, func(*grant) bool { return true }); entry != nil {
		return entry.token, true
	}
	return r.promises.value(key, r.masters.Now())
}
