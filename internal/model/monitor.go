package model

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// maxOps is the maximum number of operations in a scenario.
const maxOps = 8

// redisState is a possible state of a single Redis that gave all replies so far.
type redisState struct {
	// value is the value of the key, or 0. by is the operation that set it, counted from 1. ends is
	// the expiry of its lease, or zero for never.
	value byte
	by    uint8
	ends  time.Duration
	// lapsed is set if a lease has expired, and fresh if the key was absent before the value.
	lapsed, fresh bool
	// took holds, for each operation that took effect and has no final reply yet, the reply that it
	// must get.
	took [maxOps]code
}

type progress uint8

const (
	notAsked progress = iota
	asked
	undetermined // the reply was NOQUORUM: it takes effect once at any later moment, or never
	finished
)

// history holds the possible states of a single Redis after the replies so far.
type history struct {
	progress [maxOps]progress
	began    [maxOps]clock
	states   []redisState
}

// tookUndetermined is the code of an operation that took effect and whose reply was NOQUORUM.
const tookUndetermined code = 255

// histories numbers histories, and stores the steps between them.
type histories struct {
	*tables
	known interner[history]
	moves map[historyMove]uint32
}

type historyMove struct {
	from uint32
	at   clock
	op   uint8
	code code // nothing: the operation starts
	ends time.Duration
}

func newHistories(l *tables) *histories {
	h := &histories{tables: l, moves: map[historyMove]uint32{}}
	h.id(history{states: []redisState{{}}})
	return h
}

func (h *histories) id(one history) uint32 {
	texts := make([]string, len(one.states))
	for i, p := range one.states {
		texts[i] = fmt.Sprint(p)
	}
	slices.Sort(texts)
	return h.known.id(fmt.Sprint(one.progress, one.began, strings.Join(texts, "|")), func() history { return one })
}

// possible reports whether a single Redis can have given these replies.
func (h *histories) possible(id uint32) bool { return len(h.known.all[id].states) > 0 }

// asks returns the history after an operation starts.
func (h *histories) asks(from uint32, at clock, op uint8) uint32 {
	return h.move(historyMove{from: from, at: at, op: op})
}

// answers returns the history after a reply to a client.
func (h *histories) answers(from uint32, at clock, a answer) uint32 {
	return h.move(historyMove{from: from, at: at, op: a.op, code: a.code, ends: a.ends})
}

func (h *histories) move(m historyMove) uint32 {
	if to, known := h.moves[m]; known {
		return to
	}
	next := h.known.all[m.from]
	next.states = h.closure(next, m.at)
	switch m.code {
	case nothing:
		next.progress[m.op], next.began[m.op] = asked, m.at
	case noQuorum, overtaken:
		next.progress[m.op] = undetermined
		for i := range next.states {
			switch took := &next.states[i].took[m.op]; *took {
			case nothing:
			case tookUndetermined:
				*took = nothing // it was undone, and may take effect again
			default:
				*took = tookUndetermined
			}
		}
	default:
		next.progress[m.op], next.began[m.op] = finished, 0
		next.states = keepAnswered(next.states, m)
	}
	next.states = withoutDuplicates(next.states)
	to := h.id(next)
	h.moves[m] = to
	return to
}

// keepAnswered returns the states in which an operation took effect with this reply.
func keepAnswered(states []redisState, m historyMove) []redisState {
	var kept []redisState
	for _, p := range states {
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

func withoutDuplicates(states []redisState) []redisState {
	seen := map[redisState]bool{}
	var kept []redisState
	for _, p := range states {
		if !seen[p] {
			seen[p] = true
			kept = append(kept, p)
		}
	}
	return kept
}

// closure returns all states that can follow by events since the last reply.
func (h *histories) closure(one history, at clock) []redisState {
	seen := map[redisState]bool{}
	all := slices.Clone(one.states)
	for _, p := range all {
		seen[p] = true
	}
	for i := 0; i < len(all); i++ {
		h.next(one, at, all[i], func(p redisState) {
			if !seen[p] {
				seen[p] = true
				all = append(all, p)
			}
		})
	}
	return all
}

// next calls f with each state that can follow p by one event.
func (h *histories) next(one history, at clock, p redisState, f func(redisState)) {
	if p.value != 0 && p.ends != 0 && p.ends <= h.passed(at) {
		gone := p
		gone.value, gone.by, gone.ends, gone.lapsed, gone.fresh = 0, 0, 0, true, false
		f(gone)
	}
	if p.value != 0 && p.fresh && (one.progress[p.by-1] == undetermined || one.progress[p.by-1] == asked) {
		// A lock whose LOCK got NOQUORUM may be released again, and may reappear while requests of
		// the LOCK are in flight.
		undone := p
		undone.took[p.by-1] = nothing
		if one.progress[p.by-1] == asked {
			undone.took[p.by-1] = tookUndetermined
		}
		undone.value, undone.by, undone.ends, undone.fresh = 0, 0, 0, false
		f(undone)
	}
	for i, op := range h.Ops {
		if one.progress[i] != asked && one.progress[i] != undetermined || p.took[i] != nothing {
			continue
		}
		ends := time.Duration(0)
		if op.Short {
			ends = h.passed(one.began[i]) + h.shortLease()
		}
		all := effects(op, uint8(i), p, ends)
		if p.ends != 0 && p.ends <= h.passed(at) && op.Do != Lock && op.Do != GetSet {
			// The lease has expired, and a majority may have dropped it for now. A take that was in
			// flight all that time may put it on one more master (REGISTER.md, I4).
			unseen := p
			unseen.took[i] = refused
			all = append(all, unseen)
		}
		for _, q := range all {
			if one.progress[i] == undetermined {
				q.took[i] = tookUndetermined
			}
			f(q)
		}
	}
}

// effects returns the states of a single Redis after an operation, with its reply in took.
func effects(op Op, i uint8, p redisState, ends time.Duration) []redisState {
	old := refused
	if p.value != 0 {
		old = value + code(p.value)
	}
	same, put, gone := p, p, p
	put.value, put.by, put.ends, put.fresh = op.Token, i+1, ends, p.value == 0
	gone.value, gone.by, gone.ends, gone.fresh = 0, 0, 0, false
	told := func(q redisState, c code) []redisState { q.took[i] = c; return []redisState{q} }
	mine := p.value == op.Token
	switch {
	case op.Do == Lock && p.value == 0 && p.lapsed:
		// nil is also correct if a lease has ended but has not expired everywhere yet.
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
