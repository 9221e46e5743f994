package master

import (
	"context"
	"time"

	"redlock-proxy/internal/contained"
	"redlock-proxy/internal/pacing"
	"redlock-proxy/quorum/guard"
)

const (
	// heartbeat is how long a master may be idle before it is asked for a sign of
	// life, so that a silent death is noticed before a LOCK hits it.
	heartbeat = guard.Heartbeat
	// firstPause and longestPause bound the wait between two probes of a master
	// that is down; it doubles in between.
	firstPause   = 25 * time.Millisecond
	longestPause = time.Second / 2
)

// probe is the only one that dials a master that is down. It brings it up, watches it
// while it is idle, and has the guard look after it.
func (m *Master) probe(ctx context.Context) {
	pause := time.Duration(0)
	for sleep(ctx, m.troubled, pause) {
		roundTrip, rest, err := m.examine(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			m.fail(err)
			m.learn(err)
			pause = m.nextPause(pause)
		case m.IsDown():
			if m.bringUp(roundTrip) != nil {
				pause = m.nextPause(pause)
				continue
			}
			pause = rest
		default:
			m.pay()
			pause = rest
		}
		if m.Voted != nil && m.Votes() {
			m.Voted()
		}
	}
}

// examine asks the master for a sign of life, unless it gave one, and has the guard look
// after it.
func (m *Master) examine(ctx context.Context) (roundTrip, rest time.Duration, err error) {
	err = contained.Run(func() (err error) {
		if m.needsProbe() {
			if roundTrip, err = m.transport.Probe(ctx); err != nil {
				return err
			}
		}
		rest, err = m.guard.Checkup(ctx)
		return err
	})
	return roundTrip, rest, err
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
func (m *Master) nextPause(pause time.Duration) time.Duration {
	return pacing.Jittered(min(max(2*pause, firstPause), longestPause), m.rand)
}

func (m *Master) needsProbe() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.cause != nil || time.Since(m.begun)-time.Duration(m.lastSent.Load()) >= heartbeat
}
