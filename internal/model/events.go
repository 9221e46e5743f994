package model

import (
	"slices"
	"time"

	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/register"
)

// root is the state in which a scenario begins.
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

// hold grants the first operation on some masters.
func (e *explorer) hold(s *state) *state {
	p := e.Ops[0].Proxy
	s.began |= 1
	s.history = e.history.asks(s.history, s.at, 0)
	s = e.moved(s, p, e.machines[p].move(s.proxies[p], input{what: start, task: 0}))
	for m := range e.Held {
		e.successors(s, func(ev event, next *state) {
			in := ev.move.in
			lost := in.timeout || slices.Contains(in.replies[:e.N], unknown) || slices.Contains(in.replies[:e.N], failed)
			if ev.name == "deliver" && int(ev.message.master) == m && !lost {
				s = next
			}
		})
	}
	if s.told[0] != done {
		panic("the lock was not granted")
	}
	s.flight = nil
	return s
}

// empty has another proxy have removed by ballot what it had taken.
func (e *explorer) empty(s *state) {
	by := numberedSource(len(e.machines))
	removed := cell.Cell{Form: cell.Register, Attempt: by.Attempt(), Promised: by.Ballot(1), Accepted: by.Ballot(1)}
	removed.Value = cell.Value{}.Follow(cell.Value{}, by.Change())
	for m := range e.N {
		s.masters[m].cell = e.cellID(content{Cell: removed})
	}
}

// moved is the state after a proxy did something.
func (e *explorer) moved(s *state, p int, m move) *state {
	t := s.clone()
	in := m.in
	t.proxies[p] = m.to
	if in.what == end {
		e.endRound(t, p, in)
	}
	for _, one := range m.sends {
		msg := message{proxy: uint8(p), task: one.task, round: one.round, master: one.master, op: one.op}
		if one.told {
			msg.how = told
		}
		t.flight = append(t.flight, msg)
	}
	for _, a := range m.answers {
		t.history = e.history.answers(t.history, t.at, a)
		t.told[a.op] = a.code
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

// endRound takes what a round ended with from the messages.
func (e *explorer) endRound(t *state, p int, in input) {
	kept := t.flight[:0]
	for _, msg := range t.flight {
		if int(msg.proxy) != p || msg.task != in.task || msg.round != in.round || msg.how != sent && msg.how != arrived {
			kept = append(kept, msg)
			continue
		}
		switch r := in.replies[msg.master]; {
		case r == waiting:
			kept = append(kept, msg)
		case r == failed: // it was not sent
		case r == unknown && msg.how == sent:
			for i := range kept { // the connection broke
				if kept[i].proxy == msg.proxy && kept[i].master == msg.master && kept[i].how == told {
					kept[i].how = stray
				}
			}
			msg.how = stray
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

// forget makes messages alike that differ in nothing that matters any more.
func (e *explorer) forget(t *state, p int) {
	n := e.machines[p].states[t.proxies[p]]
	kept := t.flight[:0]
	for _, msg := range t.flight {
		if int(msg.proxy) == p && (msg.how == sent || msg.how == arrived) && n.wait(msg.task, msg.round) == nil && !n.heeds1(msg) {
			if msg.how == arrived {
				continue
			}
			msg.how = told
		}
		if msg.how == told || msg.how == stray {
			msg.task, msg.round = 0, 0
			if !e.ops.all[msg.op].Writes() {
				continue
			}
		}
		kept = append(kept, msg)
	}
	t.flight = kept
}

// heeds1 reports whether the reply to a message still matters.
func (n *node) heeds1(msg message) bool {
	r := n.heed(msg.task, msg.round)
	return r != nil && r.pending>>msg.master&1 == 1
}

// without is the messages but one.
func without(all []message, i int) []message {
	return append(slices.Clone(all[:i]), all[i+1:]...)
}

// successors tells all events that may come next and the states after them.
func (e *explorer) successors(s *state, f func(event, *state)) {
	e.starts(s, f)
	for i := range s.flight {
		switch msg := s.flight[i]; msg.how {
		case arrived:
			e.lateAnswer(s, i, f)
		default:
			if e.mayArrive(s, i) {
				e.deliver(s, i, f)
			}
			if msg.how == sent {
				e.lose(s, i, f)
			}
		}
	}
	e.giveUp(s, f)
	e.callbacks(s, f)
	e.time(s, f)
	e.catchUp(s, f)
	e.changes(s, f)
}

// starts begins operations.
func (e *explorer) starts(s *state, f func(event, *state)) {
	for i, op := range e.Ops {
		if s.began>>i&1 == 1 || !s.allows(op) || e.hasNew(op.Proxy) && !e.isOpen(s) {
			continue
		}
		t := s.clone()
		t.began |= 1 << i
		t.history = e.history.asks(t.history, t.at, uint8(i))
		m := e.machines[op.Proxy].move(t.proxies[op.Proxy], input{what: start, at: t.at, task: uint8(i)})
		f(event{name: "", move: m, proxy: op.Proxy, master: -1}, e.moved(t, op.Proxy, m))
	}
}

// allows reports whether an operation may start.
func (s *state) allows(op Op) bool {
	for i, before := range op.After {
		c := s.told[before-1]
		if c == nothing || op.Success && i == len(op.After)-1 && c != done {
			return false
		}
	}
	return true
}

// mayArrive reports whether no message is before it on its connection, and no answer to one
// that its proxy still heeds: answers come in that order, too.
func (e *explorer) mayArrive(s *state, i int) bool {
	msg := s.flight[i]
	if msg.how == stray {
		return true
	}
	n := e.machines[msg.proxy].states[s.proxies[msg.proxy]]
	for j, other := range s.flight {
		switch {
		case other.proxy != msg.proxy || other.master != msg.master:
		case j < i && (other.how == sent || other.how == told):
			return false
		case other.how == arrived && msg.how == sent && n.heeds1(other):
			return false
		}
	}
	return true
}

// deliver has a master do what a message asks.
func (e *explorer) deliver(s *state, i int, f func(event, *state)) {
	msg := s.flight[i]
	m := msg.master
	did := e.apply(applying{cell: s.masters[m].cell, fence: s.masters[m].fence, op: msg.op, at: s.at, counted: e.countedFor(s, int(msg.proxy), int(m))})
	t := s.clone()
	t.masters[m] = masterState{did.cell, did.fence}
	t.flight = without(t.flight, i)
	ev := event{name: "deliver", message: msg, proxy: -1, master: -1}
	if msg.how != sent {
		f(ev, t)
		return
	}
	p := int(msg.proxy)
	machine := e.machines[p]
	n := machine.states[t.proxies[p]]
	answered := msg
	answered.how, answered.reply = arrived, did.reply
	if w := n.wait(msg.task, msg.round); w != nil {
		u := t.clone()
		u.flight = append(u.flight, answered)
		f(ev, u)
		for _, mv := range machine.end(e.ending(u, w, p, m)) {
			e.emitEnd(u, p, mv, ev, f)
		}
		return
	}
	r := n.heed(msg.task, msg.round)
	if r == nil || r.pending>>m&1 == 0 {
		f(ev, t)
		return
	}
	if len(r.laters) == 0 {
		t.flight = append(t.flight, answered)
		f(ev, t)
		return
	}
	e.tellLate(t, ev, msg, did.reply, f)
	if e.Losses < 0 || int(t.losses) < e.Losses {
		t.losses++
		e.tellLate(t, ev, msg, unknown, f)
	}
}

// ending is what a task's round has got so far.
func (e *explorer) ending(s *state, w *wait, p int, last uint8) ending {
	end := ending{state: s.proxies[p], task: w.task, round: w.round, at: s.at, last: last}
	for _, msg := range s.flight {
		if int(msg.proxy) == p && msg.task == w.task && msg.round == w.round && msg.how == arrived {
			end.replies[msg.master] = msg.reply
		}
	}
	return end
}

func (e *explorer) emitEnd(s *state, p int, mv move, ev event, f func(event, *state)) {
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
	f(ev, e.moved(s, p, mv))
}

// tellLate gives a proxy a reply to a round that is over.
func (e *explorer) tellLate(s *state, ev event, msg message, r replyID, f func(event, *state)) {
	p := int(msg.proxy)
	in := input{what: late, at: s.at, task: msg.task, round: msg.round, master: msg.master}
	in.replies[0] = r
	mv := e.machines[p].move(s.proxies[p], in)
	ev.move, ev.proxy = mv, p
	f(ev, e.moved(s, p, mv))
}

// lateAnswer has an answer that has not been counted arrive or get lost.
func (e *explorer) lateAnswer(s *state, i int, f func(event, *state)) {
	msg := s.flight[i]
	r := e.machines[msg.proxy].states[s.proxies[msg.proxy]].heed(msg.task, msg.round)
	if r == nil || len(r.laters) == 0 {
		return
	}
	t := s.clone()
	t.flight = without(t.flight, i)
	ev := event{name: "late answer", message: msg, proxy: -1, master: -1}
	e.tellLate(t, ev, msg, msg.reply, f)
	if e.Losses < 0 || int(t.losses) < e.Losses {
		t.losses++
		ev.name = "lost late answer"
		e.tellLate(t, ev, msg, unknown, f)
	}
}

// lose has a proxy give up waiting for a late answer, to a message that may still arrive.
func (e *explorer) lose(s *state, i int, f func(event, *state)) {
	msg := s.flight[i]
	p := int(msg.proxy)
	r := e.machines[p].states[s.proxies[p]].heed(msg.task, msg.round)
	if r == nil || len(r.laters) == 0 || e.Losses >= 0 && int(s.losses) >= e.Losses {
		return
	}
	t := s.clone()
	for j := range t.flight[:i+1] {
		other := &t.flight[j]
		if other.proxy == msg.proxy && other.master == msg.master && (other.how == told || j == i) {
			other.how = stray
		}
	}
	if e.Losses >= 0 {
		t.losses++
	}
	e.tellLate(t, event{name: "lose", message: msg, proxy: -1, master: -1}, msg, unknown, f)
}

// giveUp ends rounds in ways that no delivery does.
func (e *explorer) giveUp(s *state, f func(event, *state)) {
	for p, id := range s.proxies {
		n := e.machines[p].states[id]
		for i := range n.waits {
			w := &n.waits[i]
			end := ending{state: id, task: w.task, round: w.round, at: s.at, last: noMaster}
			if s.at != w.begun || e.Unreachable { // a master that has done it was asked
				end = e.ending(s, w, p, noMaster)
			}
			for _, mv := range e.machines[p].end(end) {
				e.emitEnd(s, p, mv, event{name: "round ends", proxy: -1, master: -1}, f)
			}
		}
	}
}

// callbacks fires one.
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
			mv := e.machines[p].move(id, input{what: fire, at: s.at, task: uint8(i)})
			f(event{name: "fire " + cb.name, move: mv, proxy: p, master: -1}, e.moved(t, p, mv))
		}
	}
}

// time goes on, or a master's cell expires whose time is over.
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

// outlives reports whether a mark that was put when what a master holds was removed, or before, has
// not yet ended: it does so first, by a second.
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
