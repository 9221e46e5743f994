package model

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// maxOps bounds the operations of a scenario.
const maxOps = 8

// possible is one state in which a single Redis may be that gave all answers so far.
type possible struct {
	// value is what it holds, or 0; ends is when its lease ends, zero for never; by is the
	// operation that put it, counted from 1.
	value byte
	by    uint8
	ends  time.Duration
	// lapsed: some lease has ended. fresh: nothing was there before the value.
	lapsed, fresh bool
	// took are the operations that have taken effect and are not answered for good, with
	// what their answer must be.
	took [maxOps]code
}

// standing is how far an operation has come.
type standing uint8

const (
	notAsked standing = iota
	asked
	free // it was told NOQUORUM: it takes effect once at any moment, or never
	over
)

// history is all that is known of a single Redis that gave the answers so far.
type history struct {
	stands [maxOps]standing
	began  [maxOps]clock
	may    []possible
}

// tookFreely is the code of an operation that took effect after its NOQUORUM.
const tookFreely code = 255

// historian numbers histories and remembers what led from one to another.
type historian struct {
	*lab
	known interner[history]
	moves map[historyMove]uint32
}

type historyMove struct {
	from uint32
	at   clock
	op   uint8
	code code // nothing: it is asked
	ends time.Duration
}

func newHistorian(l *lab) *historian {
	h := &historian{lab: l, moves: map[historyMove]uint32{}}
	h.id(history{may: []possible{{}}})
	return h
}

func (h *historian) id(one history) uint32 {
	texts := make([]string, len(one.may))
	for i, p := range one.may {
		texts[i] = fmt.Sprint(p)
	}
	slices.Sort(texts)
	return h.known.id(fmt.Sprint(one.stands, one.began, strings.Join(texts, "|")), func() history { return one })
}

// possible reports whether a single Redis may have answered so.
func (h *historian) possible(id uint32) bool { return len(h.known.all[id].may) > 0 }

// asks is the history after an operation was asked for.
func (h *historian) asks(from uint32, at clock, op uint8) uint32 {
	return h.move(historyMove{from: from, at: at, op: op})
}

// answers is the history after one was answered.
func (h *historian) answers(from uint32, at clock, a answer) uint32 {
	return h.move(historyMove{from: from, at: at, op: a.op, code: a.code, ends: a.ends})
}

func (h *historian) move(m historyMove) uint32 {
	if to, known := h.moves[m]; known {
		return to
	}
	next := h.known.all[m.from]
	next.may = h.closure(next, m.at)
	switch m.code {
	case nothing:
		next.stands[m.op], next.began[m.op] = asked, m.at
	case noQuorum, overtaken:
		next.stands[m.op] = free
		for i := range next.may {
			switch took := &next.may[i].took[m.op]; *took {
			case nothing:
			case tookFreely:
				*took = nothing // it was undone, and may come back
			default:
				*took = tookFreely
			}
		}
	default:
		next.stands[m.op], next.began[m.op] = over, 0
		next.may = keepAnswered(next.may, m)
	}
	next.may = unlike(next.may)
	to := h.id(next)
	h.moves[m] = to
	return to
}

// keepAnswered are those in which an operation took effect with this answer.
func keepAnswered(may []possible, m historyMove) []possible {
	var kept []possible
	for _, p := range may {
		want := m.code
		if want == contended {
			want = nothing
		}
		if p.took[m.op] != want {
			continue
		}
		p.took[m.op] = nothing
		p.fresh = p.fresh && p.by != m.op+1
		if p.by == m.op+1 && m.ends != 0 {
			p.ends = m.ends
		}
		kept = append(kept, p)
	}
	return kept
}

func unlike(may []possible) []possible {
	seen := map[possible]bool{}
	var kept []possible
	for _, p := range may {
		if !seen[p] {
			seen[p] = true
			kept = append(kept, p)
		}
	}
	return kept
}

// closure are all states that can come of those by what may have happened meanwhile.
func (h *historian) closure(one history, at clock) []possible {
	seen := map[possible]bool{}
	all := slices.Clone(one.may)
	for _, p := range all {
		seen[p] = true
	}
	for i := 0; i < len(all); i++ {
		h.next(one, at, all[i], func(p possible) {
			if !seen[p] {
				seen[p] = true
				all = append(all, p)
			}
		})
	}
	return all
}

// next tells what one thing that may happen makes of a state.
func (h *historian) next(one history, at clock, p possible, f func(possible)) {
	if p.value != 0 && p.ends != 0 && p.ends <= h.passed(at) {
		gone := p
		gone.value, gone.by, gone.ends, gone.lapsed, gone.fresh = 0, 0, 0, true, false
		f(gone)
	}
	if p.value != 0 && p.fresh && (one.stands[p.by-1] == free || one.stands[p.by-1] == asked) {
		// What was taken, with NOQUORUM for an answer, may be released again; and come back, as
		// long as requests of it are on their way.
		undone := p
		undone.took[p.by-1] = nothing
		if one.stands[p.by-1] == asked {
			undone.took[p.by-1] = tookFreely
		}
		undone.value, undone.by, undone.ends, undone.fresh = 0, 0, 0, false
		f(undone)
	}
	for i, op := range h.Ops {
		if one.stands[i] != asked && one.stands[i] != free || p.took[i] != nothing {
			continue
		}
		ends := time.Duration(0)
		if op.Short {
			ends = h.passed(one.began[i]) + h.shortLease()
		}
		all := effects(op, uint8(i), p, ends)
		if p.ends != 0 && p.ends <= h.passed(at) && op.Do != Lock && op.Do != GetSet {
			// The lease is over, and a majority may have dropped it for now: a take that is on its
			// way all that time may put it on one more master (REGISTER.md, I4).
			unseen := p
			unseen.took[i] = refused
			all = append(all, unseen)
		}
		for _, q := range all {
			if one.stands[i] == free {
				q.took[i] = tookFreely
			}
			f(q)
		}
	}
}

// effects are what an operation does to a single Redis; its answer is in took.
func effects(op Op, i uint8, p possible, ends time.Duration) []possible {
	old := refused
	if p.value != 0 {
		old = value + code(p.value)
	}
	same, put, gone := p, p, p
	put.value, put.by, put.ends, put.fresh = op.Token, i+1, ends, p.value == 0
	gone.value, gone.by, gone.ends, gone.fresh = 0, 0, 0, false
	told := func(q possible, c code) []possible { q.took[i] = c; return []possible{q} }
	mine := p.value == op.Token
	switch {
	case op.Do == Lock && p.value == 0 && p.lapsed:
		// nil is right, too, for a lease that has ended and has not yet expired everywhere.
		return append(told(put, done), told(same, refused)...)
	case op.Do == Lock && p.value == 0:
		return told(put, done)
	case op.Do == Unlock && mine, op.Do == Del && p.value != 0:
		return told(gone, done)
	case op.Do == Extend && mine:
		if same.ends != 0 {
			if ends == 0 || ends > same.ends {
				same.ends = ends
			}
		}
		return told(same, done)
	case op.Do == SetXX && p.value != 0:
		return told(put, done)
	case op.Do == GetSet:
		return told(put, old)
	case op.Do == Get:
		return told(same, old)
	default:
		return told(same, refused)
	}
}
