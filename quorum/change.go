package quorum

import "time"

// Key names a lock: the same name in another database is another lock.
type Key struct {
	// DB is the number of the database, as in SELECT.
	DB int
	// Name is the key as it stands on the masters.
	Name string
}

// changeKind is the form of a Change, and with it the command that makes it.
type changeKind int

const (
	kindAcquire changeKind = iota // absent → token
	kindRelease                   // token → absent
	kindExtend                    // token → the same token with a new TTL
	kindUndo                      // token that one certain SET put there → absent
	kindRead                      // no change
)

// Change is what Commit does to a key on each master, under its condition. Make
// one by Acquire, Release or Extend.
type Change struct {
	kind  changeKind
	key   Key
	token string
	ttl   time.Duration

	// minLeft is for kindUndo: the least remaining time that the SET to be
	// undone can have left; ttl is the most.
	minLeft time.Duration
}

// Acquire puts the token under an absent key, for ttl (whole milliseconds, at
// least one): SET key token NX PX ttl.
func Acquire(key Key, token string, ttl time.Duration) Change {
	return Change{kind: kindAcquire, key: key, token: token, ttl: ttl}
}

// Release removes the key if it holds the token.
func Release(key Key, token string) Change {
	return Change{kind: kindRelease, key: key, token: token}
}

// Extend gives the key a new remaining time, ttl from now (whole milliseconds),
// if it holds the token. It never creates a majority: masters that lost the key
// are given it again only beside a majority that still holds it.
func Extend(key Key, token string, ttl time.Duration) Change {
	return Change{kind: kindExtend, key: key, token: token, ttl: ttl}
}

// verdict counts the votes on this kind of change.
func (c Change) verdict(t Tally) Verdict {
	if c.kind == kindRelease {
		return t.ReleaseVerdict()
	}
	return t.Verdict()
}

// undoAfter is what removes from a master what this acquire did there. With
// sure set, the master said that it did; otherwise it never answered, and what
// it holds must have the remaining time of a SET that was sent age ago.
func (c Change) undoAfter(age time.Duration, sure bool) Change {
	if sure {
		return Release(c.key, c.token)
	}
	undo := c
	undo.kind = kindUndo
	undo.minLeft = max(0, Validity(c.ttl, age))
	return undo
}
