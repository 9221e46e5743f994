package guard

import (
	"slices"
	"time"
)

// clockSuspicion makes this proxy alone ignore the votes of a master, because either the master's
// clock or this proxy's own clock stepped.
type clockSuspicion struct {
	// nonce is the nonce of the master's marker when the suspicion began. A new marker means that
	// another proxy has judged the master since.
	nonce string
	// step is the suspicious step; zero if a canary was missed.
	step clockStep
	// serverTime is the master's time when the suspicion began.
	serverTime time.Duration
	startedAt  time.Time
}

// expiresAt returns the time by which every lease that existed when the suspicion began has
// expired.
func (d clockSuspicion) expiresAt(longestTTL time.Duration) time.Time {
	return d.startedAt.Add(max(leaseWait(longestTTL), allCheckedTime))
}

// hasExpired reports whether the votes of a master with this nonce count again.
func (d clockSuspicion) hasExpired(nonce string, proxies []Proxy, longestTTL time.Duration, now time.Time) bool {
	if d.nonce == "" || d.nonce != nonce || !now.Before(d.expiresAt(longestTTL)) {
		return true
	}
	return slices.ContainsFunc(proxies, func(p Proxy) bool {
		return p.GuardOn && p.ClockFitEnd > d.serverTime && p.ClockFitStart > 0 && p.ClockFitStart < d.serverTime-sameCauseTime
	})
}
