package guard

import (
	"slices"
	"time"
)

// doubt is this proxy's alone: it does not count the votes of a master whose clock moved,
// or its own.
type doubt struct {
	// nonce is of the marker that the master had: another one was written by a proxy that
	// knew better.
	nonce string
	// step is what it is about; zero: a canary that was missed.
	step clockStep
	// serverTime is that of the master when the doubt began.
	serverTime time.Duration
	since      time.Time
}

// until is when every lease of the time when the doubt began is over.
func (d doubt) until(longest time.Duration) time.Time {
	return d.since.Add(max(leaseWait(longest), allLooked))
}

// isOver reports whether the votes of a master with that marker count again.
func (d doubt) isOver(nonce string, proxies []Proxy, longest time.Duration, now time.Time) bool {
	if d.nonce == "" || d.nonce != nonce || !now.Before(d.until(longest)) {
		return true
	}
	return slices.ContainsFunc(proxies, func(p Proxy) bool {
		return p.Guards && p.At > d.serverTime && p.ClockSince > 0 && p.ClockSince < d.serverTime-alikeTime
	})
}
