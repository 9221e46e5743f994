package script

import (
	"cmp"
	"time"
)

// Limits holds the limits of a run, in addition to the time of its Share. Zero means the default; a
// negative Bytes means no limit.
type Limits struct {
	// Bytes limits the total of the strings, tables and functions that a run creates, even if it no
	// longer uses them. Strings and tables from the replies of Call count, too. Numbers, booleans
	// and the stack do not count. The limit on the depth of calls limits the stack to some 16 MB.
	Bytes int
	// Calls limits how many commands a run may call.
	Calls int
	// Reply limits the size of the reply: its bytes, and 16 for each element.
	Reply int
}

// The defaults of Limits and of Share. Lock scripts take microseconds, a few hundred bytes and
// fewer than ten commands. The time limit allows for a busy machine.
const (
	DefaultTime  = time.Second
	DefaultBytes = 16 << 20
	DefaultCalls = 10000
	DefaultReply = 1 << 20
)

// maxCompiledBytes limits the memory of a compilation, in bytes as Limits counts them.
const maxCompiledBytes = 64 << 20

// maxReplyDepth limits how deep the arrays of a reply may nest.
const maxReplyDepth = 128

func (l Limits) withDefaults() Limits {
	l.Bytes = cmp.Or(l.Bytes, DefaultBytes)
	l.Calls = cmp.Or(l.Calls, DefaultCalls)
	l.Reply = cmp.Or(l.Reply, DefaultReply)
	return l
}
