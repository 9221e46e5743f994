package model

import (
	"fmt"
	"math/big"
	"strconv"
	"time"

	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/register"
)

// interner gives equal things the same small number, from 0.
type interner[T any] struct {
	byText map[string]uint32
	all    []T
}

func (n *interner[T]) id(text string, thing func() T) uint32 {
	if id, known := n.byText[text]; known {
		return id
	}
	if n.byText == nil {
		n.byText = map[string]uint32{}
	}
	id := uint32(len(n.all))
	n.byText[text] = id
	n.all = append(n.all, thing())
	return id
}

type (
	opID    uint32
	replyID uint32
	cellID  uint32
)

const (
	waiting replyID = iota // has not replied
	unknown                // its answer was lost
	failed                 // was not asked
)

// lab is what all proxies and masters of a scenario share: everything that was met, by
// number.
type lab struct {
	*Scenario
	ops     interner[cell.Op]
	replies interner[register.Reply]
	cells   interner[content]
	applied map[applying]applied
}

func newLab(s *Scenario) *lab {
	l := &lab{Scenario: s, applied: map[applying]applied{}}
	for _, state := range []register.State{register.Waiting, register.Unknown, register.Failed} {
		l.replyID(register.Reply{State: state})
	}
	l.cellID(content{})
	return l
}

func (l *lab) op(op cell.Op) opID {
	return opID(l.ops.id(fmt.Sprintf("%T%v", op, op), func() cell.Op { return op }))
}

func (l *lab) reply(id replyID) register.Reply { return l.replies.all[id] }

// replyID writes all of a reply: by its String a cell that is found would be without what is left
// to it, and an absent one nothing.
func (l *lab) replyID(r register.Reply) replyID {
	return replyID(l.replies.id(fmt.Sprintf("%#v", r), func() register.Reply { return r }))
}

// content is a master's cell, and when it ends by its clock, or zero.
type content struct {
	cell.Cell
	ends time.Duration
}

func (l *lab) cellID(c content) cellID {
	if c.Form == cell.Absent {
		c = content{}
	}
	return cellID(l.cells.id(fmt.Sprint(c.Cell, c.ends), func() content { return c }))
}

// applying is an operation that reaches a master.
type applying struct {
	cell    cellID
	fence   uint8
	op      opID
	at      clock
	counted bool
}

// applied is what it does.
type applied struct {
	cell  cellID
	fence uint8
	reply replyID
}

// apply does an operation on a master's cell. A cell whose time is over is there until its
// expiry is an event of its own.
func (l *lab) apply(a applying) applied {
	if done, known := l.applied[a]; known {
		return done
	}
	c := l.cells.all[a.cell]
	s := &cell.Store{Now: epoch + l.passed(a.at)}
	ended := s.Now + time.Millisecond
	lapsed := c.ends != 0 && c.ends <= s.Now
	switch {
	case c.Form == cell.Absent:
	case c.ends == 0:
		s.Put(key, c.Cell, cell.Endless)
	case lapsed:
		s.Put(key, c.Cell, ended-s.Now)
	default:
		s.Put(key, c.Cell, c.ends-s.Now)
	}
	if a.fence != 0 {
		s.Put(cell.FenceKey(key), cell.Parse(strconv.Itoa(int(a.fence))), cell.Endless)
	}
	var answer cell.Answer
	if l.Variant.Apply != nil {
		answer = l.Variant.Apply(l.ops.all[a.op], s)
	} else {
		answer = l.ops.all[a.op].Apply(s)
	}
	f := s.Look(key)
	after := content{Cell: f.Cell}
	if f.Left != cell.Endless {
		after.ends = s.Now + f.Left
	}
	if lapsed && after.ends == ended {
		after.ends = c.ends
	}
	r := register.Reply{State: register.Counted, Answer: answer}
	if !a.counted {
		r.State = register.Uncounted
	}
	fence := cell.ParseFence(s.Look(cell.FenceKey(key)).Value.Text)
	done := applied{l.cellID(after), uint8(fence), l.replyID(r)}
	l.applied[a] = done
	return done
}

func numberedSource(n int) *cell.Source { return cell.NumberedSource(big.NewInt(int64(n + 1))) }
