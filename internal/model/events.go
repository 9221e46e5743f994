package model

import (
	"slices"
	"time"

	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/register"
)

// root returns the initial state of a scenario.
func (e *explorer) root() *state {
	s := &state{proxies: make([]uint32, len(e.machines)), masters: make([]masterState, e.total())}
	switch {
	case e.Held > 0:
		s = e.hold(s)
	case e.Removed:
		e.empty(s)
	}
	for m, master := range s.masters {
		e.first[m] = master.cell
	}
	return s
}

// hold executes the first operation, a lock that is granted, on the first Held masters.
func (e *explorer) hold(s *state) *state {
	p := e.Ops[0].Proxy
	s.began |= 1
	s.history = e.history.asks(s.history, s.at, 0)
	s = e.afterMove(s, p, e.machines[p].move(s.proxies[p], input{kind: start, task: 0}))
	for m := range e.Held {
		e.successors(s, func(ev event, next *state) {
			in := ev.move.in
			lost := in.timeout ||
				slices.Contains(in.replies[:e.N], unknown) || slices.Contains(in.replies[:e.N], failed)
			if ev.name == "deliver" && int(ev.message.master) == m && !lost {
				s = next
			}
		})
	}
	if s.results[0] != done {
		panic("the lock was not granted")
	}
	s.flight = nil
	return s
}

// empty sets the cells to a removal by ballot, as after a lock of another proxy was removed.
func (e *explorer) empty(s *state) {
	by := numberedSource(len(e.machines))
	removed := cell.Cell{Form: cell.Register, Attempt: by.Attempt(), Promised: by.Ballot(1), Accepted: by.Ballot(1)}
	removed.Value = cell.Value{}.Follow(cell.Value{}, by.Change())
	for m := range e.N {
		s.masters[m].cell = e.cellID(content{Cell: removed})
	}
}

// afterMove returns the state after a move of a proxy.
func (e *explorer) afterMove(s *state, p int, m move) *state {
	t := s.clone()
	in := m.in
	t.proxies[p] = m.to
	if in.kind == end {
		e.endRound(t, p, in)
	}
	for _, one := range m.sends {
		msg := message{proxy: uint8(p), task: one.task, round: one.round, master: one.master, op: one.op}
		if one.oneWay {
			msg.status = oneWay
		}
		t.flight = append(t.flight, msg)
	}
	for _, a := range m.answers {
		t.history = e.history.answers(t.history, t.at, a)
		t.results[a.op] = a.code
		if a.fence != 0 && a.fence <= t.fence {
			t.disordered = true
		}
		t.fence = max(t.fence, a.fence)
		for _, d := range a.dead {
			id := e.attempts.id(string(d), func() cell.Attempt { return d })
			if !slices.Contains(t.dead, id) {
				t.dead = append(t.dead, id)
				slices.Sort(t.dead)
			}
		}
	}
	e.forget(t, p)
	return t
}

// endRound removes the messages whose replies ended a round.
func (e *explorer) endRound(t *state, p int, in input) {
	kept := t.flight[:0]
	for _, msg := range t.flight {
		if int(msg.proxy) != p || msg.task != in.task || msg.round != in.round ||
			msg.status != sent && msg.status != arrived {
			kept = append(kept, msg)
			continue
		}
		switch r := in.replies[msg.master]; {
		case r == waiting:
			kept = append(kept, msg)
		case r == failed: // the message was not sent
		case r == unknown && msg.status == sent:
			for i := range kept { // the broken connection no longer orders its messages
				if kept[i].proxy == msg.proxy && kept[i].master == msg.master && kept[i].status == oneWay {
					kept[i].status = stray
				}
			}
			msg.status = stray
			kept = append(kept, msg)
		}
	}
	t.flight = kept
	for _, r := range in.replies {
		if r == unknown {
			t.losses++
		}
	}
	if e.Losses < 0 {
		t.losses = 0
	}
}

// forget removes differences between messages if they no longer matter.
func (e *explorer) forget(t *state, p int) {
	n := e.machines[p].states[t.proxies[p]]
	kept := t.flight[:0]
	for _, msg := range t.flight {
		if int(msg.proxy) == p && (msg.status == sent || msg.status == arrived) &&
			n.wait(msg.task, msg.round) == nil && !n.awaitsReply(msg) {
			if msg.status == arrived {
				continue
			}
			msg.status = oneWay
		}
		if msg.status == oneWay || msg.status == stray {
			msg.task, msg.round = 0, 0
			if !e.ops.all[msg.op].Writes() {
				continue
			}
		}
		kept = append(kept, msg)
	}
	t.flight = kept
}

// awaitsReply reports whether the late reply to a message still matters.
func (n *node) awaitsReply(msg message) bool {
	r := n.lateRound(msg.task, msg.round)
	return r != nil && r.pending>>msg.master&1 == 1
}

// without returns all messages except the i-th.
func without(all []message, i int) []message {
	return append(slices.Clone(all[:i]), all[i+1:]...)
}

// successors calls f with each possible next event and the state after it.
func (e *explorer) successors(s *state, f func(event, *state)) {
	e.starts(s, f)
	for i := range s.flight {
		switch msg := s.flight[i]; msg.status {
		case arrived:
			e.lateAnswer(s, i, f)
		default:
			if e.mayArrive(s, i) {
				e.deliver(s, i, f)
			}
			if msg.status == sent {
				e.loseAnswer(s, i, f)
			}
		}
	}
	e.endRounds(s, f)
	e.callbacks(s, f)
	e.time(s, f)
	e.catchUp(s, f)
	e.changes(s, f)
}

func (e *explorer) starts(s *state, f func(event, *state)) {
	for i, op := range e.Ops {
		if s.began>>i&1 == 1 || !s.allows(op) || e.hasNew(op.Proxy) && !e.isOpen(s) {
			continue
		}
		t := s.clone()
		t.began |= 1 << i
		t.history = e.history.asks(t.history, t.at, uint8(i))
		m := e.machines[op.Proxy].move(t.proxies[op.Proxy], input{kind: start, at: t.at, task: uint8(i)})
		f(event{name: "", move: m, proxy: op.Proxy, master: -1}, e.afterMove(t, op.Proxy, m))
	}
}

// allows reports whether an operation may start in this state.
func (s *state) allows(op Op) bool {
	for i, before := range op.After {
		c := s.results[before-1]
		if c == nothing || op.Success && i == len(op.After)-1 && c != done {
			return false
		}
	}
	return true
}

// mayArrive reports whether a message is the next to arrive on its connection. No message precedes
// it, and no reply that still matters to its proxy, because replies come in order, too.
func (e *explorer) mayArrive(s *state, i int) bool {
	msg := s.flight[i]
	if msg.status == stray {
		return true
	}
	n := e.machines[msg.proxy].states[s.proxies[msg.proxy]]
	for j, other := range s.flight {
		switch {
		case other.proxy != msg.proxy || other.master != msg.master:
		case j < i && (other.status == sent || other.status == oneWay):
			return false
		case other.status == arrived && msg.status == sent && n.awaitsReply(other):
			return false
		}
	}
	return true
}

// deliver lets a master execute the operation of a message.
func (e *explorer) deliver(s *state, i int, f func(event, *state)) {
	msg := s.flight[i]
	m := msg.master
	did := e.apply(applyKey{
		cell: s.masters[m].cell, fence: s.masters[m].fence, op: msg.op, at: s.at,
		counted: e.countedFor(s, int(msg.proxy), int(m)),
	})
	t := s.clone()
	t.masters[m] = masterState{did.cell, did.fence}
	t.flight = without(t.flight, i)
	ev := event{name: "deliver", message: msg, proxy: -1, master: -1}
	if msg.status != sent {
		f(ev, t)
		return
	}
	p := int(msg.proxy)
	machine := e.machines[p]
	n := machine.states[t.proxies[p]]
	answered := msg
	answered.status, answered.reply = arrived, did.reply
	if w := n.wait(msg.task, msg.round); w != nil {
		u := t.clone()
		u.flight = append(u.flight, answered)
		f(ev, u)
		for _, mv := range machine.end(e.ending(u, w, p, m)) {
			e.emitRoundEnd(u, p, mv, ev, f)
		}
		return
	}
	r := n.lateRound(msg.task, msg.round)
	if r == nil || r.pending>>m&1 == 0 {
		f(ev, t)
		return
	}
	if len(r.laters) == 0 {
		t.flight = append(t.flight, answered)
		f(ev, t)
		return
	}
	e.giveLateReply(t, ev, msg, did.reply, f)
	if e.Losses < 0 || int(t.losses) < e.Losses {
		t.losses++
		e.giveLateReply(t, ev, msg, unknown, f)
	}
}

// ending returns the replies to a task's round so far.
func (e *explorer) ending(s *state, w *wait, p int, last uint8) endKey {
	end := endKey{state: s.proxies[p], task: w.task, round: w.round, at: s.at, last: last}
	for _, msg := range s.flight {
		if int(msg.proxy) == p && msg.task == w.task && msg.round == w.round && msg.status == arrived {
			end.replies[msg.master] = msg.reply
		}
	}
	return end
}

// emitRoundEnd calls f with the end of a round, unless that loses more replies than the scenario
// allows.
func (e *explorer) emitRoundEnd(s *state, p int, mv move, ev event, f func(event, *state)) {
	lost := 0
	for _, r := range mv.in.replies {
		if r == unknown {
			lost++
		}
	}
	if e.Losses >= 0 && int(s.losses)+lost > e.Losses {
		return
	}
	ev.move, ev.proxy = mv, p
	f(ev, e.afterMove(s, p, mv))
}

// giveLateReply delivers a reply to a proxy after the round has ended.
func (e *explorer) giveLateReply(s *state, ev event, msg message, r replyID, f func(event, *state)) {
	p := int(msg.proxy)
	in := input{kind: late, at: s.at, task: msg.task, round: msg.round, master: msg.master}
	in.replies[0] = r
	mv := e.machines[p].move(s.proxies[p], in)
	ev.move, ev.proxy = mv, p
	f(ev, e.afterMove(s, p, mv))
}

// lateAnswer lets a reply arrive after its round has ended, or get lost.
func (e *explorer) lateAnswer(s *state, i int, f func(event, *state)) {
	msg := s.flight[i]
	r := e.machines[msg.proxy].states[s.proxies[msg.proxy]].lateRound(msg.task, msg.round)
	if r == nil || len(r.laters) == 0 {
		return
	}
	t := s.clone()
	t.flight = without(t.flight, i)
	ev := event{name: "late answer", message: msg, proxy: -1, master: -1}
	e.giveLateReply(t, ev, msg, msg.reply, f)
	if e.Losses < 0 || int(t.losses) < e.Losses {
		t.losses++
		ev.name = "lost late answer"
		e.giveLateReply(t, ev, msg, unknown, f)
	}
}

// loseAnswer breaks the connection of a late reply. The message itself may still arrive.
func (e *explorer) loseAnswer(s *state, i int, f func(event, *state)) {
	msg := s.flight[i]
	p := int(msg.proxy)
	r := e.machines[p].states[s.proxies[p]].lateRound(msg.task, msg.round)
	if r == nil || len(r.laters) == 0 || e.Losses >= 0 && int(s.losses) >= e.Losses {
		return
	}
	t := s.clone()
	for j := range t.flight[:i+1] {
		other := &t.flight[j]
		if other.proxy == msg.proxy && other.master == msg.master && (other.status == oneWay || j == i) {
			other.status = stray
		}
	}
	if e.Losses >= 0 {
		t.losses++
	}
	e.giveLateReply(t, event{name: "lose", message: msg, proxy: -1, master: -1}, msg, unknown, f)
}

// endRounds ends rounds without a delivery.
func (e *explorer) endRounds(s *state, f func(event, *state)) {
	for p, id := range s.proxies {
		n := e.machines[p].states[id]
		for i := range n.waits {
			w := &n.waits[i]
			end := endKey{state: id, task: w.task, round: w.round, at: s.at, last: noMaster}
			if s.at != w.begun || e.Unreachable { // the replies so far count
				end = e.ending(s, w, p, noMaster)
			}
			for _, mv := range e.machines[p].end(end) {
				e.emitRoundEnd(s, p, mv, event{name: "round ends", proxy: -1, master: -1}, f)
			}
		}
	}
}

func (e *explorer) callbacks(s *state, f func(event, *state)) {
	if int(s.fires) >= e.Fires {
		return
	}
	for p, id := range s.proxies {
		n := e.machines[p].states[id]
		for i, cb := range n.callbacks {
			if n.turn || cb.long && e.passed(s.at)-e.passed(cb.since) <= register.Limit {
				continue
			}
			t := s.clone()
			t.fires++
			mv := e.machines[p].move(id, input{kind: fire, at: s.at, task: uint8(i)})
			f(event{name: "fire " + cb.name, move: mv, proxy: p, master: -1}, e.afterMove(t, p, mv))
		}
	}
}

// time advances the clock, or expires a master's cell whose lease has ended.
func (e *explorer) time(s *state, f func(event, *state)) {
	if s.at.slow() < e.Slow {
		t := s.clone()
		t.at++
		f(event{name: "a round's time passes", proxy: -1, master: -1}, t)
	}
	if s.at.lease() < e.Leases {
		t := s.clone()
		t.at += 16
		f(event{name: "a lease's time passes", proxy: -1, master: -1}, t)
	}
	for m, master := range s.masters {
		if ends := e.cells.all[master.cell].ends; ends != 0 && ends <= epoch+e.passed(s.at) && !e.outlives(s, m) {
			t := s.clone()
			t.masters[m].cell = 0
			f(event{name: "expiry at", proxy: -1, master: m}, t)
		}
	}
}

// outlives reports whether another master has a mark that must expire before this master's cell,
// which is a removal. Such a mark is as old as the removal or older, and expires a second earlier.
func (e *explorer) outlives(s *state, m int) bool {
	one := e.cells.all[s.masters[m].cell]
	if one.Form != cell.Register || one.Value.Present {
		return false
	}
	for _, other := range s.masters {
		if c := e.cells.all[other.cell]; c.Form == cell.Mark && c.ends != 0 && c.ends+time.Second <= one.ends {
			return true
		}
	}
	return false
}
