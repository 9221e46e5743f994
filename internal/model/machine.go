package model

import "redlock-proxy/quorum/register"

// machine is one proxy as an automaton: its states by number, and what leads from one to
// another, worked out when it is first asked for.
type machine struct {
	*lab
	number int
	states []*node
	byText map[string]uint32
	moves  map[moving]move
	ends   map[ending][]move
	// renumberings are what is known of states with other numbers for the masters.
	renumberings map[renumbering]uint32
}

// node is a state of a proxy.
type node struct {
	log []input
	// waits are the rounds that tasks wait for.
	waits []wait
	// heeds are the rounds that are over of which late replies matter.
	heeds []round
	// callbacks are those that may come.
	callbacks []callback
	// turn: a task has the turn to replace the key, which a callback waits for.
	turn bool
}

type wait struct {
	task, round uint8
	begun       clock
	decided     func([]register.Reply) bool
	asked       [maxMasters]bool
}

type moving struct {
	from uint32
	in   input
}

// move is what an input leads to.
type move struct {
	to      uint32
	sends   []send
	answers []answer
	in      input
}

func newMachine(l *lab, number int) *machine {
	m := &machine{lab: l, number: number, byText: map[string]uint32{}, moves: map[moving]move{}, ends: map[ending][]move{}, renumberings: map[renumbering]uint32{}}
	p := newProxy(l, number)
	m.state(p, nil)
	return m
}

// state is the number of the state that a proxy is in after a log.
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
			n.heeds = append(n.heeds, round{task: &task{id: r.task.id}, number: r.number, pending: r.pending, laters: r.laters})
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

// move is what an input leads to from a state.
func (m *machine) move(from uint32, in input) move {
	if known, ok := m.moves[moving{from, in}]; ok {
		return known
	}
	p := newProxy(m.lab, m.number)
	old := m.states[from].log
	for _, before := range old {
		p.take(before)
	}
	p.take(in)
	log := append(old[:len(old):len(old)], in)
	done := move{to: m.state(p, log), sends: p.sends, answers: p.answers, in: in}
	p.close()
	m.moves[moving{from, in}] = done
	return done
}

// wait is what a task waits for, or nil.
func (n *node) wait(task, round uint8) *wait {
	for i := range n.waits {
		if w := &n.waits[i]; w.task == task && w.round == round {
			return w
		}
	}
	return nil
}

// heed is the round that is over of which late replies matter, or nil.
func (n *node) heed(task, number uint8) *round {
	for i := range n.heeds {
		if r := &n.heeds[i]; r.task.id == task && r.number == number {
			return r
		}
	}
	return nil
}

// ending is a round with the replies that have come to it, of which the one of a master
// is the last (or of none: noMaster).
type ending struct {
	state   uint32
	task    uint8
	round   uint8
	at      clock
	last    uint8
	replies [maxMasters]replyID
}

// noMaster stands for none.
const noMaster = 255

// end are the ways in which a round can end with the replies that have come, or with some
// of them while others are late or lost.
func (m *machine) end(e ending) []move {
	if known, ok := m.ends[e]; ok {
		return known
	}
	w := m.states[e.state].wait(e.task, e.round)
	var moves []move
	m.choose(w, e, 0, [maxMasters]replyID{}, func(chosen [maxMasters]replyID) {
		moves = append(moves, m.move(e.state, input{what: end, at: e.at, task: e.task, round: e.round, replies: chosen}))
	})
	if m.Timeouts {
		in := input{what: end, at: e.at, task: e.task, round: e.round, replies: e.replies, timeout: true}
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

// choose goes through the replies with which a round may end.
func (m *machine) choose(w *wait, e ending, i int, chosen [maxMasters]replyID, f func([maxMasters]replyID)) {
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

// ended reports whether a round is over with these replies.
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

// reached reports whether the replies may have come in such an order that the round was
// not over before.
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
