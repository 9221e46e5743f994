package master

import (
	"slices"
	"sync/atomic"

	"redlock-proxy/internal/resp"
	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/register"
)

type reply = register.Reply

// The constants are the stages of an op. An op leaves the queued stage exactly once: its lane sends
// or refuses it, or its caller drops it.
const (
	stageQueued int32 = iota
	stageSent
	stageDropped
)

// command holds an operation in a database, for one master or several.
type command struct {
	db     int
	cellOp cell.Op
	// words is the encoded command, with the SHA of a script, for Redis 7 or later.
	words []byte
}

func newCommand(db int, cellOp cell.Op) *command {
	c := &command{}
	c.set(db, cellOp)
	return c
}

// typicalCommandBytes is a size, in bytes, that most commands do not exceed.
const typicalCommandBytes = 192

// set replaces the operation, and reuses the memory.
func (c *command) set(db int, cellOp cell.Op) {
	if c.words == nil {
		c.words = make([]byte, 0, typicalCommandBytes)
	}
	c.db, c.cellOp = db, cellOp
	switch cellOp := cellOp.(type) {
	case cell.Appender:
		c.words = cellOp.AppendTo(c.words[:0], false)
	default:
		c.words = resp.AppendCommand(c.words[:0], cellOp.Words(false)...)
	}
}

// isSame reports whether two operations are the same command. It may return false for equal
// operations.
func isSame(a, b cell.Op) bool {
	switch a := a.(type) {
	case cell.Take:
		b, ok := b.(cell.Take)
		return ok && a.Attempt == b.Attempt && a.TTL == b.TTL && a.Mark == b.Mark && a.BeforeRedis7 == b.BeforeRedis7 &&
			a.Fence == b.Fence &&
			slices.Equal(a.Names, b.Names) && slices.Equal(a.Tokens, b.Tokens)
	case cell.Remove:
		b, ok := b.(cell.Remove)
		return ok && a == b
	case cell.Extend:
		b, ok := b.(cell.Extend)
		return ok && a == b
	case cell.Extends:
		b, ok := b.(cell.Extends)
		return ok && slices.Equal(a, b)
	case cell.Prepare:
		b, ok := b.(cell.Prepare)
		return ok && a == b
	case cell.Raise:
		b, ok := b.(cell.Raise)
		return ok && a.Attempt == b.Attempt && a.Fence == b.Fence && slices.Equal(a.Names, b.Names)
	case cell.Read:
		b, ok := b.(cell.Read)
		return ok && a.WithFences == b.WithFences && slices.Equal(a.Names, b.Names)
	default:
		return false
	}
}

// op holds one command on its way to one master.
type op struct {
	*command
	// round waits for the reply, as the reply of master number index. If it is nil, no caller
	// waits.
	round *Round
	index int32
	stage atomic.Int32
	// fullScript is set if the op sends the script instead of its SHA.
	fullScript bool
	// keepIfDown makes the proxy keep the op while the master is down, and send it later.
	keepIfDown bool
}

// noReplyOp returns an op whose reply no caller waits for.
func noReplyOp(db int, cellOp cell.Op, keepIfDown bool) *op {
	return &op{command: newCommand(db, cellOp), keepIfDown: keepIfDown}
}

func (o *op) markSent() bool    { return o.stage.CompareAndSwap(stageQueued, stageSent) }
func (o *op) markDropped() bool { return o.stage.CompareAndSwap(stageQueued, stageDropped) }

// appendTo appends the command in the form for a server. beforeRedis7 means a server before Redis
// 7.
func (o *op) appendTo(b []byte, beforeRedis7 bool) []byte {
	switch take, ok := o.cellOp.(cell.Take); {
	case beforeRedis7 && ok && !take.BeforeRedis7:
		return resp.AppendCommand(b, o.form(beforeRedis7).Words(o.fullScript)...)
	case o.fullScript:
		return resp.AppendCommand(b, o.cellOp.Words(true)...)
	default:
		return append(b, o.words...)
	}
}

// form returns the operation in the form for a server. beforeRedis7 means a server before Redis 7.
func (o *op) form(beforeRedis7 bool) cell.Op {
	if take, ok := o.cellOp.(cell.Take); ok && beforeRedis7 {
		take.BeforeRedis7 = true
		return take
	}
	return o.cellOp
}

// unref releases a dropped op's reference to its round.
func (o *op) unref() {
	if o.round != nil {
		o.round.unref()
	}
}
