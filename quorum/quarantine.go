package quorum

import (
	"fmt"
	"time"
)

// reason is why a master is in quarantine, as the record on the master has it.
type reason string

const (
	reasonRestarted  reason = "restarted"
	reasonFlushed    reason = "flushed"
	reasonReplicated reason = "replicated"
	reasonClock      reason = "clock"
	reasonEvicted    reason = "evicted"

	// These two are no records: nothing is known yet.
	reasonFresh    reason = "fresh"
	reasonUnproven reason = "unproven"
)

// sentence says what happened to n masters.
func (r reason) sentence(n int) string {
	one := n == 1
	switch r {
	case reasonFlushed:
		return either(one, "was flushed", "were flushed")
	case reasonReplicated:
		return "took over the data of another server"
	case reasonClock:
		return either(one, "its clock stepped", "whose clocks stepped")
	case reasonEvicted:
		return "evicted keys"
	case reasonFresh:
		return either(one, "waits", "wait") + " for a fresh start: until all masters have been reached"
	case reasonUnproven:
		return either(one, "is asked whether it still has its data", "are asked whether they still have their data")
	default:
		return "restarted without proof of " + either(one, "its", "their") + " data"
	}
}

func either(one bool, singular, plural string) string {
	if one {
		return singular
	}
	return plural
}

// QuarantineError is the cause of a missing vote of a master that answers, but may
// have forgotten a lock.
type QuarantineError struct {
	reason reason
	// Ready is when the master votes again at the latest, as far as is known; zero
	// where it is not.
	Ready time.Time
}

// Error says what happened and, if that is known, in how many seconds the master
// votes again.
func (e *QuarantineError) Error() string { return quarantineText(e.reason, 1, e.Left()) }

// Left is how long the quarantine lasts from now at the most; zero where that is not
// known.
func (e *QuarantineError) Left() time.Duration {
	if e.Ready.IsZero() {
		return 0
	}
	return max(time.Millisecond, time.Until(e.Ready))
}

// Reason is one word for what happened: restarted, flushed, replicated, clock or
// evicted; fresh or unproven where that is still to be seen.
func (e *QuarantineError) Reason() string { return string(e.reason) }

func quarantineText(r reason, n int, left time.Duration) string {
	text := r.sentence(n)
	if left > 0 {
		text += fmt.Sprintf(", ready in %d s", seconds(left))
	}
	return text
}

// seconds rounds up.
func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

// verdictOn is what is to be done about a master after a look at it.
type verdictOn int

const (
	onTrust    verdictOn = iota // its marker stands: it votes
	onRemark                    // it restarted and proved that it forgot nothing
	onCondemn                   // it may have forgotten something: no marker, but a record
	onWait                      // its record stands: it is in quarantine
	onUnmarked                  // neither marker nor record, and nothing known of it
)

// memory is what a proxy remembers of a master from before.
type memory struct {
	// name is the master's, as in the configuration.
	name string
	// marker is the last one that it voted under, as text; empty: none.
	marker string
	// stepped is set where its clock does not fit the last sightings.
	stepped bool
}

// judge says what is to be done about a master that answered with v, and why where it
// is to be condemned. It is sure of what it sees only at that moment: what follows is
// done by scripts that look again.
func judge(v vitals, past memory) (verdictOn, reason) {
	m, marked := parseMarker(v.marker)
	r, recorded := parseRecord(v.record)
	switch {
	case marked && m.runID == v.runID:
		return judgeMarked(v, m, past)
	case marked && past.stepped:
		return onCondemn, reasonClock
	case marked && survived(v, m, past):
		return onRemark, ""
	case marked && m.address != past.name && v.marker != past.marker:
		return onCondemn, reasonReplicated
	case marked:
		return onCondemn, reasonRestarted
	case recorded && r.runID == v.runID && past.stepped:
		return onCondemn, reasonClock
	case recorded && r.runID == v.runID && v.marker == "":
		return onWait, r.reason
	case v.marker == "" && v.record == "" && past.marker == "":
		return onUnmarked, reasonRestarted
	default:
		return onCondemn, lostBy(v, past)
	}
}

// judgeMarked is for a master whose marker is of its present life.
func judgeMarked(v vitals, m marker, past memory) (verdictOn, reason) {
	switch {
	case past.stepped:
		return onCondemn, reasonClock
	case m.replID != v.replID:
		return onCondemn, reasonReplicated
	case v.evicted > m.evicted:
		return onCondemn, reasonEvicted
	default:
		return onTrust, ""
	}
}

// survived reports whether a master that restarted proves that it has all its data: it
// wrote, and writes, everything to disk before it answers, and its marker is its own.
func survived(v vitals, m marker, past memory) bool {
	if v.runID == untold || !v.durable() || !m.durable {
		return false
	}
	if past.marker != "" {
		return v.marker == past.marker
	}
	return m.address == past.name
}

// lostBy is the reason of a master that has no marker any more.
func lostBy(v vitals, past memory) reason {
	if m, ok := parseMarker(past.marker); ok && m.runID == v.runID {
		return reasonFlushed
	}
	return reasonRestarted
}

// lostSince is the latest moment, by the master's clock, at which it may have
// forgotten something. One that has never thrown data away since its start forgot what
// it forgot before that: uptime_in_seconds is right to a second.
func lostSince(v vitals, why reason) time.Duration {
	now := v.sighting.told
	if why == reasonRestarted && v.neverForgot && v.uptime > time.Second {
		return now - v.uptime + time.Second
	}
	return now
}

// leaseWait is how long after lostSince every lease of up to longest is over: the
// master's clock may run by a hundredth faster, and counts whole milliseconds.
func leaseWait(longest time.Duration) time.Duration { return longest + longest/100 + driftFixed }

// leaseLeft is how much of that is still to come for a master in quarantine.
func leaseLeft(r record, told, longest time.Duration) time.Duration {
	since := time.Duration(r.since) * time.Millisecond
	return max(0, since+leaseWait(longest)-told)
}
