//go:build integration

package integration

import (
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// lockVerb is what a command does with a lock key.
type lockVerb string

const (
	verbTake    lockVerb = "SET NX"
	verbReplace lockVerb = "SET XX"
	verbSwap    lockVerb = "GETSET"
	verbGet     lockVerb = "GET"
	verbDel     lockVerb = "DEL"
	verbRelease lockVerb = "compare-and-delete"
	verbExtend  lockVerb = "compare-and-expire"
)

// lockOp is one command as its client sent it. No two of a history write the same value.
type lockOp struct {
	verb  lockVerb
	value string // what it writes, or what it expects

	fate fate
	// excused: its nil, 0 or 1 need not be that of a single Redis; see checkLockKey.
	excused bool
	// beside are the values that others wrote while a DEL was under way.
	beside []string
}

// fate is what is known of a command beside its reply.
type fate int

const (
	answered fate = iota
	// lost: the reply never came, or was an error. The command was carried out or was not, at any time since it was sent, be it
	// long after the reply.
	lost
	// undoing is what a lost write brings with it: the proxy takes back what it did, wherever that still stands, at any time.
	undoing
)

// writes reports whether a command can change what a key holds.
func (v lockVerb) writes() bool { return v != verbGet && v != verbExtend }

// removes reports whether a command takes away what a key holds.
func (v lockVerb) removes() bool { return v == verbDel || v == verbRelease }

// gives reports whether a command writes a value, which is undone when it is lost. A removal is not.
func (v lockVerb) gives() bool { return v == verbTake || v == verbReplace || v == verbSwap }

// register is what a lock key holds; "" is nothing. A value that a lost write put there is followed by "<" and what was there
// before, which the undo puts back.
type register string

func (r register) value() string {
	value, _, _ := strings.Cut(string(r), "<")
	return value
}

// run carries a command out as a Redis does.
func (r register) run(op lockOp) (reply any, next register) {
	held, written := r.value() != "", register(op.value)
	switch op.verb {
	case verbTake:
		if held {
			return nil, r
		}
		return "OK", written
	case verbReplace:
		if !held {
			return nil, r
		}
		return "OK", written
	case verbSwap, verbGet:
		if !held {
			reply = nil
		} else {
			reply = r.value()
		}
		if op.verb == verbGet {
			return reply, r
		}
		return reply, written
	case verbDel:
		if !held {
			return int64(0), r
		}
		return int64(1), ""
	case verbRelease:
		if r.value() != op.value {
			return int64(0), r
		}
		return int64(1), ""
	default:
		if r.value() != op.value {
			return int64(0), r
		}
		return int64(1), r
	}
}

// undo takes a value back, if the key still holds it from a lost write.
func (r register) undo(value string) register {
	top, before, wasLost := strings.Cut(string(r), "<")
	if !wasLost || top != value {
		return r
	}
	return register(before)
}

// step is what the key may hold after a command that has this reply now; nothing where it cannot have it.
func (r register) step(op lockOp, reply any) []any {
	if op.fate == undoing {
		return []any{r.undo(op.value)}
	}
	want, next := r.run(op)
	switch {
	case op.fate == lost && op.verb.gives() && next != r:
		return []any{next + "<" + r}
	case op.fate == lost:
		return []any{next}
	case op.excused && reply == int64(1) && slices.Contains(op.beside, r.value()): // of this, or of what this has replaced
		return []any{next, r}
	case reply == want:
		return []any{next}
	case op.excused && op.verb == verbTake:
		return []any{r}
	case op.excused && reply == int64(0): // removed by several at once, none of whom knows
		return []any{register("")}
	case op.excused: // it is told 1 for what was gone
		return []any{r}
	default:
		return nil
	}
}

// registerModel is a lock key for porcupine.
func registerModel() porcupine.Model {
	model := porcupine.NondeterministicModel{
		Init: func() []any { return []any{register("")} },
		Step: func(state, input, output any) []any { return state.(register).step(input.(lockOp), output) },
	}
	return model.ToModel()
}

// lockRecord is what one client saw of one command: sent at from, answered at to (of the test process' monotonic clock).
type lockRecord struct {
	client   int
	op       lockOp
	reply    any
	from, to time.Duration
	// wasSeen is for a SET NX that was told nil: others were told of its value.
	wasSeen bool
}

// never is when a lost command is surely over.
const never = time.Duration(1<<63 - 1)

// operations are the records for porcupine: a lost write is with it to the end, and so is its undo.
func operations(records []lockRecord) []porcupine.Operation {
	var all []porcupine.Operation
	for _, r := range records {
		one := porcupine.Operation{ClientId: r.client, Input: r.op, Call: int64(r.from), Output: r.reply, Return: int64(r.to)}
		switch {
		case r.op.fate != lost:
			all = append(all, one)
			if r.op.excused && r.wasSeen {
				r.op.fate = lost
				all = append(all, operations([]lockRecord{r})...)
			}
		case r.op.verb.gives():
			undo := one
			undo.Input = lockOp{value: r.op.value, fate: undoing}
			one.Return, undo.Return = int64(never), int64(never)
			all = append(all, one, undo)
		case r.op.verb.writes(): // else it tells nothing and changes nothing
			one.Return = int64(never)
			all = append(all, one)
		}
	}
	return all
}

// finding is what a check of the history of one key came to.
type finding struct {
	result  porcupine.CheckResult
	excused excuses
}

// excuses count the replies that no single Redis would have given, and that are right all the same; see checkLockKey.
type excuses struct {
	splitVotes    int // nil of SET NX for a free key, with another write in flight
	leftovers     int // the same without one
	splitRemovals int // 0 of a removal that did remove
	lateRemovals  int // 1 of a removal of what was gone
	seenRefusals  int // nil of SET NX whose value others have seen
}

func (e excuses) plus(other excuses) excuses {
	return excuses{
		e.splitVotes + other.splitVotes, e.leftovers + other.leftovers, e.splitRemovals + other.splitRemovals, e.lateRemovals + other.lateRemovals,
		e.seenRefusals + other.seenRefusals,
	}
}

const (
	// checkPatience bounds the check of one history, which mostly takes milliseconds.
	checkPatience = 20 * time.Second
	// tryPatience bounds each of the many that only count what must be excused. One that takes longer counts as failed.
	tryPatience = 500 * time.Millisecond
)

// checkLockKey looks for an order of the commands in which one Redis would have given the same replies, each command at a time
// between its being sent and its answer.
//
// Two things are allowed that no single Redis does.
//
// The nil of a SET NX says "held by another", and a vote can be split. Where two clients take a free key at once, each may win some
// of the masters and neither a majority. Then both are told nil, and what they have won is taken back; likewise a client that comes
// while another is half way through a release. So nil is also right while another write of the key is in flight. And it is where
// leftovers are still about: a try that failed is undone behind its answer, on a master that is out of reach as soon as it is back,
// and until then that master refuses everybody else.
//
// What such a try has won it may have won, for a moment, on a majority, where masters took it whose answers were lost. Then others may
// see the value of somebody who was told nil, until it is taken back.
//
// A removal says, whatever its answer, that its value is gone by then. Which of several is told 1 is not certain. Each of them may
// find the value on some of the masters and none on a majority, because another removes or overwrites it at once; then all are told 0.
// And where masters do not answer that may have held it, 1 is the answer: so two may be told 1, or one whose value was replaced at that
// moment.
//
// Nothing else is allowed; what is granted, extended, read or replaced must always be as on one Redis.
func checkLockKey(records []lockRecord) finding {
	records = markBeside(markSeen(records))
	inFlight, all := excusable(records)
	for _, excused := range [][]int{nil, inFlight, all} {
		if linearizable(records, excused, tryPatience) == porcupine.Ok {
			return finding{porcupine.Ok, countExcuses(records, fewest(records, excused), inFlight)}
		}
	}
	return finding{result: linearizable(records, all, checkPatience)}
}

func countExcuses(records []lockRecord, needed, inFlight []int) excuses {
	var e excuses
	for _, i := range needed {
		switch {
		case records[i].reply == int64(0):
			e.splitRemovals++
		case records[i].op.verb != verbTake:
			e.lateRemovals++
		case records[i].wasSeen:
			e.seenRefusals++
		case slices.Contains(inFlight, i):
			e.splitVotes++
		default:
			e.leftovers++
		}
	}
	return e
}

// linearizable checks records of which these are excused.
func linearizable(records []lockRecord, excused []int, patience time.Duration) porcupine.CheckResult {
	marked := slices.Clone(records)
	for _, i := range excused {
		marked[i].op.excused = true
	}
	// A lost write that nobody saw may as well have come after all else: what is explained without those is explained, and faster.
	seen := seenValues(records)
	fewer := slices.DeleteFunc(slices.Clone(marked), func(r lockRecord) bool {
		return r.op.fate == lost && r.op.verb.gives() && !seen[r.op.value]
	})
	if porcupine.CheckOperationsTimeout(registerModel(), operations(fewer), patience) == porcupine.Ok {
		return porcupine.Ok
	}
	return porcupine.CheckOperationsTimeout(registerModel(), operations(marked), patience)
}

// excusable are the replies that may be excused: all of them, and those with another command in flight that excuses them.
func excusable(records []lockRecord) (inFlight, all []int) {
	for i, r := range records {
		isTake := r.op.verb == verbTake && r.reply == nil
		if r.op.fate == lost || !isTake && !r.op.verb.removes() {
			continue
		}
		another := false
		for j, other := range records {
			another = another || j != i && other.op.verb.writes() && other.meets(r)
		}
		switch {
		case another:
			inFlight, all = append(inFlight, i), append(all, i)
		case isTake || r.reply == int64(1):
			all = append(all, i)
		}
	}
	return inFlight, all
}

// seenValues are those that were read, replaced, extended or released.
func seenValues(records []lockRecord) map[any]bool {
	seen := map[any]bool{}
	for _, r := range records {
		if r.reply == int64(1) && r.op.verb != verbDel {
			seen[r.op.value] = true
		}
		if !r.op.verb.gives() || r.op.verb == verbSwap {
			seen[r.reply] = true
		}
	}
	return seen
}

// markSeen finds each SET NX that was told nil, and whose value was seen all the same.
func markSeen(records []lockRecord) []lockRecord {
	seen := seenValues(records)
	marked := slices.Clone(records)
	for i, r := range marked {
		marked[i].wasSeen = r.op.verb == verbTake && r.op.fate != lost && r.reply == nil && seen[r.op.value]
	}
	return marked
}

// markBeside finds what was written while each DEL was under way.
func markBeside(records []lockRecord) []lockRecord {
	for i, r := range records {
		for _, other := range records {
			if r.op.verb == verbDel && other.op.verb.gives() && other.meets(r) {
				records[i].op.beside = append(records[i].op.beside, other.op.value)
			}
		}
	}
	return records
}

// meets reports whether two commands can have run at the same time.
func (r lockRecord) meets(other lockRecord) bool {
	return r.from <= other.to && (r.op.fate == lost || r.to >= other.from)
}

// fewest leaves out of the excuses whatever is not needed, halves of them at a time.
func fewest(records []lockRecord, excuses []int) []int {
	var needed []int
	var reduce func(part, rest []int)
	reduce = func(part, rest []int) {
		others := slices.Concat(needed, rest)
		if len(part) == 0 || linearizable(records, others, tryPatience) == porcupine.Ok {
			return
		}
		if len(part) == 1 {
			needed = append(needed, part[0])
			return
		}
		half := len(part) / 2
		reduce(part[:half], slices.Concat(part[half:], rest))
		reduce(part[half:], rest)
	}
	reduce(excuses, nil)
	return needed
}
