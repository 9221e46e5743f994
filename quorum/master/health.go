package master

import (
	"time"

	"redlock-proxy/quorum/guard"
)

// Health is what is known of a master.
type Health struct {
	// Err is why it is down; nil: it is up.
	Err error
	// Quarantine is why it has no vote although it is up, or nil.
	Quarantine *guard.QuarantineError
	// Since is when it became so.
	Since time.Time
	// RoundTrip is the shortest that the last probe measured.
	RoundTrip time.Duration
	// Owed is how many removals wait for it to be back.
	Owed int
	// Figures are what its guard counts and measures.
	guard.Figures
}

// Health is what is known of the master now.
func (m *Master) Health() Health {
	quarantine, figures := m.guard.Quarantine(), m.guard.Figures()
	m.mu.Lock()
	defer m.mu.Unlock()
	h := Health{Err: m.cause, Since: m.since, RoundTrip: m.roundTrip, Owed: len(m.owed.all), Figures: figures}
	if m.cause == nil {
		h.Quarantine = quarantine
	}
	if changed := m.guard.Changed(); m.cause == nil && changed.After(h.Since) {
		h.Since = changed
	}
	return h
}

// Votes reports whether it is up and its votes count.
func (m *Master) Votes() bool { return !m.IsDown() && m.guard.Quarantine() == nil }

// IsDown reports whether it is known not to answer.
func (m *Master) IsDown() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.cause != nil
}

// IsUnheard reports whether nothing is known of it yet: neither that it does not answer nor whether
// its votes count.
func (m *Master) IsUnheard() bool {
	h := m.Health()
	return h.Err == errNotConnected || h.Quarantine != nil && h.Quarantine.Why == guard.Unproven
}

// fail takes the master down: what waits for it is refused, and the prober
// starts. The first reason is kept until a probe learns a newer one.
func (m *Master) fail(reason error) {
	var waiting []*op
	m.mu.Lock()
	wasUp := m.cause == nil
	if wasUp || reason == ErrClosed {
		m.cause, m.since = reason, time.Now()
		for _, l := range m.allLanes {
			waiting = append(waiting, l.shut(reason)...)
		}
	}
	m.mu.Unlock()
	m.refuse(waiting, reason)
	if wasUp && reason != ErrClosed {
		m.log.Warn("master down", "master", m.name, "cause", CauseText(reason))
		m.wake()
	}
}

// learn replaces the reason of a master that is down by a newer one, as in a
// hung master that now refuses connections. The first one of a master that never was up is logged.
func (m *Master) learn(reason error) {
	m.mu.Lock()
	was := m.cause
	if was != nil && was != ErrClosed {
		m.cause = reason
		for _, l := range m.allLanes {
			l.because(reason)
		}
	}
	m.mu.Unlock()
	if was == errNotConnected {
		m.log.Warn("master down", "master", m.name, "cause", CauseText(reason))
	}
}

// wake has the prober look at the master at once.
func (m *Master) wake() {
	select {
	case m.troubled <- struct{}{}:
	default:
	}
}
