package quorum

import (
	"sync/atomic"
	"time"
)

// vote is one master's answer to one operation.
type vote int

const (
	voteFailed vote = iota // no answer that counts; see reply.err
	voteYes                // applied
	voteNo                 // refused: another value stands there
	voteAbsent             // refused: the key is not there
)

// reply is what came of one operation at one master.
type reply struct {
	vote vote
	err  error
	// uncounted is what the master said where that is no vote: it may have forgotten
	// what others hold. err is why.
	uncounted vote
	// unknown is set where the master was sent the operation and never answered:
	// it may have applied it.
	unknown bool
	// entries are what stands under the keys, one for each: of a read; of a change
	// that was refused, as far as the master tells; of an edit that was made, what
	// stood there before.
	entries []Entry
	// said is the answer to a plain command.
	said any
}

// mayHaveDone reports whether the master may have applied the operation.
func (r reply) mayHaveDone() bool { return r.unknown || r.asSaid().vote == voteYes }

// Stages of an op. An op leaves the queued stage exactly once: its lane sends it
// or its caller drops it.
const (
	stageQueued int32 = iota
	stageSent
	stageDropped
)

// op is one change on its way to one master.
type op struct {
	change Change
	stage  atomic.Int32
	sentAt time.Time
	// eval has the whole script sent instead of its SHA.
	eval bool
	// round waits for the reply, as that of its master number index. Cleanups have
	// none: nobody waits for them.
	round *round
	index int
}

func (o *op) isCleanup() bool { return o.round == nil }

func (o *op) send() bool { return o.stage.CompareAndSwap(stageQueued, stageSent) }
func (o *op) drop() bool { return o.stage.CompareAndSwap(stageQueued, stageDropped) }
