package proxy

import (
	"context"
	"slices"
	"sync"
	"time"

	"redlock-proxy/internal/contained"
	"redlock-proxy/internal/pacing"
	"redlock-proxy/quorum"
)

const (
	// holdTimeout limits how long the proxy waits for commands at the upstream to finish once the
	// locks move. The mover ends connections that take longer.
	holdTimeout = 3 * time.Second
	// lookPause is the pause between two checks for new connections to report.
	lookPause = 100 * time.Millisecond
	// noEra is a number that no era has.
	noEra = -1
	// retryPause is the wait after a failed report to the masters.
	retryPause = 50 * time.Millisecond
)

// startPausing runs pauseCommands until stop is called.
func (s *Server) startPausing(ctx context.Context, places LockLocation) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { s.pauseCommands(ctx, places) })
	return func() {
		cancel()
		running.Wait()
	}
}

// pauseCommands reports to the masters, whenever the locks move, which of this proxy's connections
// carry no command on a lock key. It reports at once, and again when clients have made new
// connections. It runs until ctx ends.
func (s *Server) pauseCommands(ctx context.Context, places LockLocation) {
	said, last, was, server := noEra, quorum.PauseReport{}, quorum.Location{Era: noEra}, ""
	look := time.Tick(lookPause)
	for ctx.Err() == nil {
		turned := places.Changed()
		again := (<-chan time.Time)(nil)
		at, known := places.CurrentLocation()
		if known {
			was = s.dropCaches(was, at)
		}
		if !known || !at.Moves() && !places.IsLeavingMasters() {
			said = noEra
		} else {
			heldFn := s.pausedNow
			if at.Era != said {
				heldFn = func() quorum.PauseReport { return s.waitPaused(ctx) }
				server = s.runID(ctx)
			}
			held := heldFn()
			held.Server = server
			if at.Era != said || !sameHeld(held, last) {
				if err := places.ReportPaused(ctx, at.Era, held); err != nil {
					s.shared.opts.Logger.Warn(
						"cannot notify the masters that this proxy has paused commands on lock keys", "cause", err)
					_ = pacing.Sleep(ctx, retryPause)
					continue
				}
				said, last = at.Era, held
			}
			again = look
		}
		if was.Era == noEra { // the first era is seen without a notification
			again = look
		}
		select {
		case <-turned:
		case <-again:
		case <-ctx.Done():
		}
	}
}

// dropCaches notifies clients that track keys, once the locks have moved, that all keys may have
// changed. Later changes are not reported at the old location. It returns the last location of the
// locks. If the masters' era is more than one later, a move in between may have gone unnoticed.
func (s *Server) dropCaches(was, at quorum.Location) quorum.Location {
	elsewhere := at.Place != was.Place || at.Era > was.Era+1
	switch hub := s.shared.opts.Table.Tracking(); {
	case at.Moves() && was.Era == noEra:
		return quorum.Location{Place: at.Source(), Era: at.Era}
	case at.Moves():
		return was
	case elsewhere && was.Era != noEra && hub != nil:
		hub.InvalidateAll()
	}
	return at
}

func sameHeld(a, b quorum.PauseReport) bool {
	return slices.Equal(slices.Sorted(slices.Values(a.IdleConns)), slices.Sorted(slices.Values(b.IdleConns))) &&
		slices.Equal(slices.Sorted(slices.Values(a.BusyConns)), slices.Sorted(slices.Values(b.BusyConns)))
}

// waitPaused waits at most holdTimeout until no command on a lock key is under way to the upstream,
// and returns which connections are at rest.
func (s *Server) waitPaused(ctx context.Context) quorum.PauseReport {
	ctx, cancel := context.WithTimeout(ctx, holdTimeout)
	defer cancel()
	var held quorum.PauseReport
	sessions := s.relayedSessions()
	type connection struct {
		address string
		atRest  bool
	}
	connections := make(chan connection, len(sessions))
	s.unblock(ctx, sessions)
	for _, session := range sessions {
		go func() {
			var c connection
			_ = contained.Run(func() error { c.address, c.atRest = session.relay.waitAtRest(ctx); return nil })
			connections <- c
		}()
	}
	again := time.Tick(lookPause)
	for waiting := len(sessions); waiting > 0; {
		select {
		case <-again: // a blocking command may have been on its way
			s.unblock(ctx, sessions)
			continue
		case c := <-connections:
			waiting--
			add(&held, c.address, c.atRest)
		}
	}
	held.IdleConns = append(held.IdleConns, s.ownConnections()...) // Unblock may have made one
	return held
}

// add records a connection, if there is one.
func add(held *quorum.PauseReport, address string, atRest bool) {
	switch {
	case address == "":
	case atRest:
		held.IdleConns = append(held.IdleConns, address)
	default:
		held.BusyConns = append(held.BusyConns, address)
	}
}

// relayedSessions returns the sessions that may have a connection to the upstream.
func (s *Server) relayedSessions() []*session {
	if s.shared.opts.Upstream == nil {
		return nil
	}
	return s.allSessions()
}

// pausedNow is waitPaused without waiting.
func (s *Server) pausedNow() quorum.PauseReport {
	over, cancel := context.WithCancel(context.Background())
	cancel()
	held := quorum.PauseReport{IdleConns: s.ownConnections()}
	for _, session := range s.relayedSessions() {
		address, atRest := session.relay.waitAtRest(over)
		add(&held, address, atRest)
	}
	return held
}

// runID returns the upstream's run ID; empty without an upstream.
func (s *Server) runID(ctx context.Context) string {
	if s.shared.opts.Upstream == nil {
		return ""
	}
	return s.shared.opts.Upstream.RunID(ctx)
}

// ownConnections returns the addresses of the proxy's own connections to the upstream.
func (s *Server) ownConnections() []string {
	if s.shared.opts.Upstream == nil { // other proxies move the locks, and need not wait for this proxy
		return nil
	}
	return s.shared.opts.Upstream.OwnConnections()
}

// unblock makes the upstream answer clients that are blocked on lock keys.
func (s *Server) unblock(ctx context.Context, sessions []*session) {
	blocked := connAddrs(sessions, (*relay).blockedAddr)
	if len(blocked) == 0 || ctx.Err() != nil {
		return
	}
	if err := s.shared.opts.Upstream.Unblock(ctx, blocked, false); err != nil {
		s.shared.opts.Logger.Warn("cannot unblock clients that wait for lock keys at the upstream", "cause", err)
	}
}

// UpstreamConnections returns the local addresses of all the proxy's connections to the upstream.
func (s *Server) UpstreamConnections() []string {
	return append(s.ownConnections(), connAddrs(s.relayedSessions(), (*relay).address)...)
}
