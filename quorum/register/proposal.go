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
	// same is set if the value stays unchanged.
	same bool
	// change identifies the change that led to the value. Later changes may have followed it.
	change cell.Change
	// keep lets a cell keep its expiry; until returns the expiry for masters that did not hold the
	// value before. Without keep the value gets ttl.
	keep  bool
	until expiry
	ttl   time.Duration
	// shift and shared come from the Decision.
	shift  time.Duration
	shared bool
	// lease is the lease that the proposal gives from since; zero: from when it is sent.
	lease time.Duration
	since time.Time
}

func (u *update) proposalFor(b ballot, t tally, d Decision) proposal {
	p := proposal{decision: d, base: t, change: u.opts.Source.Change(), ttl: d.TTL}
	p.value = cell.Value{Present: true, Text: d.Value}
	switch {
	case d.Do == Remove:
		p.value, p.ttl = cell.Value{}, removalTTL
	case d.KeepTTL && t.value.Present && d.Shared:
		p.keep, p.shared, p.shift, p.until = true, true, d.Shift, notBefore(b, t, d.Shift)
	case d.KeepTTL && t.value.Present:
		p.keep, p.until = true, notAfter(t.longest)
	case d.KeepTTL:
		p.ttl = cell.Endless
	}
	p.lease = p.ttl
	if p.keep || d.Do == Remove {
		p.lease = cell.Endless
	}
	p.value = p.value.Follow(t.value, p.change)
	return p
}

// sameRemoval returns a proposal that gives a removal the TTL of a new one.
func (u *update) sameRemoval(t tally) proposal {
	return proposal{base: t, value: t.value, same: true, ttl: removalTTL, lease: cell.Endless}
}

// version returns the version that the Update put, even if another value has replaced it.
func (p proposal) version() string {
	if p.change == "" {
		return version(p.base.attempt, p.value)
	}
	return string(p.base.attempt) + string(p.change)
}

// expiry returns the expiry of a value by the clock of a master. now is that clock at the promise,
// which was made at most passed after the ballot began.
type expiry func(now, passed time.Duration) time.Duration

// notAfter returns an expiry no later than on the holders, where the value has left remaining.
func notAfter(left time.Duration) expiry {
	return func(now, passed time.Duration) time.Duration {
		if left < 0 {
			return cell.Endless
		}
		return max(now+left-passed, time.Millisecond)
	}
}

// notBefore returns the expiry of a cell with several keys, so that no key expires early on any
// master: not before the first expiry on the masters that held the value when they promised,
// shifted like theirs. See package keygroup.
func notBefore(b ballot, t tally, shift time.Duration) expiry {
	return func(now, _ time.Duration) time.Duration {
		if t.shortest < 0 {
			return cell.Endless
		}
		return max(now+t.shortest+b.passed+shift, time.Millisecond)
	}
}
