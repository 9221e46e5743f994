//go:build integration

package lockkeys

import (
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// lockVerb is the effect of a command on a lock key.
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
	// verbExec is the EXEC of WATCH, GET, MULTI, SET, EXEC. The GET has its own record.
	verbExec lockVerb = "EXEC"
)

// lockOp is one command as its client sent it. All commands of a history write different values.
type lockOp struct {
	verb lockVerb
	// value is the written value, or the expected value of a compare-and-delete or
	// compare-and-expire.
	value string
	// expectedValue is the value that the key must have for a compare-and-set or an EXEC to write.
	expectedValue string

	outcome outcome
}

// outcome classifies the effect of a command: known from its reply, unknown, or undone.
type outcome int

const (
	outcomeReplied outcome = iota
	// outcomeUnknown marks a lost command: the reply was an error, or did not arrive. The command
	// was executed at most once, at any time since it was sent, even long after the error.
	outcomeUnknown
	// outcomeUndone is a possible effect of a lost command that takes the lock: the lock is
	// released again, at any time.
	outcomeUndone
)

// writes reports whether a command can change the value of a key.
func (v lockVerb) writes() bool { return v != verbGet && v != verbExtend }

// writesValue reports whether a command writes a value.
func (v lockVerb) writesValue() bool {
	return slices.Contains([]lockVerb{verbTake, verbPut, verbReplace, verbSwap, verbCompareSet, verbExec}, v)
}

// returnsValue reports whether a command's reply is the value of the key.
func (v lockVerb) returnsValue() bool { return v == verbGet || v == verbSwap || v == verbGetDel }

// register is the value of a lock key; "" means no value.
type register string

// reply returns the reply with the value of the key.
func (r register) reply() any {
	if r == "" {
		return nil
	}
	return string(r)
}

// run executes a command as Redis does.
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
		return r.write(r == register(op.expectedValue), written, "OK", nil)
	case verbCompareSet:
		return r.write(r == register(op.expectedValue), written, int64(1), int64(0))
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

// write executes a command that writes under a condition, and returns its reply.
func (r register) write(condition bool, newState register, successReply, no any) (reply any, next register) {
	if !condition {
		return no, r
	}
	return successReply, newState
}

// step returns the value of the key after a command, or false if the reply is impossible.
func (r register) step(op lockOp, reply any) (bool, register) {
	want, next := r.run(op)
	switch {
	case op.outcome == outcomeUndone && r == register(op.value):
		return true, ""
	case op.outcome == outcomeUndone:
		return true, r
	case op.outcome == outcomeUnknown:
		return true, next
	case op.verb == verbExec && reply == nil:
		// Another client changed the key, perhaps by extending the lock; see abortedWithoutChange.
		return true, r
	default:
		return reply == want, next
	}
}

// registerModel returns a lock key as a model for porcupine.
func registerModel() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return register("") },
		Step: func(state, input, output any) (bool, any) {
			possible, next := state.(register).step(input.(lockOp), output)
			return possible, next
		},
	}
}

// lockRecord is a client's record of one command. from is the time of the request and to the time
// of the reply, by the test process' monotonic clock.
type lockRecord struct {
	client   int
	op       lockOp
	reply    any
	from, to time.Duration
	// watchTime is the time when the WATCH before an EXEC was sent.
	watchTime time.Duration
}

// infiniteTime is the end time of a lost command.
const infiniteTime = time.Duration(1<<63 - 1)

// operations returns the records for porcupine. A lost write may take effect until the end, and so
// may the undo of a lost command that takes the lock.
func operations(records []lockRecord) []porcupine.Operation {
	var list []porcupine.Operation
	for _, r := range records {
		operation := porcupine.Operation{ClientId: r.client, Input: r.op, Call: int64(r.from), Output: r.reply,
			Return: int64(r.to)}
		switch {
		case r.op.outcome != outcomeUnknown:
			list = append(list, operation)
		case r.op.verb.writes(): // a lost read changes nothing and shows nothing
			operation.Return = int64(infiniteTime)
			list = append(list, operation)
			if r.op.verb == verbTake {
				operation.Input = lockOp{value: r.op.value, outcome: outcomeUndone}
				list = append(list, operation)
			}
		}
	}
	return list
}

// checkTimeout limits the check of one history, which usually takes milliseconds.
const checkTimeout = 5 * time.Minute

// checkLockKey searches for an order of the commands in which one Redis would have given the same
// replies. Each command takes effect at a time between its request and its reply.
//
// A command whose reply was an error, or did not arrive, takes effect once at any later time, or
// never. If the command takes the lock, the proxies may undo it later. No other deviation is
// allowed. (A SET NX may return nil if the lease has just expired, but no lease expires in these
// histories.)
func checkLockKey(records []lockRecord) porcupine.CheckResult {
	if abortedWithoutChange(records) {
		return porcupine.Illegal
	}
	// A lost write whose value was never read may as well be the last command. A history that is
	// correct without these writes is correct, and is checked faster.
	seen := seenValues(records)
	reduced := slices.DeleteFunc(slices.Clone(records), func(r lockRecord) bool {
		return r.op.outcome == outcomeUnknown && r.op.verb.writesValue() && !seen[r.op.value]
	})
	result := porcupine.CheckOperationsTimeout(registerModel(), operations(reduced), checkTimeout)
	if result == porcupine.Ok || len(reduced) == len(records) {
		return result
	}
	return porcupine.CheckOperationsTimeout(registerModel(), operations(records), checkTimeout)
}

// seenValues returns the values that were read, replaced, extended or released.
func seenValues(records []lockRecord) map[any]bool {
	seen := map[any]bool{}
	for _, r := range records {
		switch {
		case r.op.verb.returnsValue():
			seen[r.reply] = true
		case r.op.verb == verbCompareSet && r.reply == int64(1):
			seen[r.op.expectedValue] = true
		case !r.op.verb.writesValue() && r.reply == int64(1):
			seen[r.op.value] = true
		}
	}
	return seen
}

// abortedWithoutChange reports whether a transaction was aborted although no other client can have
// changed its key. It does not check whether another client changed the value and restored it,
// because that needs the key's history.
func abortedWithoutChange(records []lockRecord) bool {
	for i, r := range records {
		if r.op.verb != verbExec || r.op.outcome == outcomeUnknown || r.reply != nil {
			continue
		}
		changed := false
		for j, other := range records {
			changed = changed || j != i && other.op.verb != verbGet && other.from <= r.to &&
				(other.op.outcome == outcomeUnknown || other.to >= r.watchTime)
		}
		if !changed {
			return true
		}
	}
	return false
}
