package master

import (
	"time"

	"redlock-proxy/quorum/guard"
)

// Health describes the state of a master.
type Health struct {
	// Err is the reason why the master is down, or nil if it is up.
	Err error
	// Quarantine is the reason why the master has no vote although it is up, or nil.
	Quarantine *guard.QuarantineError
	// Since is the start of this state.
	Since time.Time
	// RoundTrip is the shortest round trip of the probe that last brought the master up.
	RoundTrip time.Duration
	// RemovalsPending is the number of removals that the proxy sends when the master is back.
	RemovalsPending int
	// Stats holds the counters and measurements of the master's guard.
	guard.Stats
}

// Health returns the current state of the master.
func (m *Master) Health() Health {
	quarantine, stats := m.guard.Quarantine(), m.guard.Stats()
	m.mu.Lock()
	defer m.mu.Unlock()
	h := Health{Err: m.cause, Since: m.stateSince, RoundTrip: m.roundTrip, RemovalsPending: len(m.pendingRemovals.removals), Stats: stats}
	if m.cause == nil {
		h.Quarantine = quarantine
	}
	if changed := m.guard.VoteChangedAt(); m.cause == nil && changed.After(h.Since) {
		h.Since = changed
	}
	return h
}

// Votes reports whether the master is up and its votes count.
func (m *Master) Votes() bool { return !m.IsDown() && m.guard.Quarantine() == nil }

// IsDown reports whether the master is down, or has not replied yet.
func (m *Master) IsDown() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.cause != nil
}

// IsStateUnknown reports whether the state of the master is still unknown: it has neither replied
// nor failed yet, or the guard does not know yet whether its votes count.
func (m *Master) IsStateUnknown() bool {
	h := m.Health()
	return h.Err == errNotConnected || h.Quarantine != nil && h.Quarantine.Cause == guard.Unverified
}

// takeDown marks the master as down, refuses its queued ops, and wakes the prober. The first cause
// stays until a probe finds another cause.
func (m *Master) takeDown(reason error) {
	var queuedOps []*op
	m.mu.Lock()
	wasUp := m.cause == nil
	if wasUp || reason == ErrClosed {
		m.cause, m.stateSince = reason, time.Now()
		for _, l := range m.allLanes {
			queuedOps = append(queuedOps, l.shutDown(reason)...)
		}
	}
	m.mu.Unlock()
	m.refuse(queuedOps, reason)
	if wasUp && reason != ErrClosed {
		m.stateLog.Warn(time.Now(), "master down", "master", m.name, "cause", CauseText(reason))
		m.probeNow()
	}
}

// updateCause replaces the cause of a master that is down, for example if a master that hung now
// refuses connections. It logs the first cause of a master that was never up.
func (m *Master) updateCause(reason error) {
	m.mu.Lock()
	oldCause := m.cause
	if oldCause != nil && oldCause != ErrClosed {
		m.cause = reason
		for _, l := range m.allLanes {
			l.setCause(reason)
		}
	}
	m.mu.Unlock()
	if oldCause == errNotConnected {
		m.stateLog.Warn(time.Now(), "master down", "master", m.name, "cause", CauseText(reason))
	}
}

// probeNow makes the prober examine the master at once.
func (m *Master) probeNow() {
	select {
	case m.probeSignal <- struct{}{}:
	default:
	}
}
