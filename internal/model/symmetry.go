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

// unchanged is the renumbering that changes no number.
var unchanged = renumbering{0, 1, 2, 3, 4}

// renumberKey is a state of a proxy and a renumbering of its masters.
type renumberKey struct {
	state uint32
	order renumbering
}

// renumbered returns a proxy's state after a renumbering of the masters.
func (m *machine) renumbered(from uint32, o renumbering) uint32 {
	r := renumberKey{from, o}
	if to, known := m.renumberings[r]; known {
		return to
	}
	p := newProxy(m.tables, m.number)
	log := make([]input, len(m.states[from].log))
	for i, in := range m.states[from].log {
		log[i] = in
		switch in.kind {
		case end:
			for master := range m.total() {
				log[i].replies[o[master]] = in.replies[master]
			}
		case late:
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

// encode returns a state as bytes. States that differ only in the numbers of the masters have equal
// bytes.
func (e *explorer) encode(s *state) []byte {
	s.tidy()
	text := s.encode(make([]byte, 0, 160))
	if e.Fires > 0 || e.Ordered {
		return text // the order of callbacks distinguishes masters, or proxies prefer some of them
	}
	first := true
	for _, o := range e.orders(s) {
		other := text
		if o != unchanged {
			other = e.renumbered(s, o).encode(make([]byte, 0, len(text)))
		}
		if first || bytes.Compare(other, text) < 0 {
			text = other
		}
		first = false
	}
	return text
}

// orders returns the renumberings that sort the masters by their signatures.
func (e *explorer) orders(s *state) []renumbering {
	signatures := make([][]byte, e.total())
	for m := range s.masters {
		signatures[m] = append([]byte{e.role(m)}, s.signature(m)...)
	}
	sorted := make([]int, e.total())
	for m := range sorted {
		sorted[m] = m
	}
	slices.SortStableFunc(sorted, func(a, b int) int {
		return cmp.Or(bytes.Compare(signatures[a], signatures[b]), cmp.Compare(a, b))
	})
	var all []renumbering
	permute(sorted, 0, func(i, j int) bool { return bytes.Equal(signatures[i], signatures[j]) }, func(places []int) {
		o := unchanged
		for place, m := range places {
			o[m] = uint8(place)
		}
		all = append(all, o)
	})
	return all
}

// permute calls f with all permutations of adjacent, equal masters.
func permute(places []int, from int, equal func(i, j int) bool, f func([]int)) {
	if from == len(places) {
		f(places)
		return
	}
	for i := from; i < len(places) && equal(places[from], places[i]); i++ {
		places[from], places[i] = places[i], places[from]
		permute(places, from+1, equal, f)
		places[from], places[i] = places[i], places[from]
	}
}

// signature returns a master's state and the messages to it, as bytes.
func (s *state) signature(m int) []byte {
	b := make([]byte, 0, 64)
	b = appendWords(b, uint32(s.masters[m].cell), s.target.signature(m), s.change.signature(m))
	b = append(b, s.masters[m].fence)
	for _, msg := range s.flight {
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
