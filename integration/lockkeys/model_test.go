//go:build integration

package lockkeys

import (
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// lockVerb is what a command does with a lock key.
type lockVerb string

const (
	verbTake       lockVerb = "SET NX"
	verbPut        lockVerb = "SET"
	verbReplace    lockVerb = "SET XX"
	verbSwap       lockVerb = "GETSET"
	verbGet        lockVerb = "GET"
	verbDel        lockVerb = "DEL"
	verbGetDel     lockVerb = "GETDEL"
	verbRelease    lockVerb = "compare-and-delete"
	verbExtend     lockVerb = "compare-and-expire"
	verbCompareSet lockVerb = "compare-and-set"
	// verbExec is the EXEC of WATCH, GET, MULTI, SET, EXEC; its GET is a record of its own.
	verbExec lockVerb = "EXEC"
)

// lockOp is one command as its client sent it. No two of a history write the same value.
type lockOp struct {
	verb  lockVerb
	value string // what it writes; of a compare-and-delete and a compare-and-expire, what it expects
	// expects is what the key must hold for a compare-and-set or an EXEC to write.
	expects string

	fate fate
}

// fate is what is known of a command beside its reply.
type fate int

const (
	answered fate = iota
	// lost: the reply never came, or was an error. The command was carried out once or was not, at
	// any time since it was sent, be it long after the reply.
	lost
	// takenBack is what a lost take may bring with it: what it took is released again, at any time.
	takenBack
)

// writes reports whether a command can change what a key holds.
func (v lockVerb) writes() bool { return v != verbGet && v != verbExtend }

// gives reports whether a command writes a value.
func (v lockVerb) gives() bool {
	return slices.Contains([]lockVerb{verbTake, verbPut, verbReplace, verbSwap, verbCompareSet, verbExec}, v)
}

// tells reports whether a command's reply is what the key held.
func (v lockVerb) tells() bool { return v == verbGet || v == verbSwap || v == verbGetDel }

// register is what a lock key holds; "" is nothing.
type register string

// reply is what a client is told of what the key holds.
func (r register) reply() any {
	if r == "" {
		return nil
	}
	return string(r)
}

// run carries a command out as a Redis does.
func (r register) run(op lockOp) (reply any, next register) {
	written := register(op.value)
	switch op.verb {
	case verbTake:
		return r.write(r == "", written, "OK", nil)
	case verbPut:
		return "OK", written
	case verbReplace:
		return r.write(r != "", written, "OK", nil)
	case verbExec:
		return r.write(r == register(op.expects), written, "OK", nil)
	case verbCompareSet:
		return r.write(r == register(op.expects), written, int64(1), int64(0))
	case verbSwap:
		return r.reply(), written
	case verbGetDel:
		return r.reply(), ""
	case verbDel:
		return r.write(r != "", "", int64(1), int64(0))
	case verbRelease:
		return r.write(r == written, "", int64(1), int64(0))
	case verbExtend:
		return r.write(r == written, r, int64(1), int64(0))
	default:
		return r.reply(), r
	}
}

// write is a command that writes under a condition, and what it answers.
func (r register) write(condition bool, written register, yes, no any) (reply any, next register) {
	if !condition {
		return no, r
	}
	return yes, written
}

// step is what the key holds after a command that has this reply; false where it cannot have it.
func (r register) step(op lockOp, reply any) (bool, register) {
	want, next := r.run(op)
	switch {
	case op.fate == takenBack && r == register(op.value):
		return true, ""
	case op.fate == takenBack:
		return true, r
	case op.fate == lost:
		return true, next
	case op.verb == verbExec && reply == nil: // somebody touched the key, be it that he extended it; see abortedAlone
		return true, r
	default:
		return reply == want, next
	}
}

// registerModel is a lock key for porcupine.
func registerModel() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return register("") },
		Step: func(state, input, output any) (bool, any) {
			possible, next := state.(register).step(input.(lockOp), output)
			return possible, next
		},
	}
}

// lockRecord is what one client saw of one command: sent at from, answered at to (of the test
// process' monotonic clock).
type lockRecord struct {
	client   int
	op       lockOp
	reply    any
	from, to time.Duration
	// watched is when the WATCH before an EXEC was sent.
	watched time.Duration
}

// never is when a lost command is surely over.
const never = time.Duration(1<<63 - 1)

// operations are the records for porcupine: a lost write is with it to the end, and so is what
// takes a lost take back.
func operations(records []lockRecord) []porcupine.Operation {
	var all []porcupine.Operation
	for _, r := range records {
		one := porcupine.Operation{ClientId: r.client, Input: r.op, Call: int64(r.from), Output: r.reply, Return: int64(r.to)}
		switch {
		case r.op.fate != lost:
			all = append(all, one)
		case r.op.verb.writes(): // else it tells nothing and changes nothing
			one.Return = int64(never)
			all = append(all, one)
			if r.op.verb == verbTake {
				one.Input = lockOp{value: r.op.value, fate: takenBack}
				all = append(all, one)
			}
		}
	}
	return all
}

// checkPatience bounds the check of one history, which mostly takes milliseconds.
const checkPatience = 20 * time.Second

// checkLockKey looks for an order of the commands in which one Redis would have given the same
// replies, each command at a time between its being sent and its answer.
//
// A command whose answer was an error, or never came, is carried out once at any later time, or
// never. A take of these may in addition be released again. Nothing else is excused. (A SET NX may
// be told nil for a lease that has just ended; no lease ends in these histories.)
func checkLockKey(records []lockRecord) porcupine.CheckResult {
	if abortedAlone(records) {
		return porcupine.Illegal
	}
	// A lost write that nobody saw may as well have come after all else: what is explained without
	// those is explained, and faster.
	seen := seenValues(records)
	fewer := slices.DeleteFunc(slices.Clone(records), func(r lockRecord) bool {
		return r.op.fate == lost && r.op.verb.gives() && !seen[r.op.value]
	})
	result := porcupine.CheckOperationsTimeout(registerModel(), operations(fewer), checkPatience)
	if result == porcupine.Ok || len(fewer) == len(records) {
		return result
	}
	return porcupine.CheckOperationsTimeout(registerModel(), operations(records), checkPatience)
}

// seenValues are those that were read, replaced, extended or released.
func seenValues(records []lockRecord) map[any]bool {
	seen := map[any]bool{}
	for _, r := range records {
		switch {
		case r.op.verb.tells():
			seen[r.reply] = true
		case r.op.verb == verbCompareSet && r.reply == int64(1):
			seen[r.op.expects] = true
		case !r.op.verb.gives() && r.reply == int64(1):
			seen[r.op.value] = true
		}
	}
	return seen
}

// abortedAlone finds a transaction that was told that its key was touched, when nobody else can
// have touched it. Whether the value that it watched came and went meanwhile is not asked: without
// the key's history nobody can tell.
func abortedAlone(records []lockRecord) bool {
	for i, r := range records {
		if r.op.verb != verbExec || r.op.fate == lost || r.reply != nil {
			continue
		}
		touched := false
		for j, other := range records {
			touched = touched || j != i && other.op.verb != verbGet && other.from <= r.to && (other.op.fate == lost || other.to >= r.watched)
		}
		if !touched {
			return true
		}
	}
	return false
}
