package model

import "redlock-proxy/quorum/register"

// machine is a proxy as an automaton: its numbered states and its moves, which are computed on
// demand.
type machine struct {
	*tables
	number int
	states []*node
	byText map[string]uint32
	moves  map[moveKey]move
	ends   map[endKey][]move
	// renumberings holds the known states after a renumbering of the masters.
	renumberings map[renumberKey]uint32
}

// node is a state of a proxy.
type node struct {
	log []input
	// waits lists the rounds for which tasks wait.
	waits []wait
	// lateRounds lists the ended rounds whose late replies still matter.
	lateRounds []round
	// callbacks lists the pending callbacks.
	callbacks []callback
	// turn is set while a task has the turn to replace the key. Callbacks wait for it.
	turn bool
}

type wait struct {
	task, round uint8
	begun       clock
	decided     func([]register.Reply) bool
	asked       [maxMasters]bool
}

type moveKey struct {
	from uint32
	in   input
}

// move is the result of an input.
type move struct {
	to      uint32
	sends   []send
	answers []answer
	in      input
}

func newMachine(l *tables, number int) *machine {
	m := &machine{
		tables: l, number: number, byText: map[string]uint32{},
		moves: map[moveKey]move{}, ends: map[endKey][]move{}, renumberings: map[renumberKey]uint32{},
	}
	p := newProxy(l, number)
	m.state(p, nil)
	return m
}

// state returns the number of a proxy's state, to which its log led.
func (m *machine) state(p *proxy, log []input) uint32 {
	text := p.String()
	if id, known := m.byText[text]; known {
		return id
	}
	n := &node{log: log, turn: p.holder != nil}
	for _, r := range p.rounds {
		if r.task.round == r {
			w := wait{task: r.task.id, round: r.number, begun: r.begun, decided: r.decided}
			for i, op := range r.ops {
				w.asked[p.masters[i]] = op != nil
			}
			n.waits = append(n.waits, w)
		} else {
			n.lateRounds = append(n.lateRounds, round{
				task: &task{id: r.task.id}, number: r.number, pending: r.pending, laters: r.laters,
			})
		}
	}
	for _, cb := range p.callbacks {
		n.callbacks = append(n.callbacks, callback{name: cb.name, since: cb.since, long: cb.long})
	}
	id := uint32(len(m.states))
	m.states = append(m.states, n)
	m.byText[text] = id
	return id
}

// move returns the result of an input in a state.
func (m *machine) move(from uint32, in input) move {
	if known, ok := m.moves[moveKey{from, in}]; ok {
		return known
	}
	p := newProxy(m.tables, m.number)
	old := m.states[from].log
	for _, before := range old {
		p.handle(before)
	}
	p.handle(in)
	log := append(old[:len(old):len(old)], in)
	done := move{to: m.state(p, log), sends: p.sends, answers: p.answers, in: in}
	p.close()
	m.moves[moveKey{from, in}] = done
	return done
}

// wait returns a round for which a task waits, or nil.
func (n *node) wait(task, round uint8) *wait {
	for i := range n.waits {
		if w := &n.waits[i]; w.task == task && w.round == round {
			return w
		}
	}
	return nil
}

// lateRound returns an ended round whose late replies still matter, or nil.
func (n *node) lateRound(task, number uint8) *round {
	for i := range n.lateRounds {
		if r := &n.lateRounds[i]; r.task.id == task && r.number == number {
			return r
		}
	}
	return nil
}

// endKey is a round with its replies so far. last is the master that replied last, or noMaster.
type endKey struct {
	state   uint32
	task    uint8
	round   uint8
	at      clock
	last    uint8
	replies [maxMasters]replyID
}

// noMaster is the value of endKey.last without a master.
const noMaster = 255

// end returns the moves with which a round can end: with all replies so far, or with some of them
// while the rest are late or lost.
func (m *machine) end(e endKey) []move {
	if known, ok := m.ends[e]; ok {
		return known
	}
	w := m.states[e.state].wait(e.task, e.round)
	var moves []move
	m.choose(w, e, 0, [maxMasters]replyID{}, func(chosen [maxMasters]replyID) {
		in := input{kind: end, at: e.at, task: e.task, round: e.round, replies: chosen}
		moves = append(moves, m.move(e.state, in))
	})
	if m.Timeouts {
		in := input{kind: end, at: e.at, task: e.task, round: e.round, replies: e.replies, timeout: true}
		for i, asked := range w.asked {
			if !asked && i < m.total() {
				in.replies[i] = failed
			}
		}
		if !m.ended(w, in.replies) {
			moves = append(moves, m.move(e.state, in))
		}
	}
	m.ends[e] = moves
	return moves
}

// choose calls f with all combinations of replies with which a round can end.
func (m *machine) choose(w *wait, e endKey, i int, chosen [maxMasters]replyID, f func([maxMasters]replyID)) {
	if i == m.total() {
		if m.ended(w, chosen) && m.reached(w, chosen) {
			f(chosen)
		}
		return
	}
	if !w.asked[i] {
		chosen[i] = failed
		m.choose(w, e, i+1, chosen, f)
		return
	}
	if e.replies[i] != waiting {
		chosen[i] = e.replies[i]
		m.choose(w, e, i+1, chosen, f)
	}
	if i == int(e.last) {
		return
	}
	for _, r := range []replyID{waiting, unknown, failed} {
		if r == unknown && m.Losses == 0 || r == failed && (!m.Unreachable || e.replies[i] != waiting) {
			continue
		}
		chosen[i] = r
		m.choose(w, e, i+1, chosen, f)
	}
}

// ended reports whether a round ends with these replies.
func (m *machine) ended(w *wait, chosen [maxMasters]replyID) bool {
	set := m.set(m.number)
	replies := make([]register.Reply, len(set))
	open := false
	for i, master := range set {
		replies[i] = m.reply(chosen[master])
		open = open || chosen[master] == waiting
	}
	return !open || w.decided(replies)
}

// reached reports whether the replies can have come in an order in which the round did not end
// before the last one.
func (m *machine) reached(w *wait, chosen [maxMasters]replyID) bool {
	none := true
	for i := range m.total() {
		if !w.asked[i] || chosen[i] == waiting {
			continue
		}
		none = false
		before := chosen
		before[i] = waiting
		if !m.ended(w, before) && m.reached(w, before) {
			return true
		}
	}
	return none
}
