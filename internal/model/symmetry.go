package model

import (
	"bytes"
	"cmp"
	"slices"
)

// Masters with the same role can be renumbered without changing the behaviour. Of the states that
// differ only in the numbers of the masters, the search keeps one.

// renumbering maps each master to its new number.
type renumbering [maxMasters]uint8

// identity is the renumbering that changes no number.
var identity = renumbering{0, 1, 2, 3, 4}

// renumberKey identifies a state of a proxy and a renumbering of its masters.
type renumberKey struct {
	state uint32
	order renumbering
}

// renumberedState returns a proxy's state after a renumbering of the masters.
func (m *machine) renumberedState(from uint32, o renumbering) uint32 {
	r := renumberKey{from, o}
	if to, known := m.renumberings[r]; known {
		return to
	}
	p := newProxy(m.tables, m.number)
	log := make([]input, len(m.states[from].log))
	for i, in := range m.states[from].log {
		log[i] = in
		switch in.kind {
		case inputRoundEnd:
			for master := range m.masterCount() {
				log[i].replies[o[master]] = in.replies[master]
			}
		case inputLateReply:
			log[i].master = o[in.master]
		}
		p.handle(log[i])
	}
	to := m.state(p, log)
	p.close()
	m.renumberings[r] = to
	return to
}

// renumbered returns the state after a renumbering of the masters.
func (e *explorer) renumbered(s *state, o renumbering) *state {
	t := s.clone()
	for i := range s.masters {
		t.masters[o[i]] = s.masters[i]
	}
	for i := range t.inFlight {
		t.inFlight[i].master = o[s.inFlight[i].master]
	}
	for p, id := range s.proxies {
		t.proxies[p] = e.machines[p].renumberedState(id, o)
	}
	t.catchUp.renumber(o)
	t.change.renumber(o)
	t.normalize()
	return t
}

// encode returns a state as bytes. States that differ only in the numbers of the masters have equal
// bytes, unless the scenario has callbacks or PreferSomeMasters.
func (e *explorer) encode(s *state) []byte {
	s.normalize()
	text := s.encode(make([]byte, 0, 160))
	if e.Callbacks > 0 || e.PreferSomeMasters {
		return text // the order of callbacks distinguishes masters, or proxies prefer some of them
	}
	first := true
	for _, o := range e.renumberings(s) {
		candidate := text
		if o != identity {
			candidate = e.renumbered(s, o).encode(make([]byte, 0, len(text)))
		}
		if first || bytes.Compare(candidate, text) < 0 {
			text = candidate
		}
		first = false
	}
	return text
}

// renumberings returns the renumberings that sort the masters by their signatures.
func (e *explorer) renumberings(s *state) []renumbering {
	signatures := make([][]byte, e.masterCount())
	for m := range s.masters {
		signatures[m] = append([]byte{e.role(m)}, s.signature(m)...)
	}
	sorted := make([]int, e.masterCount())
	for m := range sorted {
		sorted[m] = m
	}
	slices.SortStableFunc(sorted, func(a, b int) int {
		return cmp.Or(bytes.Compare(signatures[a], signatures[b]), cmp.Compare(a, b))
	})
	var result []renumbering
	permute(sorted, 0, func(i, j int) bool { return bytes.Equal(signatures[i], signatures[j]) }, func(order []int) {
		o := identity
		for position, m := range order {
			o[m] = uint8(position)
		}
		result = append(result, o)
	})
	return result
}

// permute calls f with all permutations of adjacent, equal masters.
func permute(order []int, from int, equal func(i, j int) bool, f func([]int)) {
	if from == len(order) {
		f(order)
		return
	}
	for i := from; i < len(order) && equal(order[from], order[i]); i++ {
		order[from], order[i] = order[i], order[from]
		permute(order, from+1, equal, f)
		order[from], order[i] = order[i], order[from]
	}
}

// signature returns a master's state and the messages to it, as bytes.
func (s *state) signature(m int) []byte {
	b := make([]byte, 0, 64)
	b = appendWords(b, uint32(s.masters[m].cell), s.catchUp.signature(m), s.change.signature(m))
	b = append(b, s.masters[m].fence)
	for _, msg := range s.inFlight {
		if int(msg.master) == m {
			b = append(b, msg.proxy, msg.task, msg.round, byte(msg.status))
			b = appendWords(b, uint32(msg.op), uint32(msg.reply))
		}
	}
	return b
}

func appendWords(b []byte, words ...uint32) []byte {
	for _, w := range words {
		b = append(b, byte(w>>24), byte(w>>16), byte(w>>8), byte(w))
	}
	return b
}
