package register

import (
	"cmp"
	"sync"
	"time"

	"redlock-proxy/quorum/cell"
)

// grant is what this proxy remembers of a lock that it granted: a release that names the
// attempt takes one round trip, and only one may, once.
type grant struct {
	attempt cell.Attempt
	// version is set where a ballot granted it: then it is released by ballot, too.
	version string
	token   string
	// holder is who took it, and since when, for Inspect.
	holder any
	since  time.Time
	ttl    time.Duration
	// ends is when the last lease of the lock ends, zero for never.
	ends time.Time
	// holders are the masters that took it for sure, by their number; at those of open it
	// may still arrive.
	holders, open []bool
	// stray is set where it may arrive at any time, since the connection broke on which it was
	// sent. Then a ballot releases it, whose removal stays for a while: a cell that was deleted
	// looks like one that never came.
	stray bool
	// replaced: the key holds another value by now.
	replaced bool
	// told: a client was, or may have been, told of a longer lease of this version.
	told bool
}

// grants are those by key. A lock that ended elsewhere stays until its lease is over.
type grants struct {
	mu    sync.Mutex
	byKey map[string]*grant
	swept sweeping
}

// newGrant is one of key number i, with a lease that began at since, on n masters.
func newGrant(t Terms, i int, a cell.Attempt, since time.Time, n int) *grant {
	one := &grant{attempt: a, token: t.Tokens[i], holder: t.Holder, since: since, ttl: t.TTL}
	marks := make([]bool, 2*n)
	one.holders, one.open = marks[:n:n], marks[n:]
	if t.TTL >= 0 {
		one.ends = since.Add(t.TTL)
	}
	return one
}

func (g *grants) put(key string, one *grant, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	keep(&g.swept, g.byKey, key, one, now)
}

func (g *grant) over(now time.Time) bool { return !g.ends.IsZero() && now.After(g.ends) }

func (g *grant) bytes() int { return len(g.token) }

// made is the version of the value that it put.
func (g *grant) made() string { return cmp.Or(g.version, string(g.attempt)) }

// find is the grant of a key that is so, or nil: not one that another value has replaced since.
// What it is from the beginning may be read.
func (g *grants) find(key string, is func(*grant) bool) *grant {
	g.mu.Lock()
	defer g.mu.Unlock()
	if one := g.byKey[key]; one != nil && !one.replaced && is(one) {
		return one
	}
	return nil
}

// take is find, and removes it: one alone gets it. It is nil, too, where a ballot has to release
// it.
func (g *grants) take(key string, is func(*grant) bool) *grant {
	g.mu.Lock()
	defer g.mu.Unlock()
	one := g.byKey[key]
	if one == nil || one.replaced || !is(one) {
		return nil
	}
	delete(g.byKey, key)
	if one.version != "" || one.stray {
		return nil
	}
	return one
}

// of is true of the grant with this token.
func of(token string) func(*grant) bool { return func(g *grant) bool { return g.token == token } }

// ofVersion is true of the grant of this version.
func ofVersion(version string) func(*grant) bool {
	return func(g *grant) bool { return g.made() == version }
}

// Disown forgets that this proxy granted a version of a key, since nobody holds it. It reports
// false if one round may have extended that very version: then the client that asked for that holds
// it.
func (r *Register) Disown(key, version string) bool {
	g := &r.grants
	g.mu.Lock()
	defer g.mu.Unlock()
	switch one := g.byKey[key]; {
	case one == nil || one.replaced || one.made() != version:
	case one.told:
		return false
	default:
		delete(g.byKey, key)
	}
	return true
}

// toExtend is find, of a lock of this token that is about to be extended in one round.
func (g *grants) toExtend(key, token string) *grant {
	return g.find(key, func(one *grant) bool {
		one.told = one.told || one.token == token
		return one.token == token
	})
}

// Remember notes the version of a key that was granted by a change of a cell with several keys.
// Forget returns it.
func (r *Register) Remember(key, token, version string, ttl time.Duration) {
	now := r.masters.Now()
	one := newGrant(Terms{Tokens: []string{token}, TTL: ttl}, 0, "", now, r.n)
	one.version = version
	r.grants.put(key, one, now)
}

// Forget forgets what this proxy granted of a key to a token, and returns its version and how long
// its lease lasts; none: it granted nothing.
func (r *Register) Forget(key, token string) (version string, left time.Duration) {
	one := r.grants.find(key, of(token))
	if one == nil {
		return "", 0
	}
	r.grants.take(key, of(token))
	return one.made(), r.leftOf(one)
}

// Inherit has this register know what another one granted on the masters of before. It is released
// by ballot: which master has it is another question now.
func (r *Register) Inherit(before *Register) {
	known, now := map[string]grant{}, r.masters.Now()
	before.grants.mu.Lock()
	for key, one := range before.grants.byKey {
		if !one.replaced && !one.over(now) {
			known[key] = *one
		}
	}
	before.grants.mu.Unlock()
	for key, one := range known {
		one.version, one.holders, one.open = one.made(), make([]bool, r.n), make([]bool, r.n)
		r.grants.put(key, &one, now)
	}
}

// extended notes a new lease.
func (g *grants) extended(key string, a cell.Attempt, ends time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	one := g.byKey[key]
	if one == nil || one.attempt != a || one.ends.IsZero() {
		return
	}
	if ends.IsZero() || ends.After(one.ends) {
		one.ends = ends
	}
}

// replaced is for a key whose value was replaced, or removed by ballot.
func (g *grants) replaced(key string, present bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if one := g.byKey[key]; one != nil {
		one.replaced = true
	}
	if !present {
		delete(g.byKey, key)
	}
}

// reached notes what became of a lock at one more master, also of one that is being
// released.
func (g *grants) reached(one *grant, master int, reply Reply) {
	g.mu.Lock()
	defer g.mu.Unlock()
	one.note(master, reply)
}

// reopen notes that a lock is on its way to a master once more, and returns how long it still has,
// in whole milliseconds, or cell.Endless; 0 where it is not held any more, as far as is known.
func (g *grants) reopen(key string, one *grant, master int, now time.Time) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	left := one.ends.Sub(now).Truncate(time.Millisecond)
	switch {
	case g.byKey[key] != one, one.replaced, !one.ends.IsZero() && left <= 0:
		return 0
	case one.ends.IsZero():
		left = cell.Endless
	}
	one.open[master] = true
	return left
}

// asOf is a grant as it is now.
func (g *grants) asOf(one *grant) grant {
	g.mu.Lock()
	defer g.mu.Unlock()
	now, n := *one, len(one.holders)
	marks := append(append(make([]bool, 0, 2*n), one.holders...), one.open...)
	now.holders, now.open = marks[:n:n], marks[n:]
	return now
}

// note is what a master said to the attempt.
func (g *grant) note(master int, reply Reply) {
	g.holders[master] = g.holders[master] || reply.yes()
	g.open[master] = reply.State == Waiting || reply.State == Unknown
	g.stray = g.stray || reply.State == Unknown
}

// Guess is the token under which this proxy has taken a key, or else what it has just put there by
// ballot, if it knows of nothing newer.
func (r *Register) Guess(key string) (token string, ok bool) {
	if one := r.grants.find(key, func(*grant) bool { return true }); one != nil {
		return one.token, true
	}
	return r.promises.value(key, r.masters.Now())
}
