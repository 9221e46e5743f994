package register

import (
	"time"

	"redlock-proxy/quorum/cell"
)

// proposal is a value, and its expiry, that a ballot proposes to the masters.
type proposal struct {
	decision Decision
	base     tally
	value    cell.Value
	// unchanged is set if the value stays unchanged.
	unchanged bool
	// change identifies the change to make. Later changes may have followed it.
	change cell.Change
	// keepTTL lets a cell keep its expiry; expiryAt returns the expiry for masters that did not
	// hold the value before. Without keepTTL the value gets ttl.
	keepTTL  bool
	expiryAt expiryFunc
	ttl      time.Duration
	// shift and shared come from the Decision.
	shift  time.Duration
	shared bool
	// lease is the lease that the proposal gives from leaseStart. If leaseStart is zero, the lease
	// begins when the proposal is sent.
	lease      time.Duration
	leaseStart time.Time
	// heldUntil and early have the meaning of GrantedLock.HeldUntil and Early.
	heldUntil time.Time
	early     time.Duration
}

func (u *update) newProposal(b ballot, t tally, d Decision) proposal {
	p := proposal{decision: d, base: t, change: u.opts.Source.Change(), ttl: d.TTL}
	p.value = cell.Value{Present: true, Text: d.Value}
	switch {
	case d.Action == Remove:
		p.value, p.ttl = cell.Value{}, removalTTL
	case d.KeepTTL && t.value.Present && d.Shared:
		p.keepTTL, p.shared, p.shift, p.expiryAt = true, true, d.Shift, expiryNotBefore(b, t, d.Shift)
		p.early = b.elapsed
	case d.KeepTTL && t.value.Present:
		p.keepTTL, p.expiryAt = true, expiryNotAfter(t.longestTimeLeft)
		if t.longestTimeLeft > 0 { // else there is no expiry, or it is unknown
			p.heldUntil = b.keptUntil(t)
		}
	case d.KeepTTL:
		p.ttl = cell.NoExpiry
	}
	p.lease = p.ttl
	if p.keepTTL || d.Action == Remove {
		p.lease = cell.NoExpiry
	}
	p.value = p.value.WithChange(t.value, p.change)
	return p
}

// renewedRemoval returns a proposal that gives a removal the TTL of a new removal.
func (u *update) renewedRemoval(t tally) proposal {
	return proposal{base: t, value: t.value, unchanged: true, ttl: removalTTL, lease: cell.NoExpiry}
}

// version returns the version that the Update put, even if another value has replaced it.
func (p proposal) version() string {
	if p.change == "" {
		return version(p.base.attempt, p.value)
	}
	return string(p.base.attempt) + string(p.change)
}

// expiryFunc returns the expiry of a value by the clock of a master. now is that clock at the
// master's promise. elapsed is the longest time that may lie between the start of the ballot and
// the promise.
type expiryFunc func(now, elapsed time.Duration) time.Duration

// expiryNotAfter returns a function for an expiry that is no later than on the masters that hold
// the value. timeLeft is the longest remaining time on these masters.
func expiryNotAfter(timeLeft time.Duration) expiryFunc {
	return func(now, elapsed time.Duration) time.Duration {
		if timeLeft < 0 {
			return cell.NoExpiry
		}
		return max(now+timeLeft-elapsed, time.Millisecond)
	}
}

// keptUntil returns the time until which each master that accepts a value with a kept expiry holds it.
// A master that accepts its version for the first time holds it for the longest remaining time from
// its promise on, less the duration of the prepare (expiryNotAfter).
func (b ballot) keptUntil(t tally) time.Time { return b.start.Add(t.longestTimeLeft - b.elapsed) }

// expiryNotBefore returns a function for the expiry of a cell with several keys. The expiry is not
// before the first expiry on the masters that held the value when they promised, and is shifted
// like theirs; see package keygroup.
func expiryNotBefore(b ballot, t tally, shift time.Duration) expiryFunc {
	return func(now, _ time.Duration) time.Duration {
		if t.shortestTimeLeft < 0 {
			return cell.NoExpiry
		}
		return max(now+t.shortestTimeLeft+b.elapsed+shift, time.Millisecond)
	}
}
