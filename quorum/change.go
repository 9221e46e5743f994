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
	kindEdit                      // any change of several keys
	kindPlain                     // a command that is no matter of a register
	kindOffer                     // absent → absent, with an offer of a token
	kindMend                      // absent, with that offer → the token
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
	// keys are those of a kindRead, edits those of a kindEdit; key is the first of
	// them. args are the words of a kindPlain.
	keys  []Key
	edits []Edit
	args  []any
	// nonce tells an offer from others.
	nonce string
	// behind is the key in whose lane an undo follows what it undoes, where that is
	// not its own.
	behind Key
}

// lane is the key that chooses the lane.
func (c Change) lane() Key {
	if c.behind != (Key{}) {
		return c.behind
	}
	return c.key
}

// Acquire puts the token under an absent key, for ttl (whole milliseconds, at
// least one, or Endless): SET key token NX PX ttl.
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

// offer keeps a token for an absent key in mind at a master, for so long.
func offer(key Key, token, nonce string, lasts time.Duration) Change {
	return Change{kind: kindOffer, key: key, token: token, nonce: nonce, ttl: lasts}
}

// mend puts the token of a standing offer under its key, if that is absent.
func mend(key Key, token, nonce string, ttl time.Duration) Change {
	return Change{kind: kindMend, key: key, token: token, nonce: nonce, ttl: ttl}
}

// verdict counts the votes on this kind of change.
func (c Change) verdict(t Tally) Verdict {
	if c.kind == kindRelease {
		return t.ReleaseVerdict()
	}
	return t.Verdict()
}

// read asks what stands under keys of one database.
func read(keys []Key) Change {
	return Change{kind: kindRead, key: keys[0], keys: keys}
}

// validity is how long what the change gave is valid, elapsed after it began.
func (c Change) validity(elapsed time.Duration) time.Duration {
	if c.kind == kindEdit {
		return editsValidity(c.edits, elapsed)
	}
	return leaseValidity(c.ttl, elapsed)
}

// leaseValidity is Validity, or Endless for a lease that is.
func leaseValidity(ttl, elapsed time.Duration) time.Duration {
	if ttl < 0 {
		return Endless
	}
	return Validity(ttl, elapsed)
}

// isGrant reports whether the change gives somebody what must not be given once
// its time is over.
func (c Change) isGrant() bool {
	return c.kind == kindAcquire || c.kind == kindExtend || c.kind == kindEdit && c.editGrants()
}

// undoes reports whether a change that did not win is taken back where it was
// applied.
func (c Change) undoes() bool {
	return c.kind == kindAcquire || c.kind == kindEdit && !onlyRemoves(c.edits)
}
