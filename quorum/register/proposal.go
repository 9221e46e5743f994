package register

import (
	"time"

	"redlock-proxy/quorum/cell"
)

// proposal is what a ballot has the masters accept.
type proposal struct {
	decision Decision
	base     finding
	value    cell.Value
	// same: the value is the one that was there.
	same bool
	// change is that of the Update, which led to the value: others may have followed it.
	change cell.Change
	// keep, and until for the masters that did not hold the value before; else ttl.
	keep  bool
	until ending
	ttl   time.Duration
	// shift and shared are those of a Decision.
	shift  time.Duration
	shared bool
	// lease is what it gives, since then; zero: since it is sent.
	lease time.Duration
	since time.Time
}

// replacing is the proposal that a decision asks for.
func (u *update) replacing(b ballot, f finding, d Decision) proposal {
	p := proposal{decision: d, base: f, change: u.opts.Source.Change(), ttl: d.TTL}
	p.value = cell.Value{Present: true, Text: d.Value}
	switch {
	case d.Do == Remove:
		p.value, p.ttl = cell.Value{}, removedFor
	case d.KeepTTL && f.value.Present && d.Shared:
		p.keep, p.shared, p.shift, p.until = true, true, d.Shift, notBefore(b, f, d.Shift)
	case d.KeepTTL && f.value.Present:
		p.keep, p.until = true, notAfter(f.longest)
	case d.KeepTTL:
		p.ttl = cell.Endless
	}
	p.lease = p.ttl
	if p.keep || d.Do == Remove {
		p.lease = cell.Endless
	}
	p.value = p.value.Follow(f.value, p.change)
	return p
}

// removed has a removal stay from now on for as long as a new one.
func (u *update) removed(f finding) proposal {
	return proposal{base: f, value: f.value, same: true, ttl: removedFor, lease: cell.Endless}
}

// version is that of the value which the Update put there. By now it may have been replaced.
func (p proposal) version() string {
	if p.change == "" {
		return version(p.base.attempt, p.value)
	}
	return string(p.base.attempt) + string(p.change)
}

// ending is when a value is to end, by the clock of a master that told now when it promised, at the
// latest so long after the ballot began.
type ending func(now, passed time.Duration) time.Duration

// notAfter is the ending of a value that has so much left where others hold it: not later than
// there.
func notAfter(left time.Duration) ending {
	return func(now, passed time.Duration) time.Duration {
		if left < 0 {
			return cell.Endless
		}
		return max(now+left-passed, time.Millisecond)
	}
}

// notBefore is the ending of a cell of several keys: the end is not before the first one among the
// masters that held the value when they promised, shifted as theirs are. So none of the keys ends
// anywhere before its time; see package bag.
func notBefore(b ballot, f finding, shift time.Duration) ending {
	return func(now, _ time.Duration) time.Duration {
		if f.shortest < 0 {
			return cell.Endless
		}
		return max(now+f.shortest+b.passed+shift, time.Millisecond)
	}
}
