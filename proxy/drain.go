package proxy

import (
	"context"
	"strings"
	"sync"
	"time"

	"redlock-proxy/commands"
	"redlock-proxy/internal/pacing"
)

// drain ends the sessions: when they are idle, or when the time is over. Who waits for what others
// do is refused at once.
func (s *Server) drain(ctx context.Context, cut context.CancelCauseFunc) {
	sessions, began, limit := s.close(), time.Now(), s.shared.settings().DrainTimeout
	s.shared.opts.Logger.Info("draining: closing idle clients, waiting for running commands", "clients", len(sessions), "drain-timeout", limit)
	for _, session := range sessions {
		session.refuseWaits()
		session.end()
		s.wake(ctx, session)
	}
	if s.shared.opts.Upstream != nil {
		refusing, stop := context.WithCancel(ctx)
		var refusals sync.WaitGroup
		refusals.Go(func() { s.refuseUpstreamWaits(refusing, sessions) })
		defer refusals.Wait()
		defer stop()
	}
	done := make(chan struct{})
	go func() { s.running.Wait(); close(done) }()
	if waited(done, limit) {
		s.shared.opts.Logger.Info("drained: nothing was cut off", "took", time.Since(began).Round(time.Millisecond))
		return
	}
	s.tellOfCut()
	cut(commands.ErrShuttingDown)
	if !waited(done, lastWords) {
		for _, session := range s.close() {
			session.cut()
		}
		<-done
	}
}

// shownClients is how many clients that are cut off are named.
const shownClients = 10

// tellOfCut logs what the end of the drain cuts off.
func (s *Server) tellOfCut() {
	left := s.close()
	var names []string
	for _, session := range left[:min(shownClients, len(left))] {
		names = append(names, session.origin().String())
	}
	s.shared.opts.Logger.Warn("drain-timeout is over: what still runs is cut off",
		"clients", len(left), "addresses", strings.Join(names, " "))
}

// longestUnblockPause bounds the pause between two times that the upstream is asked to refuse what
// waits there.
const longestUnblockPause = time.Second

// refuseUpstreamWaits has the upstream refuse commands that wait there for what others do, also
// those that it comes to later, until ctx ends.
func (s *Server) refuseUpstreamWaits(ctx context.Context, sessions []*session) {
	for pause := 10 * time.Millisecond; pacing.Sleep(ctx, pause) == nil; pause = min(2*pause, longestUnblockPause) {
		waiting := ends(sessions, (*relay).mayBlock)
		if len(waiting) == 0 {
			continue
		}
		if err := s.shared.opts.Upstream.Unblock(ctx, waiting, true); err != nil && ctx.Err() == nil {
			s.shared.opts.Logger.Warn("cannot unblock clients at the upstream: they wait until drain-timeout", "cause", err)
			return
		}
	}
}

// lastWords is how long commands that were cut off have to answer their clients.
const lastWords = 200 * time.Millisecond

func waited(done <-chan struct{}, limit time.Duration) bool {
	select {
	case <-done:
		return true
	case <-time.After(limit):
		return false
	}
}
