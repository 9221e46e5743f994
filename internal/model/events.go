package model

import (
	"slices"
	"time"

	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/register"
)

// root returns the initial state of a scenario.
func (e *explorer) root() *state {
	s := &state{proxies: make([]uint32, len(e.machines)), masters: make([]masterState, e.masterCount())}
	switch {
	case e.InitialHolders > 0:
		s = e.grantInitialLock(s)
	case e.InitiallyRemoved:
		e.setRemoved(s)
	}
	for m, master := range s.masters {
		e.initialCells[m] = master.cell
	}
	return s
}

// grantInitialLock executes the first operation, a lock that is granted, on the first
// InitialHolders masters.
func (e *explorer) grantInitialLock(s *state) *state {
	p := e.Ops[0].Proxy
	s.startedOps |= 1
	s.history = e.history.afterStart(s.history, s.at, 0)
	s = e.afterMove(s, p, e.machines[p].move(s.proxies[p], input{kind: inputStart, task: 0}))
	for m := range e.InitialHolders {
		e.successors(s, func(ev event, next *state) {
			in := ev.move.in
			lossy := in.timeout ||
				slices.Contains(in.replies[:e.N], replyUnknown) || slices.Contains(in.replies[:e.N], replyFailed)
			if ev.name == "deliver" && int(ev.message.master) == m && !lossy {
				s = next
			}
		})
	}
	if s.results[0] != okReply {
		panic("the lock was not granted")
	}
	s.inFlight = nil
	return s
}

// setRemoved sets the cells to a removal by ballot, as if a lock of another proxy had been removed.
func (e *explorer) setRemoved(s *state) {
	source := numberedSource(len(e.machines))
	removed := cell.Cell{Form: cell.Register, Attempt: source.Attempt(), Promised: source.Ballot(1), Accepted: source.Ballot(1)}
	removed.Value = cell.Value{}.WithChange(cell.Value{}, source.Change())
	for m := range e.N {
		s.masters[m].cell = e.cellID(content{Cell: removed})
	}
}

// afterMove returns the state after a move of a proxy.
func (e *explorer) afterMove(s *state, p int, m move) *state {
	t := s.clone()
	in := m.in
	t.proxies[p] = m.to
	if in.kind == inputRoundEnd {
		e.endRound(t, p, in)
	}
	for _, sn := range m.sentMessages {
		msg := message{proxy: uint8(p), task: sn.task, round: sn.round, master: sn.master, op: sn.op}
		if sn.oneWay {
			msg.status = messageOneWay
		}
		t.inFlight = append(t.inFlight, msg)
	}
	for _, a := range m.clientReplies {
		t.history = e.history.afterReply(t.history, t.at, a)
		t.results[a.op] = a.code
		if a.fence != 0 && a.fence <= t.fence {
			t.fenceDisorder = true
		}
		t.fence = max(t.fence, a.fence)
		for _, d := range a.deadAttempts {
			id := e.attempts.id(string(d), func() cell.Attempt { return d })
			if !slices.Contains(t.deadAttempts, id) {
				t.deadAttempts = append(t.deadAttempts, id)
				slices.Sort(t.deadAttempts)
			}
		}
	}
	e.mergeMessages(t, p)
	return t
}

// endRound removes the messages whose replies ended a round.
func (e *explorer) endRound(t *state, p int, in input) {
	remaining := t.inFlight[:0]
	for _, msg := range t.inFlight {
		if int(msg.proxy) != p || msg.task != in.task || msg.round != in.round ||
			msg.status != messageSent && msg.status != messageArrived {
			remaining = append(remaining, msg)
			continue
		}
		switch r := in.replies[msg.master]; {
		case r == replyPending:
			remaining = append(remaining, msg)
		case r == replyFailed: // the proxy did not send the message
		case r == replyUnknown && msg.status == messageSent:
			for i := range remaining { // the broken connection no longer orders its messages
				if remaining[i].proxy == msg.proxy && remaining[i].master == msg.master && remaining[i].status == messageOneWay {
					remaining[i].status = messageUnordered
				}
			}
			msg.status = messageUnordered
			remaining = append(remaining, msg)
		}
	}
	t.inFlight = remaining
	for _, r := range in.replies {
		if r == replyUnknown {
			t.losses++
		}
	}
	if e.Losses < 0 {
		t.losses = 0
	}
}

// mergeMessages removes differences between messages if they no longer matter.
func (e *explorer) mergeMessages(t *state, p int) {
	n := e.machines[p].states[t.proxies[p]]
	remaining := t.inFlight[:0]
	for _, msg := range t.inFlight {
		if int(msg.proxy) == p && (msg.status == messageSent || msg.status == messageArrived) &&
			n.wait(msg.task, msg.round) == nil && !n.awaitsReply(msg) {
			if msg.status == messageArrived {
				continue
			}
			msg.status = messageOneWay
		}
		if msg.status == messageOneWay || msg.status == messageUnordered {
			msg.task, msg.round = 0, 0
			if !e.ops.values[msg.op].Writes() {
				continue
			}
		}
		remaining = append(remaining, msg)
	}
	t.inFlight = remaining
}

// awaitsReply reports whether the late reply to a message still matters.
func (n *proxyState) awaitsReply(msg message) bool {
	r := n.lateRound(msg.task, msg.round)
	return r != nil && r.pending>>msg.master&1 == 1
}

// withoutMessage returns all messages except the i-th.
func withoutMessage(messages []message, i int) []message {
	return append(slices.Clone(messages[:i]), messages[i+1:]...)
}

// successors calls f with each possible next event and the state after it.
func (e *explorer) successors(s *state, f func(event, *state)) {
	e.emitStarts(s, f)
	for i := range s.inFlight {
		switch msg := s.inFlight[i]; msg.status {
		case messageArrived:
			e.emitLateReply(s, i, f)
		default:
			if e.mayArrive(s, i) {
				e.emitDelivery(s, i, f)
			}
			if msg.status == messageSent {
				e.emitReplyLoss(s, i, f)
			}
		}
	}
	e.emitRoundEnds(s, f)
	e.emitCallbacks(s, f)
	e.emitClockSteps(s, f)
	e.emitCatchUpSteps(s, f)
	e.emitChangeSteps(s, f)
}

func (e *explorer) emitStarts(s *state, f func(event, *state)) {
	for i, op := range e.Ops {
		if s.startedOps>>i&1 == 1 || !s.allows(op) || e.usesNewSet(op.Proxy) && !e.newSetServes(s) {
			continue
		}
		t := s.clone()
		t.startedOps |= 1 << i
		t.history = e.history.afterStart(t.history, t.at, uint8(i))
		m := e.machines[op.Proxy].move(t.proxies[op.Proxy], input{kind: inputStart, at: t.at, task: uint8(i)})
		f(event{name: "", move: m, proxy: op.Proxy, master: -1}, e.afterMove(t, op.Proxy, m))
	}
}

// allows reports whether an operation may start in this state.
func (s *state) allows(op Op) bool {
	for i, required := range op.After {
		c := s.results[required-1]
		if c == noReply || op.AfterSuccess && i == len(op.After)-1 && c != okReply {
			return false
		}
	}
	return true
}

// mayArrive reports whether a message is the next to arrive on its connection. No earlier message
// may be in flight on the connection. Replies come in order, too: no reply that still matters to
// the proxy may be on its way.
func (e *explorer) mayArrive(s *state, i int) bool {
	msg := s.inFlight[i]
	if msg.status == messageUnordered {
		return true
	}
	n := e.machines[msg.proxy].states[s.proxies[msg.proxy]]
	for j, other := range s.inFlight {
		switch {
		case other.proxy != msg.proxy || other.master != msg.master:
		case j < i && (other.status == messageSent || other.status == messageOneWay):
			return false
		case other.status == messageArrived && msg.status == messageSent && n.awaitsReply(other):
			return false
		}
	}
	return true
}

// emitDelivery lets a master execute the operation of a message. A master may refuse an operation
// on several keys because of the other key.
func (e *explorer) emitDelivery(s *state, i int, f func(event, *state)) {
	e.emitExecution(s, i, false, f)
	take, isTake := e.ops.values[s.inFlight[i].op].(cell.Take)
	if isTake && len(take.Names) > 1 && int(s.otherKeyTaken) < e.OtherKeyTaken {
		t := s.clone()
		t.otherKeyTaken++
		e.emitExecution(t, i, true, f)
	}
}

// emitExecution lets a master execute the operation of a message. otherKeyTaken is set if the other
// key is not free on the master.
func (e *explorer) emitExecution(s *state, i int, otherKeyTaken bool, f func(event, *state)) {
	msg := s.inFlight[i]
	m := msg.master
	result := e.apply(applyKey{
		cell: s.masters[m].cell, fence: s.masters[m].fence, op: msg.op, at: s.at,
		counted: e.hasVoteFor(s, int(msg.proxy), int(m)), otherKeyTaken: otherKeyTaken,
	})
	t := s.clone()
	t.masters[m] = masterState{result.cell, result.fence}
	t.inFlight = withoutMessage(t.inFlight, i)
	ev := event{name: "deliver", message: msg, proxy: -1, master: -1}
	if msg.status != messageSent {
		f(ev, t)
		return
	}
	p := int(msg.proxy)
	machine := e.machines[p]
	n := machine.states[t.proxies[p]]
	arrivedMessage := msg
	arrivedMessage.status, arrivedMessage.reply = messageArrived, result.reply
	if w := n.wait(msg.task, msg.round); w != nil {
		u := t.clone()
		u.inFlight = append(u.inFlight, arrivedMessage)
		f(ev, u)
		for _, mv := range machine.endMoves(e.repliesSoFar(u, w, p, m)) {
			e.emitRoundEnd(u, p, mv, ev, f)
		}
		return
	}
	r := n.lateRound(msg.task, msg.round)
	if r == nil || r.pending>>m&1 == 0 {
		f(ev, t)
		return
	}
	if len(r.lateFuncs) == 0 {
		t.inFlight = append(t.inFlight, arrivedMessage)
		f(ev, t)
		return
	}
	e.deliverLateReply(t, ev, msg, result.reply, f)
	if e.Losses < 0 || int(t.losses) < e.Losses {
		t.losses++
		e.deliverLateReply(t, ev, msg, replyUnknown, f)
	}
}

// repliesSoFar returns the replies to a task's round so far.
func (e *explorer) repliesSoFar(s *state, w *wait, p int, lastMaster uint8) endKey {
	key := endKey{state: s.proxies[p], task: w.task, round: w.round, at: s.at, lastMaster: lastMaster}
	for _, msg := range s.inFlight {
		if int(msg.proxy) == p && msg.task == w.task && msg.round == w.round && msg.status == messageArrived {
			key.replies[msg.master] = msg.reply
		}
	}
	return key
}

// emitRoundEnd calls f with the end of a round, unless that loses more replies than the scenario
// allows.
func (e *explorer) emitRoundEnd(s *state, p int, mv move, ev event, f func(event, *state)) {
	losses := 0
	for _, r := range mv.in.replies {
		if r == replyUnknown {
			losses++
		}
	}
	if e.Losses >= 0 && int(s.losses)+losses > e.Losses {
		return
	}
	ev.move, ev.proxy = mv, p
	f(ev, e.afterMove(s, p, mv))
}

// deliverLateReply delivers a reply to a proxy after the round has ended. It calls f with the event
// and the state after it.
func (e *explorer) deliverLateReply(s *state, ev event, msg message, r replyID, f func(event, *state)) {
	p := int(msg.proxy)
	in := input{kind: inputLateReply, at: s.at, task: msg.task, round: msg.round, master: msg.master}
	in.replies[0] = r
	mv := e.machines[p].move(s.proxies[p], in)
	ev.move, ev.proxy = mv, p
	f(ev, e.afterMove(s, p, mv))
}

// emitLateReply lets a reply arrive after its round has ended, or get lost.
func (e *explorer) emitLateReply(s *state, i int, f func(event, *state)) {
	msg := s.inFlight[i]
	r := e.machines[msg.proxy].states[s.proxies[msg.proxy]].lateRound(msg.task, msg.round)
	if r == nil || len(r.lateFuncs) == 0 {
		return
	}
	t := s.clone()
	t.inFlight = withoutMessage(t.inFlight, i)
	ev := event{name: "late answer", message: msg, proxy: -1, master: -1}
	e.deliverLateReply(t, ev, msg, msg.reply, f)
	if e.Losses < 0 || int(t.losses) < e.Losses {
		t.losses++
		ev.name = "lost late answer"
		e.deliverLateReply(t, ev, msg, replyUnknown, f)
	}
}

// emitReplyLoss breaks the connection of a late reply. The message itself may still arrive.
func (e *explorer) emitReplyLoss(s *state, i int, f func(event, *state)) {
	msg := s.inFlight[i]
	p := int(msg.proxy)
	r := e.machines[p].states[s.proxies[p]].lateRound(msg.task, msg.round)
	if r == nil || len(r.lateFuncs) == 0 || e.Losses >= 0 && int(s.losses) >= e.Losses {
		return
	}
	t := s.clone()
	for j := range t.inFlight[:i+1] {
		other := &t.inFlight[j]
		if other.proxy == msg.proxy && other.master == msg.master && (other.status == messageOneWay || j == i) {
			other.status = messageUnordered
		}
	}
	if e.Losses >= 0 {
		t.losses++
	}
	e.deliverLateReply(t, event{name: "lose", message: msg, proxy: -1, master: -1}, msg, replyUnknown, f)
}

// emitRoundEnds ends rounds without a delivery.
func (e *explorer) emitRoundEnds(s *state, f func(event, *state)) {
	for p, id := range s.proxies {
		n := e.machines[p].states[id]
		for i := range n.waits {
			w := &n.waits[i]
			key := endKey{state: id, task: w.task, round: w.round, at: s.at, lastMaster: noMaster}
			if s.at != w.startedAt || e.Unreachable { // the replies so far count
				key = e.repliesSoFar(s, w, p, noMaster)
			}
			for _, mv := range e.machines[p].endMoves(key) {
				e.emitRoundEnd(s, p, mv, event{name: "round ends", proxy: -1, master: -1}, f)
			}
		}
	}
}

func (e *explorer) emitCallbacks(s *state, f func(event, *state)) {
	if int(s.callbacks) >= e.Callbacks {
		return
	}
	for p, id := range s.proxies {
		n := e.machines[p].states[id]
		for i, cb := range n.callbacks {
			if n.turnTaken || cb.needsRoundTime && e.elapsedTime(s.at)-e.elapsedTime(cb.createdAt) <= register.Limit {
				continue
			}
			t := s.clone()
			t.callbacks++
			mv := e.machines[p].move(id, input{kind: inputCallback, at: s.at, task: uint8(i)})
			f(event{name: "fire " + cb.name, move: mv, proxy: p, master: -1}, e.afterMove(t, p, mv))
		}
	}
}

// emitClockSteps advances the clock, or removes a master's cell that has expired.
func (e *explorer) emitClockSteps(s *state, f func(event, *state)) {
	if s.at.slowTicks() < e.SlowTicks {
		t := s.clone()
		t.at++
		f(event{name: "a round's time passes", proxy: -1, master: -1}, t)
	}
	if s.at.leaseTicks() < e.LeaseTicks {
		t := s.clone()
		t.at += 16
		f(event{name: "a lease's time passes", proxy: -1, master: -1}, t)
	}
	for m, master := range s.masters {
		if expiry := e.cells.values[master.cell].expiry; expiry != 0 && expiry <= scenarioStart+e.elapsedTime(s.at) && !e.mustOutlive(s, m) {
			t := s.clone()
			t.masters[m].cell = 0
			f(event{name: "expiry at", proxy: -1, master: m}, t)
		}
	}
}

// mustOutlive reports whether this master's cell is a removal, and another master has a mark that
// must expire before it. Such a mark is as old as the removal or older, and expires at least a
// second earlier.
func (e *explorer) mustOutlive(s *state, m int) bool {
	removal := e.cells.values[s.masters[m].cell]
	if removal.Form != cell.Register || removal.Value.Present {
		return false
	}
	for _, other := range s.masters {
		if c := e.cells.values[other.cell]; c.Form == cell.Mark && c.expiry != 0 && c.expiry+time.Second <= removal.expiry {
			return true
		}
	}
	return false
}
