package quorum

import (
	"context"
	"time"
)

const (
	// heartbeat is how long a master may be idle before it is asked for a sign of
	// life, so that a silent death is noticed before a LOCK meets it.
	heartbeat = time.Second
	// firstPause and longestPause bound the wait between two probes of a master
	// that is down; it doubles in between.
	firstPause   = 25 * time.Millisecond
	longestPause = time.Second / 2
)

// probe is the only one that dials a master that is down. It brings it up, watches it
// while it is idle, and has the guard look after it.
func (m *master) probe(ctx context.Context) {
	pause := time.Duration(0)
	for sleep(ctx, m.troubled, pause) {
		roundTrip, err := time.Duration(0), error(nil)
		if m.needsProbe() {
			roundTrip, err = m.transport.probe(ctx)
		}
		rest := heartbeat
		if err == nil {
			rest, err = m.guard.checkup(ctx)
		}
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			m.fail(err)
			m.learn(err)
			pause = m.nextPause(pause)
		case m.isDown():
			if m.rise(roundTrip) != nil {
				pause = m.nextPause(pause)
				continue
			}
			pause = rest
		default:
			pause = rest
		}
	}
}

// sleep waits for the pause to end or for the signal; false: ctx ended.
func sleep(ctx context.Context, signal <-chan struct{}, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-signal:
	case <-timer.C:
	}
	return true
}

// nextPause doubles the pause, and takes off up to a half at random, so that
// proxies do not probe in step.
func (m *master) nextPause(pause time.Duration) time.Duration {
	return jittered(min(max(2*pause, firstPause), longestPause), m.rand)
}

func (m *master) isDown() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.cause != nil
}

func (m *master) needsProbe() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.cause != nil || time.Since(m.lastSent) >= heartbeat
}

// learn replaces the reason of a master that is down by a newer one, as in a
// hung master that now refuses connections.
func (m *master) learn(reason error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cause == nil || m.cause == ErrClosed {
		return
	}
	m.cause = reason
	for _, l := range m.lanes {
		l.shut(reason)
	}
}
