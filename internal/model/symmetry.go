package model

import (
	"bytes"
	"cmp"
	"slices"
)

// Masters that stand alike may be renumbered: what follows is the same. The search keeps
// one of the states that differ in nothing else.

// order is a renumbering: the new number of each master.
type order [maxMasters]uint8

// asTheyAre leaves each its number.
var asTheyAre = order{0, 1, 2, 3, 4}

// renumbering is a state of a proxy whose masters are renumbered.
type renumbering struct {
	state uint32
	order order
}

// renumbered is the state in which a proxy is if the masters had these numbers.
func (m *machine) renumbered(from uint32, o order) uint32 {
	r := renumbering{from, o}
	if to, known := m.renumberings[r]; known {
		return to
	}
	p := newProxy(m.lab, m.number)
	log := make([]input, len(m.states[from].log))
	for i, in := range m.states[from].log {
		log[i] = in
		switch in.what {
		case end:
			for master := range m.total() {
				log[i].replies[o[master]] = in.replies[master]
			}
		case late:
			log[i].master = o[in.master]
		}
		p.take(log[i])
	}
	to := m.state(p, log)
	p.close()
	m.renumberings[r] = to
	return to
}

// renumbered is the state with other numbers for the masters.
func (e *explorer) renumbered(s *state, o order) *state {
	t := s.clone()
	for i := range s.masters {
		t.masters[o[i]] = s.masters[i]
	}
	for i := range t.flight {
		t.flight[i].master = o[s.flight[i].master]
	}
	for p, id := range s.proxies {
		t.proxies[p] = e.machines[p].renumbered(id, o)
	}
	t.target.renumber(o)
	t.change.renumber(o)
	t.tidy()
	return t
}

// text is that of a state, the same for all that differ in their masters' numbers only.
func (e *explorer) text(s *state) []byte {
	s.tidy()
	text := s.text(make([]byte, 0, 160))
	if e.Fires > 0 || e.Ordered {
		return text // callbacks are told apart by the order in which they came, or masters by which is preferred
	}
	first := true
	for _, o := range e.orders(s) {
		other := text
		if o != asTheyAre {
			other = e.renumbered(s, o).text(make([]byte, 0, len(text)))
		}
		if first || bytes.Compare(other, text) < 0 {
			text = other
		}
		first = false
	}
	return text
}

// orders are the renumberings that sort the masters by what stands there and is on its way
// there.
func (e *explorer) orders(s *state) []order {
	signs := make([][]byte, e.total())
	for m := range s.masters {
		signs[m] = append([]byte{e.role(m)}, s.sign(m)...)
	}
	sorted := make([]int, e.total())
	for m := range sorted {
		sorted[m] = m
	}
	slices.SortStableFunc(sorted, func(a, b int) int {
		return cmp.Or(bytes.Compare(signs[a], signs[b]), cmp.Compare(a, b))
	})
	var all []order
	permute(sorted, 0, func(i, j int) bool { return bytes.Equal(signs[i], signs[j]) }, func(places []int) {
		o := asTheyAre
		for place, m := range places {
			o[m] = uint8(place)
		}
		all = append(all, o)
	})
	return all
}

// permute goes through the orders of those that are alike and stand together.
func permute(places []int, from int, alike func(i, j int) bool, f func([]int)) {
	if from == len(places) {
		f(places)
		return
	}
	for i := from; i < len(places) && alike(places[from], places[i]); i++ {
		places[from], places[i] = places[i], places[from]
		permute(places, from+1, alike, f)
		places[from], places[i] = places[i], places[from]
	}
}

// sign is what stands at a master and is on its way there.
func (s *state) sign(m int) []byte {
	b := make([]byte, 0, 64)
	b = append(appendWords(b, uint32(s.masters[m].cell), s.target.sign(m), s.change.sign(m)), s.masters[m].fence)
	for _, msg := range s.flight {
		if int(msg.master) == m {
			b = append(b, msg.proxy, msg.task, msg.round, byte(msg.how))
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
