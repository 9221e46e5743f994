package keepalive

import "time"

const (
	// MinTTL is the shortest TTL of a kept lock. A third of it must be long compared with tick.
	MinTTL = 100 * time.Millisecond
	// renewalsPerTTL is the number of renewals in the time of one TTL.
	renewalsPerTTL = 3
	// maxRetryPause and retriesPerTTL limit the pause after a renewal that failed.
	maxRetryPause = time.Second
	retriesPerTTL = 30
)

// Term describes the lease of a lock to keep, and how long the proxy keeps the lock.
type Term struct {
	// TTL is the lease that each renewal asks for.
	TTL time.Duration
	// LeaseStart is the start of the lease that LOCK or EXTEND granted.
	LeaseStart time.Time
	// ValidUntil is the time until which the client may rely on this lease.
	ValidUntil time.Time
	// MaxHold, unless it is zero, is the time after LeaseStart at which the last lease ends.
	MaxHold time.Duration
	// OfHolder is set if further clients may hold the lock, each under its own token.
	OfHolder bool
}

// schedule computes the times of a lock's renewals. It uses no mutex and does no I/O.
type schedule struct {
	Term
	// renewals counts the renewals that succeeded, except extra ones.
	renewals int
	// leaseExpiry is the end of the latest lease on the masters.
	leaseExpiry time.Time
	// failed is set if the latest renewal failed, with failure as the reason.
	failed  bool
	failure Reason
}

func newSchedule(t Term) schedule { return schedule{Term: t, leaseExpiry: t.LeaseStart.Add(t.TTL)} }

// dueTime returns the time of the next renewal. The n-th lease never begins earlier than n thirds
// of the TTL after the first one, however late earlier renewals were. So a client can compute the
// minimum age of its lease from the number of pushes, even if the network delays them.
func (s *schedule) dueTime() time.Time {
	if s.isLast() {
		return s.ValidUntil
	}
	return s.LeaseStart.Add(time.Duration(s.renewals+1) * s.TTL / renewalsPerTTL)
}

// isLast reports whether MAXHOLD permits no further renewal.
func (s *schedule) isLast() bool {
	return s.MaxHold > 0 && !s.leaseExpiry.Before(s.holdEnd())
}

func (s *schedule) holdEnd() time.Time { return s.LeaseStart.Add(s.MaxHold) }

// lossAt returns the reason for the loss of the lock at a time. The result is false if the lock is
// not lost.
func (s *schedule) lossAt(now time.Time) (Reason, bool) {
	switch {
	case now.Before(s.ValidUntil):
		return 0, false
	case s.isLast(), s.MaxHold > 0 && !now.Before(s.holdEnd()):
		return MaxHold, true
	case s.failed:
		return s.failure, true
	}
	return 0, false // no renewal was tried in time, so the masters may still hold the lock
}

// leaseAt returns the TTL of a renewal at a time. The last lease ends with MAXHOLD.
func (s *schedule) leaseAt(now time.Time) time.Duration {
	if s.MaxHold == 0 {
		return s.TTL
	}
	return min(s.TTL, s.holdEnd().Sub(now).Round(time.Millisecond))
}

// deadlineAt returns the deadline of a renewal that begins now.
func (s *schedule) deadlineAt(now time.Time) time.Time {
	if s.ValidUntil.After(now) {
		return s.ValidUntil
	}
	return now.Add(s.TTL / renewalsPerTTL)
}

// recordRenewal records a lease of ttl that was requested at a time. An extra renewal comes before
// its time, and does not move the next one.
func (s *schedule) recordRenewal(start time.Time, ttl time.Duration, validUntil time.Time, extra bool) {
	s.failed = false
	if !extra {
		s.renewals++
	}
	s.ValidUntil, s.leaseExpiry = validUntil, start.Add(ttl)
	if ttl < s.TTL {
		s.leaseExpiry = s.holdEnd()
	}
}

// recordFailure records a failed renewal, and returns the time of the retry, which is at most the
// end of the validity.
func (s *schedule) recordFailure(now time.Time, reason Reason) time.Time {
	s.failed, s.failure = true, reason
	next := now.Add(min(maxRetryPause, s.TTL/retriesPerTTL))
	if next.After(s.ValidUntil) {
		return s.ValidUntil
	}
	return next
}
