package script

import (
	"cmp"
	"time"
)

// Limits bound a run, beside the time of its Share. A zero stands for the default, a negative
// number of bytes for no limit.
type Limits struct {
	// Bytes is what the strings, tables and functions that a run makes may add up to, whether it
	// still holds them or not. Not counted are numbers, booleans, the stack and replies of Call;
	// the stack is bounded by the depth of calls, to some 16 MB.
	Bytes int
	// Calls is how many commands a run may call.
	Calls int
	// Reply is how large the reply of a run may be: its bytes, and 16 for each element.
	Reply int
}

// The defaults of Limits and of Share. Lock scripts take microseconds, a few hundred bytes and less
// than ten commands; the time is for a machine that has others to run.
const (
	DefaultTime  = time.Second
	DefaultBytes = 16 << 20
	DefaultCalls = 10000
	DefaultReply = 1 << 20
)

// maxCompiled bounds what a source may become while it is compiled, in bytes as Limits counts them.
const maxCompiled = 64 << 20

// maxReplyDepth is how deep the arrays of a reply may nest.
const maxReplyDepth = 128

func (l Limits) orDefaults() Limits {
	l.Bytes = cmp.Or(l.Bytes, DefaultBytes)
	l.Calls = cmp.Or(l.Calls, DefaultCalls)
	l.Reply = cmp.Or(l.Reply, DefaultReply)
	return l
}
