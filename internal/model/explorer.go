package model

import (
	"fmt"
	"hash/maphash"
	"slices"

	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/vote"
)

// Result reports the outcome of the exploration of a scenario.
type Result struct {
	// States is the number of visited states. Complete is set if the search visited all states.
	States   int
	Complete bool
	// Violation describes the violated property, and Trace the events that led to it. They are
	// empty if no state violates a property.
	Violation string
	Trace     []string
}

// explorer searches the states of a scenario.
type explorer struct {
	*tables
	machines  []*machine
	history   *histories
	seed      maphash.Seed
	visited   map[uint64]struct{}
	parents   []uint32
	hashes    []uint64
	attempts  interner[cell.Attempt]
	violation string
	// initialCells holds the cells of the masters at the beginning.
	initialCells [maxMasters]cellID
}

func newExplorer(s *Scenario) *explorer {
	l := newTables(s)
	e := &explorer{
		tables: l, history: newHistories(l), seed: maphash.MakeSeed(),
		visited: map[uint64]struct{}{},
	}
	proxies := 0
	for _, op := range s.Ops {
		proxies = max(proxies, op.Proxy+1)
	}
	for i := range proxies {
		e.machines = append(e.machines, newMachine(l, i))
	}
	return e
}

// Explore visits the states of a scenario. It stops when it has visited more than limit states, or
// at the first violation.
func Explore(s Scenario, limit int) Result {
	e := newExplorer(&s)
	return e.explore(e.root(), limit)
}

// explore visits the states that can follow root, as Explore does.
func (e *explorer) explore(root *state, limit int) Result {
	queue := [][]byte{e.add(root, 0)}
	for index := 0; len(queue) > 0; index++ {
		if len(e.hashes) > limit {
			return Result{States: len(e.hashes)}
		}
		current := e.decode(queue[0])
		queue[0], queue = nil, queue[1:]
		e.successors(current, func(ev event, next *state) {
			if e.violation != "" {
				return
			}
			if e.violation = e.check(next); e.violation != "" {
				e.parents = append(e.parents, uint32(index))
				e.hashes = append(e.hashes, e.hash(next))
				return
			}
			if text := e.add(next, index); text != nil {
				queue = append(queue, text)
			}
		})
		if e.violation != "" {
			return Result{States: len(e.hashes), Violation: e.violation, Trace: e.trace(root)}
		}
	}
	return Result{States: len(e.hashes), Complete: true}
}

// add adds a state. It returns the encoded state if it is new, else nil.
func (e *explorer) add(s *state, parent int) []byte {
	text := e.encode(s)
	sum := maphash.Bytes(e.seed, text)
	if _, known := e.visited[sum]; known {
		return nil
	}
	e.visited[sum] = struct{}{}
	e.parents = append(e.parents, uint32(parent))
	e.hashes = append(e.hashes, sum)
	return text
}

func (e *explorer) hash(s *state) uint64 {
	return maphash.Bytes(e.seed, e.encode(s))
}

// trace describes the events that led to the last state.
func (e *explorer) trace(root *state) []string {
	var path []uint64
	for i := len(e.hashes) - 1; i != 0; i = int(e.parents[i]) {
		path = append(path, e.hashes[i])
	}
	slices.Reverse(path)
	var lines []string
	current := root
	for _, sum := range path {
		var step *state
		line := ""
		e.successors(current, func(ev event, next *state) {
			if step == nil && e.hash(next) == sum {
				step, line = next, e.describe(ev, next)
			}
		})
		if step == nil {
			return append(lines, "(lost the trace)")
		}
		current, lines = step, append(lines, line)
	}
	return lines
}

// check describes the property that a state violates, or returns "".
func (e *explorer) check(s *state) string {
	if !e.history.isPossible(s.history) {
		return "no single Redis can have given these replies"
	}
	if s.fenceDisorder {
		return "a fence is not higher than the one of the lock before"
	}
	if e.deadAttemptHasMajority(s) {
		return "a refused or released attempt has a majority"
	}
	if e.RequireQuorum && slices.Contains(s.results[:], noQuorum) {
		return "NOQUORUM without faults"
	}
	return ""
}

// deadAttemptHasMajority reports whether an attempt that was refused, or released with the reply 1,
// has its original value on a majority of a set. Only voting masters count.
func (e *explorer) deadAttemptHasMajority(s *state) bool {
	for _, d := range s.deadAttempts {
		for p := range e.machines {
			set, holders := e.masterSet(p), 0
			for _, m := range set {
				c := e.cells.values[s.masters[m].cell]
				original := c.Form == cell.Plain ||
					c.Form == cell.Register && c.Value.Present && len(c.Value.Changes) == 0
				if e.hasVoteFor(s, p, m) && c.Attempt == e.attempts.values[d] && original {
					holders++
				}
			}
			if holders >= vote.Majority(len(set)) {
				return true
			}
		}
	}
	return false
}

// event describes a step from one state to the next.
type event struct {
	name    string
	message message
	move    move
	proxy   int
	master  int
}

func (e *explorer) describe(ev event, s *state) string {
	line := ev.name
	switch {
	case ev.message.op != 0 || ev.message.proxy != 0 || ev.name == "deliver":
		line += fmt.Sprintf(" proxy %d's %s at %c",
			ev.message.proxy+1, showOp(e.ops.values[ev.message.op]), 'A'+ev.message.master)
	case ev.master >= 0:
		line += fmt.Sprintf(" %c", 'A'+ev.master)
	}
	in := ev.move.in
	if ev.proxy >= 0 {
		switch in.kind {
		case inputStart:
			line += fmt.Sprintf(" %v starts", e.Ops[in.task])
		case inputRoundEnd:
			line += fmt.Sprintf(" | round %d of task %d ends with", in.round, in.task)
			for m := range e.masterCount() {
				line += " " + e.showReply(in.replies[m])
			}
		case inputLateReply:
			line += fmt.Sprintf(" | late: %s", e.showReply(in.replies[0]))
		}
		for _, s := range ev.move.sentMessages {
			line += fmt.Sprintf("\n        sends %s to %c", showOp(e.ops.values[s.op]), 'A'+s.master)
		}
		for _, a := range ev.move.clientReplies {
			line += fmt.Sprintf("\n        ANSWER %v: %v %s", e.Ops[a.op], a.code, showFence(a.fence))
		}
	}
	line += "\n        "
	for i, m := range s.masters {
		line += fmt.Sprintf(" %c=%s%s", 'A'+i, showCell(e.cells.values[m.cell].Cell), showFence(m.fence))
	}
	return line
}

// shortID returns an ID without its zeros.
func shortID[T ~string](id T) string {
	digits := []byte{}
	for _, d := range []byte(id) {
		if d != '0' {
			digits = append(digits, d)
		}
	}
	return string(digits)
}

// showFence returns a fence as text, or "" for 0.
func showFence(fence uint8) string {
	if fence == 0 {
		return ""
	}
	return fmt.Sprintf(" fence %d", fence)
}

func showCell(c cell.Cell) string {
	switch c.Form {
	case cell.Plain:
		return fmt.Sprintf("%s:%s", shortID(c.Attempt), c.Value.Text)
	case cell.Register:
		v := "-"
		if c.Value.Present {
			v = c.Value.Text
		}
		return fmt.Sprintf("%s:(promised %s accepted %s %s)", shortID(c.Attempt), shortID(c.Promised), shortID(c.Accepted), v)
	case cell.Mark:
		return fmt.Sprintf("%s:mark %s", shortID(c.Attempt), shortID(c.Promised))
	case cell.Blocking:
		return fmt.Sprintf("%s:blocking", shortID(c.Attempt))
	default:
		return "."
	}
}

func showOp(op cell.Op) string {
	switch op := op.(type) {
	case cell.Take:
		if op.Mark != "" {
			return fmt.Sprintf("mark(%s:%s)", shortID(op.Attempt), shortID(op.Mark))
		}
		return fmt.Sprintf("take(%s:%s%s)", shortID(op.Attempt), op.Tokens[0], showFence(uint8(op.Fence)))
	case cell.Raise:
		return fmt.Sprintf("raise(%s%s)", shortID(op.Attempt), showFence(uint8(op.Fence)))
	case cell.Remove:
		return fmt.Sprintf("%s(%s)", op.Mode, shortID(op.Attempt))
	case cell.Extend:
		return fmt.Sprintf("extend(%s:%s)", shortID(op.Attempt), op.Token)
	case cell.Prepare:
		return fmt.Sprintf("prepare(%s)", shortID(op.Ballot))
	case cell.Accept:
		if op.Mark != "" {
			return fmt.Sprintf("fill(%s:%s on %s %s)", shortID(op.Attempt), shortID(op.Ballot), shortID(op.Mark), op.Value.Text)
		}
		return fmt.Sprintf("accept(%s:%s %s next %s)", shortID(op.Attempt), shortID(op.Ballot), op.Value.Text, shortID(op.NextBallot))
	default:
		return "read"
	}
}

func (e *explorer) showReply(id replyID) string {
	switch id {
	case replyPending:
		return "…"
	case replyUnknown:
		return "unknown"
	case replyFailed:
		return "failed"
	}
	r := e.reply(id)
	text := "no"
	if r.Applied {
		text = "yes"
	}
	if len(r.KeyStates) > 0 {
		text += "[" + showCell(r.KeyStates[0].Cell) + "]"
	}
	return text
}
