package model

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// maxOps is the maximum number of operations in a scenario.
const maxOps = 8

// redisState describes a state that a single Redis may be in after all replies so far.
type redisState struct {
	// value is the value of the key, or 0. setBy is the operation that set it, counted from 1.
	// expiry is the expiry of its lease, or zero for never.
	value  byte
	setBy  uint8
	expiry time.Duration
	// leaseExpired is set if a lease has expired, and wasAbsent if the key was absent before the
	// value.
	leaseExpired, wasAbsent bool
	// holders holds the holders of a lock that several clients share, by the first token, the
	// second, and so on.
	holders [maxTokens]holder
	// dueReplies holds, for each operation that took effect and has no final reply yet, the reply
	// that it must get.
	dueReplies [maxOps]code
}

// maxTokens is the maximum number of different tokens of JOINs, from a.
const maxTokens = 3

// holder describes a holder of a lock that several clients share. setBy is the operation that added
// it, counted from 1, or 0 if there is no holder. expiry is the expiry of its lease, or zero.
type holder struct {
	setBy  uint8
	expiry time.Duration
}

// holderCount returns the number of holders.
func (p redisState) holderCount() (n int) {
	for _, h := range p.holders {
		if h.setBy != 0 {
			n++
		}
	}
	return n
}

type progress uint8

const (
	notStarted progress = iota
	started
	undetermined // the reply was NOQUORUM: the operation takes effect at any later moment, or never
	finished
)

// history holds the possible states of a single Redis after the replies so far.
type history struct {
	progress  [maxOps]progress
	startedAt [maxOps]clock
	states    []redisState
}

// effectUndetermined is the code of an operation that took effect and whose reply was NOQUORUM.
const effectUndetermined code = 255

// histories numbers histories, and stores the steps between them.
type histories struct {
	*tables
	internedHistories interner[history]
	moves             map[historyMove]uint32
}

type historyMove struct {
	fromHistory uint32
	at          clock
	op          uint8
	code        code // noReply: the operation starts
	expiry      time.Duration
}

func newHistories(l *tables) *histories {
	h := &histories{tables: l, moves: map[historyMove]uint32{}}
	h.id(history{states: []redisState{{}}})
	return h
}

func (h *histories) id(hist history) uint32 {
	texts := make([]string, len(hist.states))
	for i, p := range hist.states {
		texts[i] = fmt.Sprint(p)
	}
	slices.Sort(texts)
	return h.internedHistories.id(fmt.Sprint(hist.progress, hist.startedAt, strings.Join(texts, "|")), func() history { return hist })
}

// isPossible reports whether a single Redis can have given the replies of a history.
func (h *histories) isPossible(id uint32) bool { return len(h.internedHistories.values[id].states) > 0 }

// afterStart returns the history after an operation starts.
func (h *histories) afterStart(from uint32, at clock, op uint8) uint32 {
	return h.move(historyMove{fromHistory: from, at: at, op: op})
}

// afterReply returns the history after a reply to a client.
func (h *histories) afterReply(from uint32, at clock, a clientReply) uint32 {
	return h.move(historyMove{fromHistory: from, at: at, op: a.op, code: a.code, expiry: a.expiry})
}

func (h *histories) move(m historyMove) uint32 {
	if to, cached := h.moves[m]; cached {
		return to
	}
	next := h.internedHistories.values[m.fromHistory]
	next.states = h.closure(next, m.at)
	switch m.code {
	case noReply:
		next.progress[m.op], next.startedAt[m.op] = started, m.at
	case noQuorum, outOfTriesReply:
		next.progress[m.op] = undetermined
		for i := range next.states {
			switch dueReply := &next.states[i].dueReplies[m.op]; *dueReply {
			case noReply:
			case effectUndetermined:
				*dueReply = noReply // the operation was undone, and may take effect again
			default:
				*dueReply = effectUndetermined
			}
		}
	default:
		next.progress[m.op], next.startedAt[m.op] = finished, 0
		next.states = keepStatesWithReply(next.states, m)
	}
	next.states = withoutDuplicates(next.states)
	to := h.id(next)
	h.moves[m] = to
	return to
}

// keepStatesWithReply returns the states in which an operation had this reply.
func keepStatesWithReply(states []redisState, m historyMove) []redisState {
	var matchingStates []redisState
	for _, p := range states {
		want := m.code
		if want == contendedReply {
			want = noReply
		}
		if p.dueReplies[m.op] != want {
			continue
		}
		p.dueReplies[m.op] = noReply
		p.wasAbsent = p.wasAbsent && p.setBy != m.op+1
		if p.setBy == m.op+1 && m.expiry != 0 {
			p.expiry = m.expiry
		}
		for i, holder := range p.holders {
			if holder.setBy == m.op+1 && m.expiry != 0 {
				p.holders[i].expiry = m.expiry
			}
		}
		matchingStates = append(matchingStates, p)
	}
	return matchingStates
}

func withoutDuplicates(states []redisState) []redisState {
	seen := map[redisState]bool{}
	var uniqueStates []redisState
	for _, p := range states {
		if !seen[p] {
			seen[p] = true
			uniqueStates = append(uniqueStates, p)
		}
	}
	return uniqueStates
}

// closure returns all states that can follow by events since the last reply.
func (h *histories) closure(hist history, at clock) []redisState {
	seen := map[redisState]bool{}
	states := slices.Clone(hist.states)
	for _, p := range states {
		seen[p] = true
	}
	for i := 0; i < len(states); i++ {
		h.emitSuccessors(hist, at, states[i], func(p redisState) {
			if !seen[p] {
				seen[p] = true
				states = append(states, p)
			}
		})
	}
	return states
}

// emitSuccessors calls f with each state that can follow p by one event.
func (h *histories) emitSuccessors(hist history, at clock, p redisState, f func(redisState)) {
	if p.value != 0 && p.expiry != 0 && p.expiry <= h.elapsedTime(at) {
		expired := p
		expired.value, expired.setBy, expired.expiry, expired.leaseExpired, expired.wasAbsent = 0, 0, 0, true, false
		f(expired)
	}
	if p.value != 0 && p.wasAbsent && (hist.progress[p.setBy-1] == undetermined || hist.progress[p.setBy-1] == started) {
		// A lock whose LOCK got NOQUORUM may be released again, and may reappear while requests of
		// the LOCK are in flight.
		undone := p
		undone.dueReplies[p.setBy-1] = noReply
		if hist.progress[p.setBy-1] == started {
			undone.dueReplies[p.setBy-1] = effectUndetermined
		}
		undone.value, undone.setBy, undone.expiry, undone.wasAbsent = 0, 0, 0, false
		f(undone)
	}
	h.emitHolderEnds(hist, at, p, f)
	for i, op := range h.Ops {
		if hist.progress[i] != started && hist.progress[i] != undetermined || p.dueReplies[i] != noReply {
			continue
		}
		expiry := time.Duration(0)
		if op.ShortLease {
			expiry = h.elapsedTime(hist.startedAt[i]) + h.shortLease()
		}
		results := effects(op, uint8(i), p, expiry)
		if p.expiry != 0 && p.expiry <= h.elapsedTime(at) && op.Kind != Lock && op.Kind != GetSet {
			// The lease has expired, and a majority may have dropped the lock. A take that is still
			// in flight may put the lock on one more master, so that a later operation finds it
			// (REGISTER.md, I4).
			unseen := p
			unseen.dueReplies[i] = refusedReply
			results = append(results, unseen)
		}
		for _, q := range results {
			if hist.progress[i] == undetermined {
				q.dueReplies[i] = effectUndetermined
			}
			f(q)
		}
	}
}

// emitHolderEnds calls f with each state in which one holder is gone: its lease has expired, or its
// JOIN got NOQUORUM and is undone, as a LOCK is.
func (h *histories) emitHolderEnds(hist history, at clock, p redisState, f func(redisState)) {
	for i, one := range p.holders {
		if one.setBy == 0 {
			continue
		}
		gone := p
		gone.holders[i] = holder{}
		if one.expiry != 0 && one.expiry <= h.elapsedTime(at) {
			expired := gone
			expired.leaseExpired = true
			f(expired)
		}
		switch joined := one.setBy - 1; {
		case h.Ops[joined].Kind != Join:
		case hist.progress[joined] == undetermined:
			gone.dueReplies[joined] = noReply
			f(gone)
		case hist.progress[joined] == started:
			gone.dueReplies[joined] = effectUndetermined
			f(gone)
		}
	}
}

// effects returns the states of a single Redis after an operation, with its reply in dueReplies.
func effects(op Op, i uint8, p redisState, expiry time.Duration) []redisState {
	old := refusedReply
	if p.value != 0 {
		old = valueBase + code(p.value)
	}
	same, put, removed := p, p, p
	put.value, put.setBy, put.expiry, put.wasAbsent = op.Token, i+1, expiry, p.value == 0
	removed.value, removed.setBy, removed.expiry, removed.wasAbsent = 0, 0, 0, false
	withReply := func(q redisState, c code) []redisState { q.dueReplies[i] = c; return []redisState{q} }
	tokenMatches := p.value == op.Token
	token := (op.Token - 'a') % maxTokens
	switch {
	case op.Kind == Lock && p.holderCount() > 0:
		return withReply(same, refusedReply)
	case op.Kind == Lock && p.value == 0 && p.leaseExpired:
		// nil is also correct after a lease has expired, because masters may still hold the lock.
		return append(withReply(put, okReply), withReply(same, refusedReply)...)
	case op.Kind == Lock && p.value == 0:
		return withReply(put, okReply)
	case op.Kind == Join && p.value == 0 && p.holders[token].setBy == 0 && (op.Slots < 0 || p.holderCount() < op.Slots):
		joined := p
		joined.holders[token] = holder{setBy: i + 1, expiry: expiry}
		if !p.leaseExpired {
			return withReply(joined, okReply)
		}
		return append(withReply(joined, okReply), withReply(same, refusedReply)...)
	case op.Kind == Leave && p.holders[token].setBy != 0:
		left := p
		left.holders[token] = holder{}
		return withReply(left, okReply)
	case op.Kind == ExtendHolder && p.holders[token].setBy != 0:
		if extended := &same.holders[token]; extended.expiry != 0 && (expiry == 0 || expiry > extended.expiry) {
			extended.setBy, extended.expiry = i+1, expiry
		}
		return withReply(same, okReply)
	case op.Kind == Unlock && tokenMatches, op.Kind == Del && p.value != 0:
		return withReply(removed, okReply)
	case op.Kind == Extend && tokenMatches:
		if same.expiry != 0 {
			if expiry == 0 || expiry > same.expiry {
				same.expiry = expiry
			}
		}
		return withReply(same, okReply)
	case op.Kind == SetXX && p.value != 0:
		return withReply(put, okReply)
	case op.Kind == GetSet:
		return withReply(put, old)
	case op.Kind == Get:
		return withReply(same, old)
	default:
		return withReply(same, refusedReply)
	}
}
