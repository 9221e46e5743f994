//go:build integration

package lockkeys

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// recorded returns a record of a command and its reply, sent at from and answered at to, in ms.
func recorded(from, to int, verb lockVerb, value string, reply any) lockRecord {
	return lockRecord{op: lockOp{verb: verb, value: value}, reply: reply, from: time.Duration(from) * time.Millisecond,
		to: time.Duration(to) * time.Millisecond}
}

// missed returns the record of a command without a reply.
func missed(from, to int, verb lockVerb, value string) lockRecord {
	r := recorded(from, to, verb, value, nil)
	r.op.fate = lost
	return r
}

// conditional returns the record of a compare-and-set or an EXEC.
func conditional(from, to int, verb lockVerb, expects, value string, reply any) lockRecord {
	r := recorded(from, to, verb, value, reply)
	r.op.expects, r.watched = expects, r.from
	return r
}

// missedConditional returns the record of a compare-and-set or an EXEC without a reply.
func missedConditional(from, to int, verb lockVerb, expects, value string) lockRecord {
	r := missed(from, to, verb, value)
	r.op.expects = expects
	return r
}

func TestCheckLockKey(t *testing.T) {
	right, wrong := porcupine.Ok, porcupine.Illegal
	for _, test := range []struct {
		name    string
		records []lockRecord
		want    porcupine.CheckResult
	}{
		{"nothing", nil, right},
		{"one after the other", []lockRecord{
			recorded(0, 1, verbTake, "a", "OK"), recorded(2, 3, verbTake, "b", nil), recorded(4, 5, verbGet, "", "a"),
			recorded(6, 7, verbExtend, "a", int64(1)),
			recorded(8, 9, verbRelease, "b", int64(0)), recorded(10, 11, verbRelease, "a", int64(1)),
			recorded(12, 13, verbReplace, "c", nil), recorded(14, 15, verbGet, "", nil),
			recorded(16, 17, verbSwap, "d", nil), recorded(18, 19, verbReplace, "e", "OK"),
			recorded(20, 21, verbDel, "", int64(1)), recorded(22, 23, verbDel, "", int64(0)),
			recorded(24, 25, verbPut, "f", "OK"), recorded(26, 27, verbPut, "g", "OK"),
			conditional(28, 29, verbCompareSet, "f", "h", int64(0)),
			conditional(30, 31, verbCompareSet, "g", "i", int64(1)), recorded(32, 33, verbGetDel, "", "i"),
			recorded(34, 35, verbGetDel, "", nil),
			conditional(36, 37, verbExec, "", "j", "OK"), conditional(38, 39, verbExec, "j", "k", "OK"),
			recorded(40, 41, verbGet, "", "k"),
		}, right},
		{"two hold it", []lockRecord{recorded(0, 1, verbTake, "a", "OK"), recorded(2, 3, verbTake, "b", "OK")}, wrong},
		{"two at once hold it", []lockRecord{recorded(0, 5, verbTake, "a", "OK"), recorded(1, 4, verbTake, "b", "OK")}, wrong},
		{"the wrong owner releases", []lockRecord{
			recorded(0, 1, verbTake, "a", "OK"), recorded(2, 3, verbRelease, "b", int64(1)),
			recorded(4, 5, verbTake, "c", "OK"),
		}, wrong},
		{"the owner does not", []lockRecord{recorded(0, 1, verbTake, "a", "OK"),
			recorded(2, 3, verbRelease, "a", int64(0))}, wrong},
		{"two release the same", []lockRecord{
			recorded(0, 1, verbTake, "a", "OK"), recorded(2, 9, verbRelease, "a", int64(1)),
			recorded(3, 8, verbRelease, "a", int64(1)),
		}, wrong},
		{"a removal of what is replaced at once", []lockRecord{
			recorded(0, 1, verbTake, "a", "OK"), recorded(2, 9, verbDel, "", int64(1)),
			recorded(3, 8, verbSwap, "b", "a"), recorded(10, 11, verbGet, "", "b"),
		}, wrong},
		{"what was released is there again", []lockRecord{
			recorded(0, 1, verbTake, "a", "OK"), recorded(2, 9, verbRelease, "a", int64(1)),
			recorded(10, 11, verbGet, "", "a"),
		}, wrong},
		{"what is gone is extended", []lockRecord{
			recorded(0, 1, verbTake, "a", "OK"), recorded(2, 3, verbDel, "", int64(1)),
			recorded(4, 5, verbExtend, "a", int64(1)),
		}, wrong},
		{"a held key reads as free", []lockRecord{
			recorded(0, 1, verbTake, "a", "OK"), recorded(2, 9, verbTake, "b", nil), recorded(4, 5, verbGet, "", nil),
		}, wrong},
		{"read, gone, and read again", []lockRecord{
			recorded(0, 9, verbTake, "a", "OK"), recorded(1, 2, verbGet, "", "a"), recorded(3, 4, verbGet, "", nil),
		}, wrong},
		{"two swaps get the same", []lockRecord{
			recorded(0, 1, verbTake, "a", "OK"), recorded(2, 9, verbSwap, "b", "a"), recorded(2, 9, verbSwap, "c", "a"),
		}, wrong},
		{"two comparisons hold", []lockRecord{
			recorded(0, 1, verbTake, "a", "OK"), conditional(2, 9, verbCompareSet, "a", "b", int64(1)),
			conditional(2, 9, verbExec, "a", "c", "OK"),
		}, wrong},
		{"two take it away", []lockRecord{
			recorded(0, 1, verbTake, "a", "OK"), recorded(2, 9, verbGetDel, "", "a"), recorded(2, 9, verbGetDel, "", "a"),
		}, wrong},
		{"both who come at once are refused", []lockRecord{recorded(0, 5, verbTake, "a", nil),
			recorded(1, 4, verbTake, "b", nil)}, wrong},
		{"refused beside one who won, and released", []lockRecord{
			recorded(0, 1, verbTake, "a", "OK"), recorded(2, 5, verbRelease, "a", int64(1)),
			recorded(2, 5, verbTake, "b", nil),
		}, right},
		{"nobody removed what is gone", []lockRecord{
			recorded(0, 1, verbTake, "a", "OK"), recorded(2, 9, verbRelease, "a", int64(0)),
			recorded(3, 8, verbDel, "", int64(0)), recorded(10, 11, verbGet, "", nil),
		}, wrong},
		{"refused without a holder", []lockRecord{recorded(0, 1, verbTake, "a", nil),
			recorded(2, 3, verbTake, "b", "OK")}, wrong},
		{"the value of one who was refused is seen", []lockRecord{
			recorded(0, 1, verbTake, "a", nil), recorded(2, 3, verbGet, "", "a"), recorded(4, 5, verbTake, "b", "OK"),
		}, wrong},
		{"a transaction is told of what was written since its watch", []lockRecord{
			recorded(0, 3, verbTake, "a", "OK"), {op: lockOp{verb: verbExec, value: "b"}, from: 8 * time.Millisecond,
				to: 9 * time.Millisecond, watched: time.Millisecond},
		}, right},
		{"a transaction beside an extension is told to start over", []lockRecord{
			recorded(0, 1, verbTake, "a", "OK"), conditional(2, 9, verbExec, "a", "b", nil),
			recorded(3, 4, verbExtend, "a", int64(1)), recorded(10, 11, verbGet, "", "a"),
		}, right},
		{"a transaction that nobody disturbs is told to start over", []lockRecord{
			recorded(0, 1, verbTake, "a", "OK"), conditional(2, 9, verbExec, "a", "b", nil),
			recorded(10, 11, verbExtend, "a", int64(1)),
		}, wrong},
		{"lost, and done", []lockRecord{missed(0, 1, verbTake, "a"), recorded(2, 3, verbGet, "", "a")}, right},
		{"lost, and done late", []lockRecord{missed(0, 1, verbTake, "a"), recorded(2, 3, verbGet, "", nil),
			recorded(4, 5, verbGet, "", "a")}, right},
		{"lost, done, and released", []lockRecord{
			missed(0, 1, verbTake, "a"), recorded(2, 3, verbGet, "", "a"), recorded(4, 5, verbGet, "", nil),
			recorded(6, 7, verbTake, "b", "OK"),
		}, right},
		{"lost, never seen, and in the way", []lockRecord{missed(0, 1, verbTake, "a"),
			recorded(2, 3, verbTake, "b", nil), recorded(4, 5, verbTake, "c", "OK")}, right},
		{"lost, and done before it was sent", []lockRecord{recorded(0, 1, verbGet, "", "a"),
			missed(2, 3, verbTake, "a")}, wrong},
		{"lost, and done twice", []lockRecord{
			missed(0, 1, verbTake, "a"), recorded(2, 3, verbGet, "", "a"), recorded(4, 5, verbDel, "", int64(1)),
			recorded(6, 7, verbGet, "", nil), recorded(8, 9, verbGet, "", "a"),
		}, wrong},
		{"lost, released, and there again", []lockRecord{
			missed(0, 1, verbTake, "a"), recorded(2, 3, verbGet, "", "a"), recorded(4, 5, verbGet, "", nil),
			recorded(6, 7, verbGet, "", "a"),
		}, wrong},
		{"lost, replaced, and what replaced it released for it", []lockRecord{
			missed(0, 1, verbTake, "a"), recorded(2, 3, verbSwap, "b", "a"), recorded(4, 5, verbGet, "", nil),
		}, wrong},
		{"a lost swap, done", []lockRecord{
			recorded(0, 1, verbTake, "a", "OK"), missed(2, 3, verbSwap, "b"), recorded(4, 5, verbGet, "", "a"),
			recorded(6, 7, verbGet, "", "b"),
		}, right},
		{"a lost swap gives back what it took", []lockRecord{
			recorded(0, 1, verbTake, "a", "OK"), missed(2, 3, verbSwap, "b"), recorded(4, 5, verbGet, "", "b"),
			recorded(6, 7, verbGet, "", "a"),
		}, wrong},
		{"a lost swap of nothing is released again", []lockRecord{
			missed(0, 1, verbSwap, "a"), recorded(2, 3, verbGet, "", "a"), recorded(4, 5, verbGet, "", nil),
		}, wrong},
		{"a lost comparison, done late", []lockRecord{
			recorded(0, 1, verbTake, "a", "OK"), missedConditional(2, 3, verbCompareSet, "a", "b"),
			recorded(4, 5, verbGet, "", "a"), recorded(6, 7, verbGet, "", "b"),
		}, right},
		{"a lost comparison, done though it did not hold", []lockRecord{
			recorded(0, 1, verbTake, "a", "OK"), missedConditional(2, 3, verbExec, "c", "b"),
			recorded(4, 5, verbGet, "", "b"),
		}, wrong},
		{"a lost release", []lockRecord{
			recorded(0, 1, verbTake, "a", "OK"), missed(2, 3, verbRelease, "a"), recorded(4, 5, verbGet, "", "a"),
			recorded(6, 7, verbTake, "b", "OK"),
		}, right},
		{"a lost release is not undone", []lockRecord{
			recorded(0, 1, verbTake, "a", "OK"), missed(2, 3, verbRelease, "a"), recorded(4, 5, verbGet, "", nil),
			recorded(6, 7, verbGet, "", "a"),
		}, wrong},
		{"a lost read means nothing", []lockRecord{recorded(0, 1, verbTake, "a", "OK"), missed(2, 3, verbGet, ""),
			missed(2, 3, verbExtend, "b")}, right},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := checkLockKey(test.records); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

// TestCheckLockKeyOfOneRedis checks that a history is correct if a register gave each reply at a
// time within its command, and wrong if a reply with the key's value is changed.
func TestCheckLockKeyOfOneRedis(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	for range 200 {
		records := trueHistory(random, 40, 0)
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

// TestCheckLockKeyWithLostCommands checks that the longest histories with the most lost commands
// are found correct, whatever effect the lost commands had. With a reply that does not fit its time
// they are found wrong. Both are decided quickly.
func TestCheckLockKeyWithLostCommands(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	var longest time.Duration
	decide := func(records []lockRecord) porcupine.CheckResult {
		began := time.Now()
		defer func() { longest = max(longest, time.Since(began)) }()
		return checkLockKey(records)
	}
	wrong := 0
	for range 20 {
		records := trueHistory(random, opsPerKey, lostPerKey)
		if got := decide(records); got != porcupine.Ok {
			t.Fatalf("seed %d: %v of %+v", seed, got, records)
		}
		spoil(random, records)
		switch decide(records) {
		case porcupine.Unknown:
			t.Fatalf("seed %d: not decided: %+v", seed, records)
		case porcupine.Illegal:
			wrong++
		}
	}
	t.Logf("%d of 20 spoilt histories are wrong; the longest check took %v", wrong, longest.Round(time.Millisecond))
	if wrong < 15 {
		t.Errorf("seed %d: only %d of 20 spoilt histories were found wrong", seed, wrong)
	}
}

// spoil swaps the replies to two reads.
func spoil(random *rand.Rand, records []lockRecord) {
	var told []int
	for i, r := range records {
		if r.op.verb.returnsValue() && r.op.fate != lost && r.reply != nil {
			told = append(told, i)
		}
	}
	one := told[random.IntN(len(told))]
	for _, other := range told {
		if records[other].reply != records[one].reply {
			records[one].reply, records[other].reply = records[other].reply, records[one].reply
			return
		}
	}
}

// trueHistory executes commands one after the other, and extends each of them at random around its
// moment. Some lost commands are executed much later or never, and some lost takes are undone.
func trueHistory(random *rand.Rand, length, losses int) []lockRecord {
	state, records, later := register(""), []lockRecord(nil), map[int][]lockOp{}
	for i := range length {
		for _, op := range later[i] {
			_, state = state.step(op, nil)
		}
		op := randomOp(random, state, i)
		var reply any
		if losses > 0 && op.verb.writes() && random.IntN(length/10) == 0 {
			losses--
			op.fate = lost
			when := i + 1 + random.IntN(length)
			later[when] = append(later[when], op)
			when += random.IntN(length)
			if op.verb == verbTake {
				later[when] = append(later[when], lockOp{value: op.value, fate: takenBack})
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
	case op.verb == verbExec: // it expects the value that it has read
		op.expects = string(state)
	case op.verb == verbCompareSet && random.IntN(2) == 0:
		op.expects = string(state)
	case !op.verb.writesValue() && random.IntN(2) == 0:
		op.value = string(state)
	}
	return op
}
