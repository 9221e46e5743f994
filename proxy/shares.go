package proxy

import (
	"cmp"
	"context"
	"runtime/debug"
	"time"

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

// shares is a relay's part in connections that are shared.
type shares struct {
	lane *sharing.Lane // nil: there are none
	// Of the session's goroutine.
	apart   bool // the client has, or is to have, a connection of its own
	opening bool // it has that for what clients begin with, and for nothing else
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

// shared reports whether what is sent now may go over a connection that is shared.
func (r *relay) shared() bool {
	return r.shares.lane != nil && !r.shares.apart && (r.wire == nil || r.isGone())
}

// mustPart reports whether a command of this name is better sent over a connection of the client's own.
func (r *relay) mustPart(name []byte, unsent int) bool {
	if r.silence != track.Speaking || !sharing.May(name) || !r.up.LetsIn() {
		return true
	}
	r.mu.Lock()
	s := &r.shares
	much := s.large || s.owed >= maxOwed || s.burst >= maxBurst || s.window() < fewReplies && s.owed+unsent >= s.window()
	r.mu.Unlock()
	return much && !s.lane.Only()
}

// window is how many replies may be owed at a time. It is called with mu held.
func (s *shares) window() int {
	return min(max(1, fair/cmp.Or(s.size, firstReply)), maxOwed)
}

// isFull reports whether a client that shares is to wait for its replies before it sends more than what is unsent.
func (r *relay) isFull(unsent int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.shares.owed+unsent >= r.shares.window() && !r.shares.lane.Only()
}

// weigh notes bytes of replies, and how many end with them. It is called with mu held.
func (s *shares) weigh(n, ended int) {
	if s.coming += n; ended > 0 {
		s.size = max(1, (cmp.Or(s.size, firstReply)*replyWeight+s.coming)/(replyWeight+ended))
		s.coming = 0
	}
}

// mark notes that the client may have left something behind on its connection.
func (r *relay) mark() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.marked = true
}

// share sends whole commands over a connection that is shared.
func (r *relay) share(ctx context.Context, commands []byte, n int) error {
	for {
		if err := r.isOver(); err != nil {
			return err
		}
		r.owe(n, len(commands))
		if r.shares.lane.Send(commands, n) {
			r.traffic.commands.Add(int64(n))
			r.traffic.toUpstream.Add(int64(len(commands)))
			return nil
		}
		r.owe(-n, 0)
		if err := r.collect(ctx); err != nil {
			return err
		}
		state := r.know()
		if err := r.shares.lane.Open(ctx, groupOf(&state)); err != nil {
			return err
		}
	}
}

func (r *relay) owe(n, bytes int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &r.shares
	if s.owed == 0 {
		s.burst = 0
	}
	s.owed += n
	s.burst += bytes
}

// collect waits until all that is owed over a connection that is shared has come, be it that the client has not taken it.
func (r *relay) collect(ctx context.Context) error {
	if r.shares.lane == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.shares.owed == 0 {
		return nil
	}
	r.shares.needed = true
	r.changed.Broadcast()
	defer func() { r.shares.needed = false }()
	return r.wait(ctx, func() bool { return r.shares.owed == 0 })
}

// Take is of sharing.Client.
func (r *relay) Take(p []byte, ended int, inside bool) (unread int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &r.shares
	defer func() {
		if problem := recover(); problem != nil {
			r.session.log.Error("a relay failed", "client", r.session.origin().String(), "panic", problem, "stack", string(debug.Stack()))
			r.cutOff()
			unread = 0
		}
	}()
	if s.cut {
		return 0
	}
	s.owed -= ended
	s.inside = inside
	s.weigh(len(p), ended)
	r.brought++
	r.hand(p)
	r.signal()
	return s.unread
}

// hand gives the client what it takes at once, and has the rest brought, unless that is too much. It is called with mu held.
func (r *relay) hand(p []byte) {
	s := &r.shares
	if s.ended {
		return
	}
	r.traffic.toClients.Add(int64(len(p)))
	if !r.writing && !s.brings {
		r.bound(0)
		n, err := r.writeSome(p)
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
	r.line.unread.add(&r.waits, len(p))
	if s.unread += len(p); !s.brings {
		s.brings = true
		r.copying.Go(r.bringHeld)
	}
	if s.unread > maxHeld {
		r.session.server.turned.tell(time.Now(), "a client that does not take its replies is disconnected", "client", r.session.origin().String())
		r.cutOff()
	}
}

// bringHeld brings what is held, until nothing is.
func (r *relay) bringHeld() {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &r.shares
	for r.turn(); len(s.held) > 0 && !s.ended; r.turn() {
		p := s.held
		s.held = nil
		r.boundIf(r.over) // else it is one that asked for it
		_, err := r.line.write(p)
		s.unread -= len(p)
		r.line.unread.done(&r.waits, len(p))
		s.ended = s.ended || err != nil
		r.brought++
		r.signal()
	}
	r.line.unread.done(&r.waits, s.unread)
	s.brings, s.held, s.unread = false, nil, 0
	r.changed.Broadcast()
}

// cutOff ends a client to which nothing more can be brought. It is called with mu held.
func (r *relay) cutOff() {
	r.shares.ended, r.shares.cut, r.over = true, true, true
	r.shares.owed = 0
	r.changed.Broadcast()
	r.session.end()
	_ = r.session.conn.SetWriteDeadline(longAgo) // for who brings what is held
	r.bounded = false
}

// Large is of sharing.Client.
func (r *relay) Large() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.shares.large = true
}

// Catch is of sharing.Client.
func (r *relay) Catch() {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &r.shares
	_ = r.wait(context.Background(), func() bool { return !s.brings || s.unread < maxBurst || s.ended || s.needed })
}

// Lost is of sharing.Client.
func (r *relay) Lost(n int, inside bool, cause error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &r.shares
	switch {
	case s.cut:
		return
	case inside && !s.ended:
		r.cutOff()
		return
	}
	s.owed -= n
	s.inside = false
	r.apologise(n, cause)
	r.signal()
}

// taken waits until the client has taken what is held and what is being written, before something else is. It is called with mu held.
func (r *relay) taken() {
	r.waiting++
	for r.shares.brings || r.writing {
		r.changed.Wait()
	}
	r.waiting--
}

// isOwed reports whether something is to come over a connection that is shared.
func (r *relay) isOwed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.shares.owed > 0
}

// isBusy reports whether something is to come over a connection that is shared, or has come and was not taken. It is called with
// mu held.
func (r *relay) isBusy() bool { return r.shares.owed > 0 || r.shares.brings }

// endSharing has nothing more brought.
func (r *relay) endSharing() {
	if r.shares.lane != nil {
		r.shares.lane.Leave()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.shares.ended = true
	r.changed.Broadcast()
}

// rejoin closes the client's own connection where nothing is left behind on it but what others can be given, so that the client shares
// again, with those of whom the same is true. It is called by the session's goroutine, between two commands, when the client is quiet.
func (r *relay) rejoin(ctx context.Context) {
	if r.shares.lane == nil || !r.shares.apart {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	state := r.tracker.State
	own := r.wire != nil && !r.gone
	if own && (r.marked || r.silence != track.Speaking || r.writing || !r.tracker.Settled()) ||
		!state.IsProfile() || !r.shares.lane.Enter(groupOf(&state)) {
		return
	}
	if own {
		r.stateful = false
		if r.giveUp(ctx); !r.gone {
			r.shares.lane.Leave()
			return
		}
		r.wire, r.tracker.State = nil, state
	}
	r.shares.apart, r.shares.large, r.marked = false, false, false
	r.shares.opening = r.shares.returns < maxReturns
}

// groupOf is with whom a client may share of whose connection this is all that is to be known.
func groupOf(s *track.State) sharing.Group { return sharing.Group{Proto: s.Proto, DB: s.DB} }

// setApart has the client have a connection of its own.
func (r *relay) setApart() {
	if r.shares.apart = true; r.shares.lane != nil {
		r.shares.lane.Leave()
	}
}
