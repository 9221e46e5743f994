package proxy

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"redlock-proxy/internal/contained"
	"redlock-proxy/internal/pacing"
	"redlock-proxy/quorum"
)

const (
	// pauseTimeout limits how long the proxy waits for running commands at the upstream when the
	// locks move. The mover (PROXY MOVE) ends connections that take longer.
	pauseTimeout = 3 * time.Second
	// checkInterval is the time between two checks for new connections to report.
	checkInterval = 100 * time.Millisecond
	// noEra means that no era was seen or reported yet.
	noEra = -1
	// retryPause is the wait after a failed report to the masters.
	retryPause = 50 * time.Millisecond
)

// startPauseReports runs reportPauses until stop is called.
func (s *Server) startPauseReports(ctx context.Context, lockLocation LockLocation) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { s.reportPauses(ctx, lockLocation) })
	return func() {
		cancel()
		running.Wait()
	}
}

// reportPauses reports to the masters, whenever the locks move, which of this proxy's connections
// carry no command on a lock key. It reports again when clients have made new connections. It runs
// until ctx ends.
func (s *Server) reportPauses(ctx context.Context, lockLocation LockLocation) {
	reportedEra, lastReport, lastLocation, runID := noEra, quorum.PauseReport{}, quorum.Location{Era: noEra}, ""
	ticks := time.Tick(checkInterval)
	for ctx.Err() == nil {
		changed := lockLocation.LocationChanged()
		tick := (<-chan time.Time)(nil)
		at, known := lockLocation.CurrentLocation()
		if known {
			lastLocation = s.dropCaches(lastLocation, at)
		}
		if !known || !at.Moves() && !lockLocation.IsLeavingMasters() {
			reportedEra = noEra
		} else {
			makeReport := func() quorum.PauseReport { return s.currentPauseReport(at.Era) }
			if at.Era != reportedEra {
				makeReport = func() quorum.PauseReport { return s.waitPaused(ctx, at.Era) }
				runID = quorum.UnknownServer
			}
			if runID == quorum.UnknownServer {
				runID = s.runID(ctx)
			}
			report := makeReport()
			report.Server = runID
			if at.Era != reportedEra || !sameReport(report, lastReport) {
				if err := lockLocation.ReportPaused(ctx, at.Era, report); err != nil {
					s.serverState.opts.Logger.Warn(
						"cannot notify the masters that this proxy has paused commands on lock keys", "cause", err)
					_ = pacing.Sleep(ctx, retryPause)
					continue
				}
				reportedEra, lastReport = at.Era, report
			}
			tick = ticks
		}
		if lastLocation.Era == noEra { // no notification announces the first era
			tick = ticks
		}
		select {
		case <-changed:
		case <-tick:
		case <-ctx.Done():
		}
	}
}

// dropCaches invalidates all keys for clients that track keys, once the locks have moved, because
// the old location reports no later changes. While the locks move, it returns their location before
// the move, otherwise at. If the era of at is later than that of last by more than one, the proxy
// may have missed a move.
func (s *Server) dropCaches(last, at quorum.Location) quorum.Location {
	moved := at.Place != last.Place || at.Era > last.Era+1
	switch hub := s.serverState.opts.Table.Tracking(); {
	case at.Moves() && last.Era == noEra:
		return quorum.Location{Place: at.Source(), Era: at.Era}
	case at.Moves():
		return last
	case moved && last.Era != noEra && hub != nil:
		hub.InvalidateAll()
	}
	return at
}

func sameReport(a, b quorum.PauseReport) bool {
	return a.Server == b.Server && slices.Equal(slices.Sorted(slices.Values(a.IdleConns)), slices.Sorted(slices.Values(b.IdleConns))) &&
		slices.Equal(slices.Sorted(slices.Values(a.BusyConns)), slices.Sorted(slices.Values(b.BusyConns)))
}

// waitPaused waits at most pauseTimeout until no command on a lock key is under way to the
// upstream, and reports which connections are at rest.
func (s *Server) waitPaused(ctx context.Context, era int) quorum.PauseReport {
	ctx, cancel := context.WithTimeout(ctx, pauseTimeout)
	defer cancel()
	var report quorum.PauseReport
	sessions := s.relayedSessions()
	type connection struct {
		address string
		idle    bool
	}
	connections := make(chan connection, len(sessions))
	s.unblock(ctx, sessions)
	for _, session := range sessions {
		go func() {
			var c connection
			_ = contained.Run(func() error { c.address, c.idle = session.relay.waitLockIdle(ctx, era); return nil })
			connections <- c
		}()
	}
	ticks := time.Tick(checkInterval)
	for waiting := len(sessions); waiting > 0; {
		select {
		case <-ticks: // a blocking command may have been on its way at the last call
			s.unblock(ctx, sessions)
			continue
		case c := <-connections:
			waiting--
			addConn(&report, c.address, c.idle)
		}
	}
	// Unblock may have made a connection.
	report.IdleConns = append(report.IdleConns, s.ownConnections()...)
	return report
}

// addConn records a connection, if there is one.
func addConn(report *quorum.PauseReport, address string, atRest bool) {
	switch {
	case address == "":
	case atRest:
		report.IdleConns = append(report.IdleConns, address)
	default:
		report.BusyConns = append(report.BusyConns, address)
	}
}

// relayedSessions returns the sessions that may have a connection to the upstream, if the locks can
// be there.
func (s *Server) relayedSessions() []*session {
	if s.serverState.opts.UpstreamTable == nil {
		return nil
	}
	return s.allSessions()
}

// currentPauseReport reports, without waiting, which connections are at rest.
func (s *Server) currentPauseReport(era int) quorum.PauseReport {
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	report := quorum.PauseReport{IdleConns: s.ownConnections()}
	for _, session := range s.relayedSessions() {
		address, atRest := session.relay.waitLockIdle(canceled, era)
		addConn(&report, address, atRest)
	}
	return report
}

// runID returns the upstream's run ID or quorum.UnknownServer; empty if the locks are never at the
// upstream.
func (s *Server) runID(ctx context.Context) string {
	if s.serverState.opts.UpstreamTable == nil {
		return ""
	}
	return cmp.Or(s.serverState.opts.Upstream.RunID(ctx), quorum.UnknownServer)
}

// ownConnections returns the addresses of the proxy's own connections to the upstream, if the locks
// can be there.
func (s *Server) ownConnections() []string {
	if s.serverState.opts.UpstreamTable == nil {
		return nil
	}
	return s.serverState.opts.Upstream.OwnConnections()
}

// unblock makes the upstream answer clients that are blocked on lock keys.
func (s *Server) unblock(ctx context.Context, sessions []*session) {
	blocked := connAddrs(sessions, (*relay).blockedAddr)
	if len(blocked) == 0 || ctx.Err() != nil {
		return
	}
	if err := s.serverState.opts.Upstream.Unblock(ctx, blocked, false); err != nil {
		s.serverState.opts.Logger.Warn("cannot unblock clients that wait for lock keys at the upstream", "cause", err)
	}
}

// UpstreamConnections returns the local addresses of all the proxy's connections to the upstream.
func (s *Server) UpstreamConnections() []string {
	return append(s.ownConnections(), connAddrs(s.relayedSessions(), (*relay).address)...)
}
