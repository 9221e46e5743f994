package proxy

import (
	"cmp"
	"context"
	"runtime/debug"
	"time"

	"redlock-proxy/internal/resp"
	"redlock-proxy/proxy/sharing"
	"redlock-proxy/proxy/track"
)

// Clients share connections to the upstream, where the server has a pool of them (package sharing), until they do something that
// belongs to a connection, or that is in the way of others. Then they have one of their own, until they are quiet and
// have left nothing behind on it.

const (
	// maxOwed and maxBurst are how many replies, and for how many bytes of commands, the upstream may owe to a client that shares.
	maxOwed, maxBurst = 256, 64 << 10
	// fair is for how many bytes of replies a client may keep others waiting, as far as is known from its last ones: of one whose are longer than
	// fair/fewReplies and who pipelines, it has a connection of its own. firstReply is what the first ones are taken for, by the weight of so many.
	fair, fewReplies        = 64 << 10, 8
	firstReply, replyWeight = 4 << 10, 8
	// maxHeld is how much of replies that have come a client may leave unread, in bytes, while others wait for theirs behind them.
	maxHeld = 32 << 20
	// maxReturns is how often a client comes back as soon as it has said who it is and how it speaks: libraries do that once, or have
	// something between. Who does it again and again would cost the upstream more than sharing saves.
	maxReturns = 3
)

// shares is a relay's part in connections that are shared, and so a lane. Those who read from these are brought replies by it.
type shares struct {
	*relay
	way *sharing.Lane // nil: there are none
	// Of the session's goroutine.
	opening bool // the client has a connection of its own for what clients begin with, and for nothing else
	returns int  // how often it came back at once

	// Of the relay's mu.
	owed   int  // replies that are to come
	burst  int  // bytes sent since nothing was owed
	inside bool // a part of a reply has come
	large  bool // there was a reply that is better not shared
	size   int  // what replies have had of late, in bytes; 0: there were none
	coming int  // bytes of those that have come since size was found
	held   []byte
	unread int  // bytes of held, and of what is being brought
	brings bool // a goroutine brings what is held, when it is its turn
	needed bool // all that is owed is waited for, so that the client need not take it first
	ended  bool // nothing more is brought
	cut    bool // the client was cut off, maybe within a reply
}

func (s *shares) fits(frame *resp.FrameScanner, unsent int) fit {
	name, long := frame.Name()
	if long || frame.Inline() || s.silence != track.Speaking || !sharing.May(name) || !s.up.LetsIn() {
		return apart
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	window := min(max(1, fair/cmp.Or(s.size, firstReply)), maxOwed) // how many replies may be owed at a time
	full := s.owed+unsent >= window
	much := s.large || s.owed >= maxOwed || s.burst >= maxBurst || full && window < fewReplies
	switch {
	case !full && !much, s.way.Only():
		return fits
	case much:
		return apart
	}
	return later
}

func (s *shares) fitsInPart(size int) fit {
	if size < sharing.MaxFrame {
		return later
	}
	return apart
}

func (s *shares) fitsWhole(frame []byte) fit {
	if sharing.Whole(frame) {
		return fits
	}
	return apart
}

func (s *shares) send(ctx context.Context, frames []byte, plain int, _ *track.Slot, _ bool) (sent bool, err error) {
	for {
		if err := s.isOver(); err != nil {
			return false, err
		}
		s.owe(plain, len(frames))
		if s.way.Send(frames, plain) {
			s.traffic.commands.Add(int64(plain))
			s.traffic.toUpstream.Add(int64(len(frames)))
			return true, nil
		}
		s.owe(-plain, 0)
		if err := s.collect(ctx); err != nil {
			return false, err
		}
		state := s.know()
		if err := s.way.Open(ctx, groupOf(&state)); err != nil {
			return false, err
		}
	}
}

// weigh notes bytes of replies, and how many end with them. It is called with mu held.
func (s *shares) weigh(n, ended int) {
	if s.coming += n; ended > 0 {
		s.size = max(1, (cmp.Or(s.size, firstReply)*replyWeight+s.coming)/(replyWeight+ended))
		s.coming = 0
	}
}

func (s *shares) owe(n, bytes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.owed == 0 {
		s.burst = 0
	}
	s.owed += n
	s.burst += bytes
}

// collect waits until all that is owed over a connection that is shared has come, be it that the client has not taken it.
func (s *shares) collect(ctx context.Context) error {
	if s.way == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.owed == 0 {
		return nil
	}
	s.needed = true
	s.changed.Broadcast()
	defer func() { s.needed = false }()
	return s.wait(ctx, func() bool { return s.owed == 0 })
}

// Take is of sharing.Client.
func (s *shares) Take(p []byte, ended int, inside bool) (unread int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() {
		if problem := recover(); problem != nil {
			s.session.log.Error("a relay failed", "client", s.session.origin().String(), "panic", problem, "stack", string(debug.Stack()))
			s.cutOff()
			unread = 0
		}
	}()
	if s.cut {
		return 0
	}
	s.owed -= ended
	s.inside = inside
	s.weigh(len(p), ended)
	s.brought++
	s.hand(p)
	s.signal()
	return s.unread
}

// hand gives the client what it takes at once, and has the rest brought, unless that is too much. It is called with mu held.
func (s *shares) hand(p []byte) {
	if s.ended {
		return
	}
	s.traffic.toClients.Add(int64(len(p)))
	if !s.writing && !s.brings {
		s.bound(0)
		n, err := s.writeSome(p)
		if err != nil {
			s.ended = true // it has left, as its session will find
			return
		}
		p = p[n:]
	}
	if len(p) == 0 {
		return
	}
	s.held = append(s.held, p...)
	s.line.unread.add(&s.waits, len(p))
	if s.unread += len(p); !s.brings {
		s.brings = true
		s.copying.Go(s.bringHeld)
	}
	if s.unread > maxHeld {
		s.session.server.turned.warn(time.Now(), "a client that does not take its replies is disconnected", "client", s.session.origin().String())
		s.cutOff()
	}
}

// bringHeld brings what is held, until nothing is.
func (s *shares) bringHeld() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.turn(); len(s.held) > 0 && !s.ended; s.turn() {
		p := s.held
		s.held = nil
		s.boundIf(s.over) // else it is one that asked for it
		_, err := s.line.write(p)
		s.unread -= len(p)
		s.line.unread.done(&s.waits, len(p))
		s.ended = s.ended || err != nil
		s.brought++
		s.signal()
	}
	s.line.unread.done(&s.waits, s.unread)
	s.brings, s.held, s.unread = false, nil, 0
	s.changed.Broadcast()
}

// cutOff ends a client to which nothing more can be brought. It is called with mu held.
func (s *shares) cutOff() {
	s.ended, s.cut, s.over = true, true, true
	s.owed = 0
	s.changed.Broadcast()
	s.session.end()
	_ = s.session.conn.SetWriteDeadline(longAgo) // for who brings what is held
	s.bounded = false
}

// Large is of sharing.Client.
func (s *shares) Large() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.large = true
}

// Catch is of sharing.Client.
func (s *shares) Catch() {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.wait(context.Background(), func() bool { return !s.brings || s.unread < maxBurst || s.ended || s.needed })
}

// Lost is of sharing.Client.
func (s *shares) Lost(n int, inside bool, cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.cut:
		return
	case inside && !s.ended:
		s.cutOff()
		return
	}
	s.owed -= n
	s.inside = false
	s.apologise(n, cause)
	s.signal()
}

// taken waits until the client has taken what is held and what is being written, before something else is. It is called with mu held.
func (s *shares) taken() {
	s.waiting++
	for s.brings || s.writing {
		s.changed.Wait()
	}
	s.waiting--
}

// isOwed reports whether something is to come over a connection that is shared.
func (s *shares) isOwed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.owed > 0
}

// isBusy reports whether something is to come over a connection that is shared, or has come and was not taken. It is called with
// mu held.
func (s *shares) isBusy() bool { return s.owed > 0 || s.brings }

// stop has nothing more brought.
func (s *shares) stop() {
	if s.way != nil {
		s.way.Leave()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	s.changed.Broadcast()
}

// rejoin closes the client's own connection where nothing is left behind on it but what others can be given, so that the client shares
// again, with those of whom the same is true. It is called by the session's goroutine, between two commands, when the client is quiet.
func (s *shares) rejoin(ctx context.Context) {
	if s.way == nil || s.isShared() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.tracker.State
	own := s.wire != nil && !s.gone
	if own && (s.marked || s.silence != track.Speaking || s.writing || !s.tracker.Settled()) ||
		!state.IsProfile() || !s.way.Enter(groupOf(&state)) {
		return
	}
	if own {
		s.stateful = false
		if s.giveUp(ctx); !s.gone {
			s.way.Leave()
			return
		}
		s.wire, s.tracker.State = nil, state
	}
	s.lane, s.large, s.marked = s, false, false
	s.opening = s.returns < maxReturns
}

// groupOf is with whom a client may share of whose connection this is all that is to be known.
func groupOf(s *track.State) sharing.Group { return sharing.Group{Proto: s.Proto, DB: s.DB} }

// isShared reports whether what is sent now goes over a connection that is shared.
func (r *relay) isShared() bool { return r.lane == &r.shares }

// setApart has the client have a connection of its own.
func (r *relay) setApart() {
	if r.isShared() {
		r.lane = ownConn{r}
		r.shares.way.Leave()
	}
}
