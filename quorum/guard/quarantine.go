package guard

import (
	"fmt"
	"strings"
	"time"
)

// Reason is why a master is in quarantine, as the record on the master has it.
type Reason string

// The reasons. The last six are in no record.
const (
	Restarted        Reason = "restarted"
	Flushed          Reason = "flushed"
	Replicated       Reason = "replicated"
	ClockStepped     Reason = "clock"
	Evicted          Reason = "evicted"
	Blank            Reason = "blank"
	Joins            Reason = "joins"
	AwaitsFreshStart Reason = "fresh"
	Unproven         Reason = "unproven"
	OtherRules       Reason = "settings"
	Misplaced        Reason = "place"
	Succeeded        Reason = "succeeded"
)

// Sentence is what happened to n masters.
func (r Reason) Sentence(n int) string {
	one := n == 1
	switch r {
	case Flushed:
		return either(one, "was flushed", "were flushed")
	case Replicated:
		return "took over the data of another server"
	case ClockStepped:
		return either(one, "its clock stepped", "whose clocks stepped")
	case Evicted:
		return "evicted keys"
	case Blank:
		return either(one, "was", "were") + " empty when first seen: new, or without " + either(one, "its", "their") + " data"
	case AwaitsFreshStart:
		return either(one, "waits", "wait") + " for a fresh start: until all masters have been reached"
	case Joins:
		return either(one, "joins", "join") + " the masters that were changed"
	case Succeeded:
		return either(one, "is one", "are some") + " of other masters than this proxy's by now: they were changed"
	case Misplaced:
		return either(one, "waits", "wait") + " until it is known where the locks are"
	case OtherRules:
		return either(one, "is", "are") + " in use by proxies with other settings"
	case Unproven:
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
	// Why is what happened.
	Why Reason
	// Ready is when the master votes again at the latest, as far as is known; zero
	// where it is not.
	Ready time.Time
	// Assumed is set where Ready is that late because no proxy knows the longest TTL in use,
	// so that MaxTTL is taken for it.
	Assumed bool
	// AtLeast is the longest TTL that is known to have been in use.
	AtLeast time.Duration
	// Differs is which settings other proxies have otherwise, where that is why.
	Differs string
	// Places is why it is not known where the locks are, where that is why.
	Places string
}

// RulesAdvice says what differs where masters are in use by proxies with other settings, and what
// an operator can do about it.
func RulesAdvice(differs string) string {
	return differs + "; use the same on all proxies, or declare those of this proxy the right ones: redlock-proxy init --new-settings"
}

// Advice says why masters wait for MaxTTL, and what an operator can do about it. atLeast is
// the longest TTL that is known to have been in use; zero: none is.
func Advice(atLeast time.Duration) string {
	known := ""
	if atLeast > 0 {
		known = fmt.Sprintf(", but for %v at least", atLeast)
	}
	return "the longest TTL in use is not known" + known + ", so they wait for max-ttl; if you know it, or they are new, run redlock-proxy init"
}

// Error says what happened and, if that is known, after what time the master
// votes again.
func (e *QuarantineError) Error() string {
	text := e.Why.Text(1, e.Left())
	if e.Differs != "" {
		text += " (" + RulesAdvice(e.Differs) + ")"
	}
	if e.Places != "" {
		text += " (" + e.Places + ")"
	}
	if e.Assumed {
		text += " (" + Advice(e.AtLeast) + ")"
	}
	return text
}

// Left is how long the quarantine lasts from now at the most; zero where that is not
// known.
func (e *QuarantineError) Left() time.Duration {
	if e.Ready.IsZero() {
		return 0
	}
	return max(time.Millisecond, time.Until(e.Ready))
}

// muchLater is by how much a quarantine must exceed twice the time that was logged for that to be
// logged.
const muchLater = 10 * time.Second

// isMuchLater reports whether the master votes again much later than was logged.
func (e *QuarantineError) isMuchLater(answer time.Time) bool {
	return !answer.IsZero() && e.Left() > 2*max(0, time.Until(answer))+muchLater
}

// Reason is one word for what happened: restarted, flushed, replicated, clock, evicted or blank;
// joins after a change of the masters; fresh or unproven where that is still to be seen; settings
// where others use it with other ones; place where it is not known where the locks are; succeeded
// where the masters were changed.
func (e *QuarantineError) Reason() string { return string(e.Why) }

// Text says what happened to n masters and, if that is known, after what time they vote
// again.
func (r Reason) Text(n int, left time.Duration) string {
	return r.Sentence(n) + readyIn(left)
}

// ReadyIn says, behind what happened, after what time the master votes again; nothing if that is
// not known.
func (e *QuarantineError) ReadyIn() string { return readyIn(e.Left()) }

func readyIn(left time.Duration) string {
	if left <= 0 {
		return ""
	}
	return ", ready in " + readable(left)
}

// readable is a duration for people: 27s, 5m7s, 24h14m. It is rounded up.
func readable(d time.Duration) string {
	unit := time.Second
	if d > time.Hour-time.Second {
		unit = time.Minute
	}
	d = (d + unit - 1) / unit * unit
	text := d.String()
	if unit == time.Minute {
		text = strings.TrimSuffix(text, "0s")
	}
	return text
}
