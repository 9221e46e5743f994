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
	// holdPatience is how long what was sent to the upstream is waited for, once the locks are
	// being moved. What takes longer is ended there.
	holdPatience = 3 * time.Second
	// lookPause is that between two looks whether there are other connections to tell of.
	lookPause = 100 * time.Millisecond
	// noEra is none of the masters.
	noEra = -1
	// sayPause is the wait before the masters are told once more.
	sayPause = 50 * time.Millisecond
)

// startHolding has holdBack run until stop is called.
func (s *Server) startHolding(ctx context.Context, places Places) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { s.holdBack(ctx, places) })
	return func() {
		cancel()
		running.Wait()
	}
}

// holdBack says, whenever the locks are being moved, what this proxy has nothing under way over,
// until ctx ends: at once, and again when it has come to have other connections, by clients that
// have come since.
func (s *Server) holdBack(ctx context.Context, places Places) {
	said, last, was, server := noEra, quorum.Held{}, quorum.Placed{Era: noEra}, ""
	look := time.Tick(lookPause)
	for ctx.Err() == nil {
		turned := places.Turned()
		again := (<-chan time.Time)(nil)
		at, known := places.Placed()
		if known {
			was = s.dropCaches(was, at)
		}
		if !known || !at.Moves() && !places.Departing() {
			said = noEra
		} else {
			settled := s.settledNow
			if at.Era != said {
				settled = func() quorum.Held { return s.settled(ctx) }
				server = s.runID(ctx)
			}
			held := settled()
			held.Server = server
			if at.Era != said || !sameHeld(held, last) {
				if err := places.SayHeld(ctx, at.Era, held); err != nil {
					s.shared.opts.Logger.Warn("the masters could not be notified of what is held back", "cause", err)
					_ = pacing.Sleep(ctx, sayPause)
					continue
				}
				said, last = at.Era, held
			}
			again = look
		}
		if was.Era == noEra { // it is heard without a turn
			again = look
		}
		select {
		case <-turned:
		case <-again:
		case <-ctx.Done():
		}
	}
}

// dropCaches tells clients that track what they read, once the locks are elsewhere than they were,
// that everything may have changed: where it was read nobody changes it any more. It gives where
// the locks were last. What is decided once does not bring them back; of more than that nothing is
// known.
func (s *Server) dropCaches(was, at quorum.Placed) quorum.Placed {
	elsewhere := at.Place != was.Place || at.Era > was.Era+1
	switch hub := s.shared.opts.Table.Tracking(); {
	case at.Moves() && was.Era == noEra:
		return quorum.Placed{Place: at.Source(), Era: at.Era}
	case at.Moves():
		return was
	case elsewhere && was.Era != noEra && hub != nil:
		hub.LoseAll()
	}
	return at
}

func sameHeld(a, b quorum.Held) bool {
	return slices.Equal(slices.Sorted(slices.Values(a.Resting)), slices.Sorted(slices.Values(b.Resting))) &&
		slices.Equal(slices.Sorted(slices.Values(a.Restless)), slices.Sorted(slices.Values(b.Restless)))
}

// settled waits until nothing of lock keys is under way to the upstream, but not for long, and
// tells over which connections nothing is.
func (s *Server) settled(ctx context.Context) quorum.Held {
	ctx, cancel := context.WithTimeout(ctx, holdPatience)
	defer cancel()
	var held quorum.Held
	sessions := s.relayed()
	type connection struct {
		address string
		rests   bool
	}
	connections := make(chan connection, len(sessions))
	s.unblock(ctx, sessions)
	for _, session := range sessions {
		go func() {
			var c connection
			_ = contained.Run(func() error { c.address, c.rests = session.relay.rests(ctx); return nil })
			connections <- c
		}()
	}
	again := time.Tick(lookPause)
	for waiting := len(sessions); waiting > 0; {
		select {
		case <-again: // one may have been on its way
			s.unblock(ctx, sessions)
			continue
		case c := <-connections:
			waiting--
			add(&held, c.address, c.rests)
		}
	}
	held.Resting = append(held.Resting, s.owned()...) // Unblock may have made one
	return held
}

// add notes a connection, if there is one.
func add(held *quorum.Held, address string, rests bool) {
	switch {
	case address == "":
	case rests:
		held.Resting = append(held.Resting, address)
	default:
		held.Restless = append(held.Restless, address)
	}
}

// relayed are the sessions that may have a connection to the upstream.
func (s *Server) relayed() []*session {
	if s.shared.opts.Upstream == nil {
		return nil
	}
	return s.all()
}

// settledNow is settled without waiting for anything.
func (s *Server) settledNow() quorum.Held {
	over, cancel := context.WithCancel(context.Background())
	cancel()
	held := quorum.Held{Resting: s.owned()}
	for _, session := range s.relayed() {
		address, rests := session.relay.rests(over)
		add(&held, address, rests)
	}
	return held
}

// runID is that of the upstream; empty where there is none.
func (s *Server) runID(ctx context.Context) string {
	if s.shared.opts.Upstream == nil {
		return ""
	}
	return s.shared.opts.Upstream.RunID(ctx)
}

// owned are the connections that are no client's own.
func (s *Server) owned() []string {
	if s.shared.opts.Upstream == nil { // others move the locks, and need not wait for this proxy
		return nil
	}
	return s.shared.opts.Upstream.OwnConnections()
}

// unblock has the upstream answer those who wait there for something in lock keys.
func (s *Server) unblock(ctx context.Context, sessions []*session) {
	blocked := ends(sessions, (*relay).blocked)
	if len(blocked) == 0 || ctx.Err() != nil {
		return
	}
	if err := s.shared.opts.Upstream.Unblock(ctx, blocked, false); err != nil {
		s.shared.opts.Logger.Warn("clients that wait for lock keys at the upstream could not be woken there", "cause", err)
	}
}

// UpstreamConnections are the proxy's ends of all its connections to the upstream.
func (s *Server) UpstreamConnections() []string {
	return append(s.owned(), ends(s.relayed(), (*relay).address)...)
}
