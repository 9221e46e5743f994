package master

import (
	"context"
	"time"

	"redlock-proxy/internal/contained"
	"redlock-proxy/internal/pacing"
	"redlock-proxy/quorum/guard"
)

const (
	// heartbeat is the longest time that a master may be idle before a probe, so that the proxy
	// notices a failure before a LOCK depends on the master.
	heartbeat = guard.Heartbeat
	// firstPause and longestPause limit the pause, before jitter, between two probes of a master
	// that is down. The pause grows between these limits.
	firstPause   = 25 * time.Millisecond
	longestPause = time.Second / 2
)

// probe brings up a master that is down, watches it while it is idle, and runs the guard's checkup.
// No other goroutine dials a master that is down.
func (m *Master) probe(ctx context.Context) {
	pause := time.Duration(0)
	for sleep(ctx, m.probeSignal, pause) {
		m.stateLog.Flush(time.Now())
		roundTrip, untilCheckup, err := m.examine(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			m.takeDown(err)
			m.updateCause(err)
			pause = m.nextPause(pause)
		case m.IsDown():
			if m.bringUp(roundTrip) != nil {
				pause = m.nextPause(pause)
				continue
			}
			pause = untilCheckup
		default:
			m.sendPending()
			pause = untilCheckup
		}
		if m.OnVote != nil && m.Votes() {
			m.OnVote()
		}
	}
}

// examine probes the master, unless it was active recently, and runs the guard's checkup. It also
// returns the time until the next checkup.
func (m *Master) examine(ctx context.Context) (roundTrip, timeUntilCheckup time.Duration, err error) {
	err = contained.Run(func() (err error) {
		if m.needsProbe() {
			if roundTrip, err = m.transport.Probe(ctx); err != nil {
				return err
			}
		}
		timeUntilCheckup, err = m.guard.Checkup(ctx)
		return err
	})
	return roundTrip, timeUntilCheckup, err
}

// sleep waits until the pause ends or the signal arrives. It returns false if ctx ended.
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

// nextPause doubles the pause, and subtracts up to a half at random, so that proxies do not probe
// in step.
func (m *Master) nextPause(pause time.Duration) time.Duration {
	return pacing.Jitter(min(max(2*pause, firstPause), longestPause), m.rand)
}

func (m *Master) needsProbe() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.cause != nil || time.Since(m.startTime)-time.Duration(m.lastSent.Load()) >= heartbeat
}
