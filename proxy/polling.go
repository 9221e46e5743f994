package proxy

import (
	"context"
	"errors"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"redlock-proxy/proxy/netconn"
)

const (
	// parkBatch is the number of idle sessions that are asked to park together, and parkPause the
	// time between two batches. They prevent a burst of work if many clients become idle together.
	parkBatch = 100
	parkPause = 10 * time.Millisecond
	// returnMemoryAfter is the number of parked sessions after which the proxy returns their
	// memory, some ten megabytes, to the system.
	returnMemoryAfter = 1000
)

// startPolling starts the goroutine that wakes parked sessions, reports ends of streams, and looks
// for idle sessions. stop ends the goroutine; it must be called after all sessions have ended.
// Without a poller, no session is parked.
func (s *Server) startPolling(ctx context.Context) (p *netconn.Poller, stop func()) {
	p, err := netconn.NewPoller()
	if err != nil {
		s.serverState.opts.Logger.Warn("no poller: idle clients use more memory", "cause", err)
	}
	if p == nil {
		return nil, func() {}
	}
	polling := &idlePoller{server: s, poller: p}
	polling.running.Go(func() { polling.run(ctx) })
	return p, func() {
		_ = p.Close()
		polling.running.Wait()
	}
}

// idlePoller holds the state of the goroutine that startPolling starts.
type idlePoller struct {
	server       *Server
	poller       *netconn.Poller
	idleSessions []*session // sessions that will be asked to park
	parkedCount  int        // number of sessions parked since memory was returned
	running      sync.WaitGroup
}

// run handles events and asks idle sessions to park, until the poller is closed.
func (p *idlePoller) run(ctx context.Context) {
	notify := func(t netconn.Tag, ended bool) { p.server.notify(ctx, t, ended) }
	next := time.Now().Add(p.server.idleTime)
	for {
		err := p.poller.Wait(next, notify)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			pause := p.requestParks()
			next = time.Now().Add(pause) // from the end of requestParks, which may take long
		case errors.Is(err, os.ErrClosed):
			return
		case err != nil: // unexpected; if run returned, parked clients would never wake
			p.server.serverState.opts.Logger.Error("cannot poll idle clients", "cause", err)
			time.Sleep(50 * time.Millisecond)
		}
	}
}

// requestParks asks the next group of idle sessions to park. If the list is empty, it finds idle
// sessions first. It returns the time until its next call.
func (p *idlePoller) requestParks() time.Duration {
	if len(p.idleSessions) == 0 {
		p.idleSessions = p.server.idleSessions(p.idleSessions)
		p.returnMemory(len(p.idleSessions))
	}
	n := min(parkBatch, len(p.idleSessions))
	for _, session := range p.idleSessions[:n] {
		session.requestPark()
	}
	if p.idleSessions = p.idleSessions[n:]; len(p.idleSessions) > 0 {
		return parkPause
	}
	p.idleSessions = nil
	return p.server.idleTime
}

// returnMemory counts sessions that are about to be parked. After many sessions, when no more
// follow, it returns the stacks of their goroutines to the system, which Go would do only minutes
// later.
func (p *idlePoller) returnMemory(count int) {
	if p.parkedCount += count; count == 0 && p.parkedCount >= returnMemoryAfter {
		p.parkedCount = 0
		p.running.Go(debug.FreeOSMemory) // FreeOSMemory takes long
	}
}

// idleSessions appends the sessions that have had no activity for a while.
func (s *Server) idleSessions(sessions []*session) []*session {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, session := range s.sessions {
		if session.in.conn.CanPark() && session.activity.BecameIdle() {
			sessions = append(sessions, session)
		}
	}
	return sessions
}

// notify handles an event on a connection: it wakes a parked session, or passes the end of a stream
// to a session that runs.
func (s *Server) notify(ctx context.Context, t netconn.Tag, ended bool) {
	s.mu.Lock()
	session := s.sessions[t.Client()]
	s.mu.Unlock()
	if session != nil && !s.wake(ctx, session) && ended {
		session.handleStreamEnd(t.ConnID())
	}
}
