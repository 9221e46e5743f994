package master

import (
	"slices"
	"sync/atomic"

	"redlock-proxy/internal/resp"
	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/register"
)

// reply is what came of one operation at one master.
type reply = register.Reply

// Stages of an op. An op leaves the queued stage exactly once: its lane sends it, or
// refuses it, or its caller drops it.
const (
	stageQueued int32 = iota
	stageSent
	stageDropped
)

// change is what is to be done in a database, at one master or at many.
type change struct {
	db int
	do cell.Op
	// words is the command as it goes over the wire, unless a master needs another form.
	words []byte
}

func newChange(db int, do cell.Op) *change {
	c := &change{}
	c.set(db, do)
	return c
}

// usualWords is how long a command mostly is at the most, in bytes.
const usualWords = 192

// set has it be another one, in the same memory.
func (c *change) set(db int, do cell.Op) {
	if c.words == nil {
		c.words = make([]byte, 0, usualWords)
	}
	c.db, c.do = db, do
	switch do := do.(type) {
	case cell.Appender:
		c.words = do.AppendTo(c.words[:0], false)
	default:
		c.words = resp.AppendCommand(c.words[:0], do.Words(false)...)
	}
}

// isSame reports whether two operations are the same command. It may say no where they are.
func isSame(a, b cell.Op) bool {
	switch a := a.(type) {
	case cell.Take:
		b, ok := b.(cell.Take)
		return ok && a.Attempt == b.Attempt && a.TTL == b.TTL && a.Mark == b.Mark && a.Old == b.Old && a.Fence == b.Fence &&
			slices.Equal(a.Names, b.Names) && slices.Equal(a.Tokens, b.Tokens)
	case cell.Remove:
		b, ok := b.(cell.Remove)
		return ok && a == b
	case cell.Extend:
		b, ok := b.(cell.Extend)
		return ok && a == b
	case cell.Prepare:
		b, ok := b.(cell.Prepare)
		return ok && a == b
	case cell.Raise:
		b, ok := b.(cell.Raise)
		return ok && a == b
	case cell.Read:
		b, ok := b.(cell.Read)
		return ok && a.Fences == b.Fences && slices.Equal(a.Names, b.Names)
	default:
		return false
	}
}

// op is one change on its way to one master.
type op struct {
	*change
	// round waits for the reply, as that of its master number index. Without one nothing
	// does; owed has it done all the same, when the master is back.
	round *Round
	index int32
	stage atomic.Int32
	// whole has the script sent instead of its SHA.
	whole bool
	owed  bool
}

// tellOp is an op whose reply nothing waits for.
func tellOp(db int, do cell.Op, owed bool) *op {
	return &op{change: newChange(db, do), owed: owed}
}

func (o *op) send() bool { return o.stage.CompareAndSwap(stageQueued, stageSent) }
func (o *op) drop() bool { return o.stage.CompareAndSwap(stageQueued, stageDropped) }

// appendTo appends the command in the form that a server knows, which may be old: before
// Redis 7.
func (o *op) appendTo(b []byte, old bool) []byte {
	switch take, ok := o.do.(cell.Take); {
	case old && ok && !take.Old:
		return resp.AppendCommand(b, o.form(old).Words(o.whole)...)
	case o.whole:
		return resp.AppendCommand(b, o.do.Words(true)...)
	default:
		return append(b, o.words...)
	}
}

// form is the command in the form that a server knows, which may be old.
func (o *op) form(old bool) cell.Op {
	if take, ok := o.do.(cell.Take); ok && old {
		take.Old = true
		return take
	}
	return o.do
}

// letGo is for the lane of an op that was dropped: it was answered when it was.
func (o *op) letGo() {
	if o.round != nil {
		o.round.letGo()
	}
}
