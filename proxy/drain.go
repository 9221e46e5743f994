package proxy

import (
	"context"
	"strings"
	"sync"
	"time"

	"redlock-proxy/commands"
	"redlock-proxy/internal/pacing"
)

// drain ends all sessions: when they are idle, or when DrainTimeout has passed. It immediately
// refuses commands that wait for other clients.
func (s *Server) drain(ctx context.Context, cancel context.CancelCauseFunc) {
	sessions, began, limit := s.beginDrain(), time.Now(), s.serverState.settings().DrainTimeout
	s.serverState.opts.Logger.Info("draining: closing idle clients, waiting for running commands",
		"clients", len(sessions), "drain-timeout", limit)
	for _, session := range sessions {
		session.refuseWaits()
		session.end()
		s.wake(ctx, session)
	}
	if s.serverState.opts.Upstream != nil {
		refuseCtx, stop := context.WithCancel(ctx)
		var refusals sync.WaitGroup
		refusals.Go(func() { s.refuseUpstreamWaits(refuseCtx, sessions) })
		defer refusals.Wait()
		defer stop()
	}
	done := make(chan struct{})
	go func() { s.running.Wait(); close(done) }()
	if waitDone(done, limit) {
		s.serverState.opts.Logger.Info("drained: all commands finished", "took", time.Since(began).Round(time.Millisecond))
		return
	}
	s.logRemainingClients()
	cancel(commands.ErrShuttingDown)
	if !waitDone(done, cancelReplyTime) {
		for _, session := range s.beginDrain() {
			session.disconnect()
		}
		<-done
	}
}

// maxLoggedClients limits how many of the remaining clients the log names.
const maxLoggedClients = 10

// logRemainingClients logs the clients that are still connected when DrainTimeout has passed.
func (s *Server) logRemainingClients() {
	remaining := s.beginDrain()
	var names []string
	for _, session := range remaining[:min(maxLoggedClients, len(remaining))] {
		names = append(names, session.clientAddr().String())
	}
	s.serverState.opts.Logger.Warn("drain-timeout exceeded: cutting off running commands",
		"clients", len(remaining), "addresses", strings.Join(names, " "))
}

// maxUnblockPause limits the pause between two requests to unblock clients at the upstream.
const maxUnblockPause = time.Second

// refuseUpstreamWaits makes the upstream refuse commands that wait for other clients, now and
// later. It runs until ctx ends or unblocking fails.
func (s *Server) refuseUpstreamWaits(ctx context.Context, sessions []*session) {
	for pause := 10 * time.Millisecond; pacing.Sleep(ctx, pause) == nil; pause = min(2*pause, maxUnblockPause) {
		waiting := connAddrs(sessions, (*relay).waitingAddr)
		if len(waiting) == 0 {
			continue
		}
		if err := s.serverState.opts.Upstream.Unblock(ctx, waiting, true); err != nil && ctx.Err() == nil {
			s.serverState.opts.Logger.Warn("cannot unblock clients at the upstream: they wait until drain-timeout",
				"cause", err)
			return
		}
	}
}

// cancelReplyTime limits the time that canceled commands have to answer their clients.
const cancelReplyTime = 200 * time.Millisecond

func waitDone(done <-chan struct{}, limit time.Duration) bool {
	select {
	case <-done:
		return true
	case <-time.After(limit):
		return false
	}
}
