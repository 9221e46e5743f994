package model

import "redlock-proxy/quorum/register"

// machine represents a proxy as an automaton. It numbers the states of the proxy, and computes its
// moves on demand.
type machine struct {
	*tables
	number    int
	states    []*proxyState
	byText    map[string]uint32
	moves     map[moveKey]move
	roundEnds map[endKey][]move
	// renumberings maps a state and a renumbering of the masters to the renumbered state.
	renumberings map[renumberKey]uint32
}

// proxyState holds a state of a proxy.
type proxyState struct {
	log []input
	// waits lists the rounds for which tasks wait.
	waits []wait
	// lateRounds lists the ended rounds whose late replies still matter.
	lateRounds []round
	// callbacks lists the pending callbacks.
	callbacks []callback
	// turnTaken is set while a task has the turn to replace the key. Callbacks wait for the turn.
	turnTaken bool
}

// wait describes a round for which a task waits.
type wait struct {
	task, round uint8
	startedAt   clock
	decided     func([]register.Reply) bool
	sentTo      [maxMasters]bool
}

// moveKey identifies a move by the proxy's state and the input.
type moveKey struct {
	fromState uint32
	in        input
}

// move holds the result of an input.
type move struct {
	to            uint32
	sentMessages  []sentMessage
	clientReplies []clientReply
	in            input
}

func newMachine(l *tables, number int) *machine {
	m := &machine{
		tables: l, number: number, byText: map[string]uint32{},
		moves: map[moveKey]move{}, roundEnds: map[endKey][]move{}, renumberings: map[renumberKey]uint32{},
	}
	p := newProxy(l, number)
	m.state(p, nil)
	return m
}

// state returns the number of a proxy's state. log holds the inputs that led to it.
func (m *machine) state(p *proxy, log []input) uint32 {
	text := p.String()
	if id, known := m.byText[text]; known {
		return id
	}
	n := &proxyState{log: log, turnTaken: p.turnHolder != nil}
	for _, r := range p.rounds {
		if r.task.round == r {
			w := wait{task: r.task.id, round: r.number, startedAt: r.startedAt, decided: r.decided}
			for i, op := range r.ops {
				w.sentTo[p.masters[i]] = op != nil
			}
			n.waits = append(n.waits, w)
		} else {
			n.lateRounds = append(n.lateRounds, round{
				task: &task{id: r.task.id}, number: r.number, pending: r.pending, lateFuncs: r.lateFuncs,
			})
		}
	}
	for _, cb := range p.callbacks {
		n.callbacks = append(n.callbacks, callback{name: cb.name, createdAt: cb.createdAt, needsRoundTime: cb.needsRoundTime})
	}
	id := uint32(len(m.states))
	m.states = append(m.states, n)
	m.byText[text] = id
	return id
}

// move returns the result of an input in a state.
func (m *machine) move(from uint32, in input) move {
	if cached, ok := m.moves[moveKey{from, in}]; ok {
		return cached
	}
	p := newProxy(m.tables, m.number)
	old := m.states[from].log
	for _, earlier := range old {
		p.handle(earlier)
	}
	p.handle(in)
	log := append(old[:len(old):len(old)], in)
	result := move{to: m.state(p, log), sentMessages: p.sentMessages, clientReplies: p.clientReplies, in: in}
	p.close()
	m.moves[moveKey{from, in}] = result
	return result
}

// wait returns the round if its task waits for it, else nil.
func (n *proxyState) wait(task, round uint8) *wait {
	for i := range n.waits {
		if w := &n.waits[i]; w.task == task && w.round == round {
			return w
		}
	}
	return nil
}

// lateRound returns the round if it has ended and its late replies still matter, else nil.
func (n *proxyState) lateRound(task, number uint8) *round {
	for i := range n.lateRounds {
		if r := &n.lateRounds[i]; r.task.id == task && r.number == number {
			return r
		}
	}
	return nil
}

// endKey identifies a round and its replies so far. lastMaster is the master that replied last, or
// noMaster.
type endKey struct {
	state      uint32
	task       uint8
	round      uint8
	at         clock
	lastMaster uint8
	replies    [maxMasters]replyID
}

// noMaster is the value of endKey.lastMaster if no reply causes the end of the round.
const noMaster = 255

// endMoves returns the moves with which a round can end: with all replies so far, or with some of
// them while the rest are late or lost.
func (m *machine) endMoves(e endKey) []move {
	if cached, ok := m.roundEnds[e]; ok {
		return cached
	}
	w := m.states[e.state].wait(e.task, e.round)
	var moves []move
	m.choose(w, e, 0, [maxMasters]replyID{}, func(chosenReplies [maxMasters]replyID) {
		in := input{kind: inputRoundEnd, at: e.at, task: e.task, round: e.round, replies: chosenReplies}
		moves = append(moves, m.move(e.state, in))
	})
	if m.Timeouts {
		in := input{kind: inputRoundEnd, at: e.at, task: e.task, round: e.round, replies: e.replies, timeout: true}
		for i, wasSent := range w.sentTo {
			if !wasSent && i < m.masterCount() {
				in.replies[i] = replyFailed
			}
		}
		if !m.endsWith(w, in.replies) {
			moves = append(moves, m.move(e.state, in))
		}
	}
	m.roundEnds[e] = moves
	return moves
}

// choose calls f with each combination of replies with which a round can end.
func (m *machine) choose(w *wait, e endKey, i int, chosenReplies [maxMasters]replyID, f func([maxMasters]replyID)) {
	if i == m.masterCount() {
		if m.endsWith(w, chosenReplies) && m.isReachable(w, chosenReplies) {
			f(chosenReplies)
		}
		return
	}
	if !w.sentTo[i] {
		chosenReplies[i] = replyFailed
		m.choose(w, e, i+1, chosenReplies, f)
		return
	}
	if e.replies[i] != replyPending {
		chosenReplies[i] = e.replies[i]
		m.choose(w, e, i+1, chosenReplies, f)
	}
	if i == int(e.lastMaster) {
		return
	}
	for _, r := range []replyID{replyPending, replyUnknown, replyFailed} {
		if r == replyUnknown && m.Losses == 0 || r == replyFailed && (!m.Unreachable || e.replies[i] != replyPending) {
			continue
		}
		chosenReplies[i] = r
		m.choose(w, e, i+1, chosenReplies, f)
	}
}

// endsWith reports whether a round ends with these replies.
func (m *machine) endsWith(w *wait, chosenReplies [maxMasters]replyID) bool {
	set := m.masterSet(m.number)
	replies := make([]register.Reply, len(set))
	incomplete := false
	for i, master := range set {
		replies[i] = m.reply(chosenReplies[master])
		incomplete = incomplete || chosenReplies[master] == replyPending
	}
	return !incomplete || w.decided(replies)
}

// isReachable reports whether the replies can have come in an order in which the round did not end
// before the last reply.
func (m *machine) isReachable(w *wait, chosenReplies [maxMasters]replyID) bool {
	noReplies := true
	for i := range m.masterCount() {
		if !w.sentTo[i] || chosenReplies[i] == replyPending {
			continue
		}
		noReplies = false
		previous := chosenReplies
		previous[i] = replyPending
		if !m.endsWith(w, previous) && m.isReachable(w, previous) {
			return true
		}
	}
	return noReplies
}
