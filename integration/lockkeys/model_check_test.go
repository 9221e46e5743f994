//go:build integration

package lockkeys

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// repliedRecord returns the record of a command that was sent at from and got its reply at to, both
// in ms.
func repliedRecord(from, to int, verb lockVerb, value string, reply any) lockRecord {
	return lockRecord{op: lockOp{verb: verb, value: value}, reply: reply, from: time.Duration(from) * time.Millisecond,
		to: time.Duration(to) * time.Millisecond}
}

// unknownRecord returns the record of a command without a reply.
func unknownRecord(from, to int, verb lockVerb, value string) lockRecord {
	r := repliedRecord(from, to, verb, value, nil)
	r.op.outcome = outcomeUnknown
	return r
}

// conditionalRecord returns the record of a compare-and-set or an EXEC.
func conditionalRecord(from, to int, verb lockVerb, expectedValue, value string, reply any) lockRecord {
	r := repliedRecord(from, to, verb, value, reply)
	r.op.expectedValue, r.watchTime = expectedValue, r.from
	return r
}

// unknownConditionalRecord returns the record of a compare-and-set or an EXEC without a reply.
func unknownConditionalRecord(from, to int, verb lockVerb, expectedValue, value string) lockRecord {
	r := unknownRecord(from, to, verb, value)
	r.op.expectedValue = expectedValue
	return r
}

func TestCheckLockKey(t *testing.T) {
	legal, illegal := porcupine.Ok, porcupine.Illegal
	for _, test := range []struct {
		name    string
		records []lockRecord
		want    porcupine.CheckResult
	}{
		{"nothing", nil, legal},
		{"one after the other", []lockRecord{
			repliedRecord(0, 1, verbTake, "a", "OK"), repliedRecord(2, 3, verbTake, "b", nil), repliedRecord(4, 5, verbGet, "", "a"),
			repliedRecord(6, 7, verbExtend, "a", int64(1)),
			repliedRecord(8, 9, verbRelease, "b", int64(0)), repliedRecord(10, 11, verbRelease, "a", int64(1)),
			repliedRecord(12, 13, verbReplace, "c", nil), repliedRecord(14, 15, verbGet, "", nil),
			repliedRecord(16, 17, verbSwap, "d", nil), repliedRecord(18, 19, verbReplace, "e", "OK"),
			repliedRecord(20, 21, verbDel, "", int64(1)), repliedRecord(22, 23, verbDel, "", int64(0)),
			repliedRecord(24, 25, verbPut, "f", "OK"), repliedRecord(26, 27, verbPut, "g", "OK"),
			conditionalRecord(28, 29, verbCompareSet, "f", "h", int64(0)),
			conditionalRecord(30, 31, verbCompareSet, "g", "i", int64(1)), repliedRecord(32, 33, verbGetDel, "", "i"),
			repliedRecord(34, 35, verbGetDel, "", nil),
			conditionalRecord(36, 37, verbExec, "", "j", "OK"), conditionalRecord(38, 39, verbExec, "j", "k", "OK"),
			repliedRecord(40, 41, verbGet, "", "k"),
		}, legal},
		{"two hold it", []lockRecord{repliedRecord(0, 1, verbTake, "a", "OK"), repliedRecord(2, 3, verbTake, "b", "OK")}, illegal},
		{"two at once hold it", []lockRecord{repliedRecord(0, 5, verbTake, "a", "OK"), repliedRecord(1, 4, verbTake, "b", "OK")}, illegal},
		{"the wrong owner releases", []lockRecord{
			repliedRecord(0, 1, verbTake, "a", "OK"), repliedRecord(2, 3, verbRelease, "b", int64(1)),
			repliedRecord(4, 5, verbTake, "c", "OK"),
		}, illegal},
		{"the owner does not", []lockRecord{repliedRecord(0, 1, verbTake, "a", "OK"),
			repliedRecord(2, 3, verbRelease, "a", int64(0))}, illegal},
		{"two release the same", []lockRecord{
			repliedRecord(0, 1, verbTake, "a", "OK"), repliedRecord(2, 9, verbRelease, "a", int64(1)),
			repliedRecord(3, 8, verbRelease, "a", int64(1)),
		}, illegal},
		{"a removal of what is replaced at once", []lockRecord{
			repliedRecord(0, 1, verbTake, "a", "OK"), repliedRecord(2, 9, verbDel, "", int64(1)),
			repliedRecord(3, 8, verbSwap, "b", "a"), repliedRecord(10, 11, verbGet, "", "b"),
		}, illegal},
		{"what was released is there again", []lockRecord{
			repliedRecord(0, 1, verbTake, "a", "OK"), repliedRecord(2, 9, verbRelease, "a", int64(1)),
			repliedRecord(10, 11, verbGet, "", "a"),
		}, illegal},
		{"what is gone is extended", []lockRecord{
			repliedRecord(0, 1, verbTake, "a", "OK"), repliedRecord(2, 3, verbDel, "", int64(1)),
			repliedRecord(4, 5, verbExtend, "a", int64(1)),
		}, illegal},
		{"a held key reads as free", []lockRecord{
			repliedRecord(0, 1, verbTake, "a", "OK"), repliedRecord(2, 9, verbTake, "b", nil), repliedRecord(4, 5, verbGet, "", nil),
		}, illegal},
		{"read, gone, and read again", []lockRecord{
			repliedRecord(0, 9, verbTake, "a", "OK"), repliedRecord(1, 2, verbGet, "", "a"), repliedRecord(3, 4, verbGet, "", nil),
		}, illegal},
		{"two swaps get the same", []lockRecord{
			repliedRecord(0, 1, verbTake, "a", "OK"), repliedRecord(2, 9, verbSwap, "b", "a"), repliedRecord(2, 9, verbSwap, "c", "a"),
		}, illegal},
		{"two comparisons hold", []lockRecord{
			repliedRecord(0, 1, verbTake, "a", "OK"), conditionalRecord(2, 9, verbCompareSet, "a", "b", int64(1)),
			conditionalRecord(2, 9, verbExec, "a", "c", "OK"),
		}, illegal},
		{"two take it away", []lockRecord{
			repliedRecord(0, 1, verbTake, "a", "OK"), repliedRecord(2, 9, verbGetDel, "", "a"), repliedRecord(2, 9, verbGetDel, "", "a"),
		}, illegal},
		{"both who come at once are refused", []lockRecord{repliedRecord(0, 5, verbTake, "a", nil),
			repliedRecord(1, 4, verbTake, "b", nil)}, illegal},
		{"refused beside one who won, and released", []lockRecord{
			repliedRecord(0, 1, verbTake, "a", "OK"), repliedRecord(2, 5, verbRelease, "a", int64(1)),
			repliedRecord(2, 5, verbTake, "b", nil),
		}, legal},
		{"nobody removed what is gone", []lockRecord{
			repliedRecord(0, 1, verbTake, "a", "OK"), repliedRecord(2, 9, verbRelease, "a", int64(0)),
			repliedRecord(3, 8, verbDel, "", int64(0)), repliedRecord(10, 11, verbGet, "", nil),
		}, illegal},
		{"refused without a holder", []lockRecord{repliedRecord(0, 1, verbTake, "a", nil),
			repliedRecord(2, 3, verbTake, "b", "OK")}, illegal},
		{"the value of one who was refused is seen", []lockRecord{
			repliedRecord(0, 1, verbTake, "a", nil), repliedRecord(2, 3, verbGet, "", "a"), repliedRecord(4, 5, verbTake, "b", "OK"),
		}, illegal},
		{"a transaction is told of what was written since its watch", []lockRecord{
			repliedRecord(0, 3, verbTake, "a", "OK"), {op: lockOp{verb: verbExec, value: "b"}, from: 8 * time.Millisecond,
				to: 9 * time.Millisecond, watchTime: time.Millisecond},
		}, legal},
		{"a transaction beside an extension is told to start over", []lockRecord{
			repliedRecord(0, 1, verbTake, "a", "OK"), conditionalRecord(2, 9, verbExec, "a", "b", nil),
			repliedRecord(3, 4, verbExtend, "a", int64(1)), repliedRecord(10, 11, verbGet, "", "a"),
		}, legal},
		{"a transaction that nobody disturbs is told to start over", []lockRecord{
			repliedRecord(0, 1, verbTake, "a", "OK"), conditionalRecord(2, 9, verbExec, "a", "b", nil),
			repliedRecord(10, 11, verbExtend, "a", int64(1)),
		}, illegal},
		{"lost, and done", []lockRecord{unknownRecord(0, 1, verbTake, "a"), repliedRecord(2, 3, verbGet, "", "a")}, legal},
		{"lost, and done late", []lockRecord{unknownRecord(0, 1, verbTake, "a"), repliedRecord(2, 3, verbGet, "", nil),
			repliedRecord(4, 5, verbGet, "", "a")}, legal},
		{"lost, done, and released", []lockRecord{
			unknownRecord(0, 1, verbTake, "a"), repliedRecord(2, 3, verbGet, "", "a"), repliedRecord(4, 5, verbGet, "", nil),
			repliedRecord(6, 7, verbTake, "b", "OK"),
		}, legal},
		{"lost, never seen, and in the way", []lockRecord{unknownRecord(0, 1, verbTake, "a"),
			repliedRecord(2, 3, verbTake, "b", nil), repliedRecord(4, 5, verbTake, "c", "OK")}, legal},
		{"lost, and done before it was sent", []lockRecord{repliedRecord(0, 1, verbGet, "", "a"),
			unknownRecord(2, 3, verbTake, "a")}, illegal},
		{"lost, and done twice", []lockRecord{
			unknownRecord(0, 1, verbTake, "a"), repliedRecord(2, 3, verbGet, "", "a"), repliedRecord(4, 5, verbDel, "", int64(1)),
			repliedRecord(6, 7, verbGet, "", nil), repliedRecord(8, 9, verbGet, "", "a"),
		}, illegal},
		{"lost, released, and there again", []lockRecord{
			unknownRecord(0, 1, verbTake, "a"), repliedRecord(2, 3, verbGet, "", "a"), repliedRecord(4, 5, verbGet, "", nil),
			repliedRecord(6, 7, verbGet, "", "a"),
		}, illegal},
		{"lost, replaced, and what replaced it released for it", []lockRecord{
			unknownRecord(0, 1, verbTake, "a"), repliedRecord(2, 3, verbSwap, "b", "a"), repliedRecord(4, 5, verbGet, "", nil),
		}, illegal},
		{"a lost swap, done", []lockRecord{
			repliedRecord(0, 1, verbTake, "a", "OK"), unknownRecord(2, 3, verbSwap, "b"), repliedRecord(4, 5, verbGet, "", "a"),
			repliedRecord(6, 7, verbGet, "", "b"),
		}, legal},
		{"a lost swap gives back what it took", []lockRecord{
			repliedRecord(0, 1, verbTake, "a", "OK"), unknownRecord(2, 3, verbSwap, "b"), repliedRecord(4, 5, verbGet, "", "b"),
			repliedRecord(6, 7, verbGet, "", "a"),
		}, illegal},
		{"a lost swap of nothing is released again", []lockRecord{
			unknownRecord(0, 1, verbSwap, "a"), repliedRecord(2, 3, verbGet, "", "a"), repliedRecord(4, 5, verbGet, "", nil),
		}, illegal},
		{"a lost comparison, done late", []lockRecord{
			repliedRecord(0, 1, verbTake, "a", "OK"), unknownConditionalRecord(2, 3, verbCompareSet, "a", "b"),
			repliedRecord(4, 5, verbGet, "", "a"), repliedRecord(6, 7, verbGet, "", "b"),
		}, legal},
		{"a lost comparison, done though it did not hold", []lockRecord{
			repliedRecord(0, 1, verbTake, "a", "OK"), unknownConditionalRecord(2, 3, verbExec, "c", "b"),
			repliedRecord(4, 5, verbGet, "", "b"),
		}, illegal},
		{"a lost release", []lockRecord{
			repliedRecord(0, 1, verbTake, "a", "OK"), unknownRecord(2, 3, verbRelease, "a"), repliedRecord(4, 5, verbGet, "", "a"),
			repliedRecord(6, 7, verbTake, "b", "OK"),
		}, legal},
		{"a lost release is not undone", []lockRecord{
			repliedRecord(0, 1, verbTake, "a", "OK"), unknownRecord(2, 3, verbRelease, "a"), repliedRecord(4, 5, verbGet, "", nil),
			repliedRecord(6, 7, verbGet, "", "a"),
		}, illegal},
		{"a lost read means nothing", []lockRecord{repliedRecord(0, 1, verbTake, "a", "OK"), unknownRecord(2, 3, verbGet, ""),
			unknownRecord(2, 3, verbExtend, "b")}, legal},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := checkLockKey(test.records); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

// TestCheckLockKeyOfOneRedis checks that checkLockKey accepts a history in which a register gave
// each reply at a time between its request and its arrival. It rejects the history if a reply with
// the key's value is changed.
func TestCheckLockKeyOfOneRedis(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	for range 200 {
		records := validHistory(random, 40, 0)
		if got := checkLockKey(records); got != porcupine.Ok {
			t.Fatalf("seed %d: %+v of %+v", seed, got, records)
		}
		for i, r := range records {
			if !r.op.verb.returnsValue() {
				continue
			}
			records[i].reply = "of nobody"
			if got := checkLockKey(records); got != porcupine.Illegal {
				t.Fatalf("seed %d: %+v of a history with a value that no client wrote: %+v", seed, got, records)
			}
			break
		}
	}
}

// TestCheckLockKeyWithLostCommands checks that checkLockKey accepts the longest histories with the
// most lost commands, whatever effect the lost commands had. It rejects most histories in which two
// replies are swapped. It decides each history in time.
func TestCheckLockKeyWithLostCommands(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	var maxDuration time.Duration
	decide := func(records []lockRecord) porcupine.CheckResult {
		startedAt := time.Now()
		defer func() { maxDuration = max(maxDuration, time.Since(startedAt)) }()
		return checkLockKey(records)
	}
	illegalCount := 0
	for range 20 {
		records := validHistory(random, opsPerKey, unknownPerKey)
		if got := decide(records); got != porcupine.Ok {
			t.Fatalf("seed %d: %v of %+v", seed, got, records)
		}
		swapReplies(random, records)
		switch decide(records) {
		case porcupine.Unknown:
			t.Fatalf("seed %d: not decided: %+v", seed, records)
		case porcupine.Illegal:
			illegalCount++
		}
	}
	t.Logf("%d of 20 spoilt histories are wrong; the longest check took %v", illegalCount, maxDuration.Round(time.Millisecond))
	if illegalCount < 15 {
		t.Errorf("seed %d: only %d of 20 spoilt histories were found wrong", seed, illegalCount)
	}
}

// swapReplies swaps two different replies that are values of the key.
func swapReplies(random *rand.Rand, records []lockRecord) {
	var reads []int
	for i, r := range records {
		if r.op.verb.returnsValue() && r.op.outcome != outcomeUnknown && r.reply != nil {
			reads = append(reads, i)
		}
	}
	first := reads[random.IntN(len(reads))]
	for _, other := range reads {
		if records[other].reply != records[first].reply {
			records[first].reply, records[other].reply = records[other].reply, records[first].reply
			return
		}
	}
}

// validHistory executes commands one after the other, and gives each command a random period around
// its execution. Some lost commands are executed much later or never, and some lost commands that
// take the lock are undone.
func validHistory(random *rand.Rand, length, unknowns int) []lockRecord {
	state, records, later := register(""), []lockRecord(nil), map[int][]lockOp{}
	for i := range length {
		for _, op := range later[i] {
			_, state = state.step(op, nil)
		}
		op := randomOp(random, state, i)
		var reply any
		if unknowns > 0 && op.verb.writes() && random.IntN(length/10) == 0 {
			unknowns--
			op.outcome = outcomeUnknown
			executedAt := i + 1 + random.IntN(length)
			later[executedAt] = append(later[executedAt], op)
			executedAt += random.IntN(length)
			if op.verb == verbTake {
				later[executedAt] = append(later[executedAt], lockOp{value: op.value, outcome: outcomeUndone})
			}
		} else {
			reply, state = state.run(op)
		}
		moment := time.Duration(10 * i)
		records = append(records, lockRecord{
			client: i, op: op, reply: reply, from: moment - time.Duration(random.IntN(30)),
			to: moment + time.Duration(random.IntN(30)),
		})
	}
	random.Shuffle(length, func(i, j int) { records[i], records[j] = records[j], records[i] })
	return records
}

// randomOp returns a command that often uses the value of the key.
func randomOp(random *rand.Rand, state register, i int) lockOp {
	verbs := []lockVerb{
		verbTake, verbPut, verbReplace, verbSwap, verbGet, verbDel, verbGetDel, verbRelease, verbExtend, verbCompareSet, verbExec,
	}
	op := lockOp{verb: verbs[random.IntN(len(verbs))], value: fmt.Sprint("v", i)}
	switch {
	case op.verb == verbExec: // the transaction expects the value that it has read
		op.expectedValue = string(state)
	case op.verb == verbCompareSet && random.IntN(2) == 0:
		op.expectedValue = string(state)
	case !op.verb.writesValue() && random.IntN(2) == 0:
		op.value = string(state)
	}
	return op
}
