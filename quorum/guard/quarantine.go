package guard

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// Reason states why a master is in quarantine. Its values are the words in the records on masters.
type Reason string

// The reasons for a quarantine. Proxies do not write the last five to records.
const (
	Restarted            Reason = "restarted"
	Flushed              Reason = "flushed"
	Replicated           Reason = "replicated"
	ClockStepped         Reason = "clock"
	Evicted              Reason = "evicted"
	Overridden           Reason = "vouched"
	Empty                Reason = "blank"
	Joining              Reason = "joins"
	AwaitsFreshStart     Reason = "fresh"
	Unverified           Reason = "unproven"
	ReasonDifferentRules Reason = "settings"
	LocationUnknown      Reason = "place"
	Replaced             Reason = "succeeded"
)

// reasonTexts holds, for each reason, one word for INFO, metrics and the status page, and the rest
// of a sentence about one master and about several masters.
var reasonTexts = map[Reason]struct{ word, one, many string }{
	Restarted:    {"restarted", "restarted without proof of its data", "restarted without proof of their data"},
	Flushed:      {"flushed", "was flushed", "were flushed"},
	Replicated:   {"replicated", "took over the data of another server", "took over the data of another server"},
	ClockStepped: {"clock", "has a clock that stepped", "have clocks that stepped"},
	Evicted:      {"evicted", "evicted keys", "evicted keys"},
	Overridden:   {"vouched", "waits for the TTL that init --force set", "wait for the TTL that init --force set"},
	Empty: {"empty", "was empty when first seen: it is new, or has lost its data",
		"were empty when first seen: they are new, or have lost their data"},
	Joining: {"joining", "joins the changed set of masters", "join the changed set of masters"},
	AwaitsFreshStart: {"fresh", "waits for a fresh start: not all masters have been connected long enough",
		"wait for a fresh start: not all masters have been connected long enough"},
	Unverified: {"unverified", "is being checked for lost data", "are being checked for lost data"},
	ReasonDifferentRules: {"settings", "is in use by proxies with different settings",
		"are in use by proxies with different settings"},
	LocationUnknown: {"place", "waits until the location of the locks is known",
		"wait until the location of the locks is known"},
	Replaced: {"replaced", "belongs to another set of masters now: the masters were changed",
		"belong to another set of masters now: the masters were changed"},
}

// Sentence returns the reason as the rest of a sentence about n masters. A reason of another
// version reads like Restarted.
func (r Reason) Sentence(n int) string {
	texts, known := reasonTexts[r]
	if !known {
		texts = reasonTexts[Restarted]
	}
	if n == 1 {
		return texts.one
	}
	return texts.many
}

// QuarantineError reports why the votes of a master that replies do not count.
type QuarantineError struct {
	// Cause is the reason for the missing vote.
	Cause Reason
	// ReadyAt is the latest time at which the master votes again, as far as known; zero if unknown.
	ReadyAt time.Time
	// AssumesMaxTTL is set if ReadyAt assumes MaxTTL because no proxy knows the longest TTL in use.
	AssumesMaxTTL bool
	// LongestKnownTTL is the largest recorded TTL that this proxy knows; see maxTTLTracker.
	LongestKnownTTL time.Duration
	// Differences describes the different settings of other proxies, if they are the reason.
	Differences string
	// LocationConflict describes why the location of the locks is unknown, if that is the reason.
	LocationConflict string
}

// RulesAdvice returns the different settings, and a remedy for the operator. For a different
// location of the locks, or a changed list of masters, the remedy is never init.
func RulesAdvice(differences string) string {
	text := differences + "; use the same on all proxies"
	if strings.HasPrefix(differences, locationSetting+": ") || strings.HasPrefix(differences, changedMasters) {
		return text
	}
	return text + ", or make this proxy's settings valid: redlock-proxy init --new-settings"
}

// TTLAdvice explains why masters wait for MaxTTL, and suggests a remedy. minTTL is the largest
// recorded TTL, or zero if no record is known.
func TTLAdvice(minTTL time.Duration) string {
	knownTTL := ""
	if minTTL > 0 {
		knownTTL = fmt.Sprintf(" (at least %v)", minTTL)
	}
	return "the longest TTL in use is unknown" + knownTTL +
		", so they wait for max-ttl; if you know it, or the masters are new, run redlock-proxy init"
}

// Error returns the reason and, if known, the time until the master votes again.
func (e *QuarantineError) Error() string {
	text := e.Cause.Text(1, e.TimeLeft())
	if e.Differences != "" {
		text += " (" + RulesAdvice(e.Differences) + ")"
	}
	if e.LocationConflict != "" {
		text += " (" + e.LocationConflict + ")"
	}
	if e.AssumesMaxTTL {
		text += " (" + TTLAdvice(e.LongestKnownTTL) + ")"
	}
	return text
}

// TimeLeft returns the maximum remaining time of the quarantine, or 0 if it is unknown.
func (e *QuarantineError) TimeLeft() time.Duration {
	if e.ReadyAt.IsZero() {
		return 0
	}
	return max(time.Millisecond, time.Until(e.ReadyAt))
}

// minReadyShift is a margin: a quarantine is logged again only if its remaining time exceeds twice
// the last logged time by more than minReadyShift.
const minReadyShift = 10 * time.Second

// isMuchLater reports whether the master will vote again much later than logged. readyAt is the
// logged time.
func (e *QuarantineError) isMuchLater(readyAt time.Time) bool {
	return !readyAt.IsZero() && e.TimeLeft() > 2*max(0, time.Until(readyAt))+minReadyShift
}

// Reason returns one word for INFO, metrics and the status page. reasonTexts shows what it means.
func (e *QuarantineError) Reason() string { return cmp.Or(reasonTexts[e.Cause].word, string(e.Cause)) }

// Text returns the reason for n masters and, if known, the time until they vote again.
func (r Reason) Text(n int, timeLeft time.Duration) string {
	return r.Sentence(n) + readyIn(timeLeft)
}

// ReadyIn returns the time until the master votes again, as the end of a sentence. It is empty if
// the time is unknown.
func (e *QuarantineError) ReadyIn() string { return readyIn(e.TimeLeft()) }

func readyIn(timeLeft time.Duration) string {
	if timeLeft <= 0 {
		return ""
	}
	return ", ready in " + formatDuration(timeLeft)
}

// formatDuration formats a duration, rounded up: 27s, 5m7s, 24h14m.
func formatDuration(d time.Duration) string {
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
