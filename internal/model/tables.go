package model

import (
	"fmt"
	"math/big"
	"strconv"
	"time"

	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/register"
)

// interner numbers values from 0. Equal values get the same number.
type interner[T any] struct {
	byText map[string]uint32
	values []T
}

func (n *interner[T]) id(text string, newValue func() T) uint32 {
	if id, known := n.byText[text]; known {
		return id
	}
	if n.byText == nil {
		n.byText = map[string]uint32{}
	}
	id := uint32(len(n.values))
	n.byText[text] = id
	n.values = append(n.values, newValue())
	return id
}

type (
	opID    uint32
	replyID uint32
	cellID  uint32
)

const (
	replyPending replyID = iota // the master has not replied
	replyUnknown                // the reply was lost
	replyFailed                 // the proxy did not send the message
)

// tables holds the numbered operations, replies and cells of a scenario, which all proxies and
// masters share, and the results of operations on cells.
type tables struct {
	*Scenario
	ops          interner[cell.Op]
	replies      interner[register.Reply]
	cells        interner[content]
	applyResults map[applyKey]applyResult
}

func newTables(s *Scenario) *tables {
	l := &tables{Scenario: s, applyResults: map[applyKey]applyResult{}}
	for _, state := range []register.State{register.Waiting, register.Unknown, register.Failed} {
		l.replyID(register.Reply{State: state})
	}
	l.cellID(content{})
	return l
}

func (l *tables) op(op cell.Op) opID {
	return opID(l.ops.id(fmt.Sprintf("%T%v", op, op), func() cell.Op { return op }))
}

func (l *tables) reply(id replyID) register.Reply { return l.replies.values[id] }

// replyID returns the number of a reply. It formats all fields, because the String method of a
// cell.KeyState omits the remaining time, and returns an empty text for an absent cell.
func (l *tables) replyID(r register.Reply) replyID {
	return replyID(l.replies.id(fmt.Sprintf("%#v", r), func() register.Reply { return r }))
}

// content holds a master's cell and its expiry by the master's clock, or zero for never.
type content struct {
	cell.Cell
	expiry time.Duration
}

func (l *tables) cellID(c content) cellID {
	if c.Form == cell.Absent {
		c = content{}
	}
	return cellID(l.cells.id(fmt.Sprint(c.Cell, c.expiry), func() content { return c }))
}

// applyKey identifies an operation, and the state of the master that executes it.
type applyKey struct {
	cell    cellID
	fence   uint8
	op      opID
	at      clock
	counted bool
	// otherKeyTaken is set if the other key of the operation is not free on the master.
	otherKeyTaken bool
}

// applyResult holds the result of an operation on a master's cell.
type applyResult struct {
	cell  cellID
	fence uint8
	reply replyID
}

// apply executes an operation on a master's cell. An expired cell stays until a separate event
// removes it.
func (l *tables) apply(a applyKey) applyResult {
	if result, known := l.applyResults[a]; known {
		return result
	}
	c := l.cells.values[a.cell]
	s := &cell.Store{Now: scenarioStart + l.elapsedTime(a.at)}
	lapsedExpiry := s.Now + time.Millisecond
	lapsed := c.expiry != 0 && c.expiry <= s.Now
	switch {
	case c.Form == cell.Absent:
	case c.expiry == 0:
		s.Put(key, c.Cell, cell.NoExpiry)
	case lapsed:
		s.Put(key, c.Cell, lapsedExpiry-s.Now)
	default:
		s.Put(key, c.Cell, c.expiry-s.Now)
	}
	if a.fence != 0 {
		s.Put(cell.FenceKey(key), cell.Parse(strconv.Itoa(int(a.fence))), cell.NoExpiry)
	}
	if a.otherKeyTaken { // by a mark, which no reply counts as a holder
		s.Put(otherKey, cell.Cell{Form: cell.Mark, Attempt: otherAttempt, Promised: otherBallot}, cell.NoExpiry)
	}
	var answer cell.Answer
	if l.Variant.Apply != nil {
		answer = l.Variant.Apply(l.ops.values[a.op], s)
	} else {
		answer = l.ops.values[a.op].Apply(s)
	}
	f := s.Get(key)
	newContent := content{Cell: f.Cell}
	if f.TimeLeft != cell.NoExpiry {
		newContent.expiry = s.Now + f.TimeLeft
	}
	if lapsed && newContent.expiry == lapsedExpiry {
		newContent.expiry = c.expiry
	}
	r := register.Reply{State: register.Counted, Answer: answer}
	if !a.counted {
		r.State = register.Uncounted
	}
	fence := cell.ParseFence(s.Get(cell.FenceKey(key)).Value.Text)
	result := applyResult{l.cellID(newContent), uint8(fence), l.replyID(r)}
	l.applyResults[a] = result
	return result
}

// otherAttempt and otherBallot identify the mark at the other key, the same on all masters.
var (
	otherAttempt = numberedSource(maxMasters).Attempt()
	otherBallot  = numberedSource(maxMasters).Ballot(1)
)

func numberedSource(n int) *cell.Source { return cell.NumberedSource(big.NewInt(int64(n + 1))) }
