package proxy

import (
	"context"
	"errors"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"redlock-proxy/proxy/wire"
)

const (
	// askedAtOnce is how many quiet sessions are asked to rest together, and askPause
	// what is between two such lots: a crowd that falls silent is no burst of work.
	askedAtOnce = 100
	askPause    = 10 * time.Millisecond
	// manyParked is from how many sessions on what they have left behind is worth
	// collecting: some ten megabytes.
	manyParked = 1000
)

// startPolling starts the goroutine that wakes parked sessions, tells of the ends of
// streams, and looks for sessions to be parked. stop ends it, when all sessions have
// ended. Without a poller everything works, but costs more.
func (s *Server) startPolling(ctx context.Context) (p *wire.Poller, stop func()) {
	p, err := wire.NewPoller()
	if err != nil {
		s.shared.opts.Logger.Warn("idle clients will cost more memory", "cause", err)
	}
	if p == nil {
		return nil, func() {}
	}
	polling := &polling{server: s, poller: p}
	polling.running.Go(func() { polling.run(ctx) })
	return p, func() {
		_ = p.Close()
		polling.running.Wait()
	}
}

// polling is that goroutine, and what it remembers.
type polling struct {
	server  *Server
	poller  *wire.Poller
	quiet   []*session // to be asked to rest
	parked  int        // sessions since memory was given back
	running sync.WaitGroup
}

// run runs until the poller is closed.
func (p *polling) run(ctx context.Context) {
	notify := func(t wire.Tag, ended bool) { p.server.notify(ctx, t, ended) }
	next := time.Now().Add(p.server.quiet)
	for {
		err := p.poller.Wait(next, notify)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			pause := p.look()
			next = time.Now().Add(pause) // from its end: a look may take long
		case errors.Is(err, os.ErrClosed):
			return
		case err != nil: // never seen; clients that are parked would wait in vain
			p.server.shared.opts.Logger.Error("idle clients are not heard", "cause", err)
			time.Sleep(50 * time.Millisecond)
		}
	}
}

// look looks for quiet sessions, or asks the next ones of those it has found to
// rest. It returns the time to the next look.
func (p *polling) look() time.Duration {
	if len(p.quiet) == 0 {
		p.quiet = p.server.quietSessions(p.quiet)
		p.giveBack(len(p.quiet))
	}
	n := min(askedAtOnce, len(p.quiet))
	for _, session := range p.quiet[:n] {
		session.askToRest()
	}
	if p.quiet = p.quiet[n:]; len(p.quiet) > 0 {
		return askPause
	}
	p.quiet = nil
	return p.server.quiet
}

// giveBack is told how many more sessions are about to be parked. When it is calm
// again after many, it gives the stacks of their goroutines back to the system; Go
// alone would do so minutes later.
func (p *polling) giveBack(more int) {
	if p.parked += more; more == 0 && p.parked >= manyParked {
		p.parked = 0
		p.running.Go(debug.FreeOSMemory) // it takes its time
	}
}

// quietSessions finds sessions on which nothing has happened for a while.
func (s *Server) quietSessions(found []*session) []*session {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, session := range s.sessions {
		if session.in.wire.CanPark() && session.activity.WentQuiet() {
			found = append(found, session)
		}
	}
	return found
}

// notify deals with what has happened on a connection.
func (s *Server) notify(ctx context.Context, t wire.Tag, ended bool) {
	s.mu.Lock()
	session := s.sessions[t.Client()]
	s.mu.Unlock()
	if session != nil && !s.wake(ctx, session) && ended {
		session.streamEnded(t.Dial())
	}
}
