//go:build integration

package lockkeys

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// saw is a record whose client, command and reply took from one millisecond to another.
func saw(from, to int, verb lockVerb, value string, reply any) lockRecord {
	return lockRecord{op: lockOp{verb: verb, value: value}, reply: reply, from: time.Duration(from) * time.Millisecond, to: time.Duration(to) * time.Millisecond}
}

// missed is the record of a command whose reply told nothing.
func missed(from, to int, verb lockVerb, value string) lockRecord {
	r := saw(from, to, verb, value, nil)
	r.op.fate = lost
	return r
}

// conditional is the record of a compare-and-set or an EXEC.
func conditional(from, to int, verb lockVerb, expects, value string, reply any) lockRecord {
	r := saw(from, to, verb, value, reply)
	r.op.expects, r.watched = expects, r.from
	return r
}

// missedConditional is the same without a reply.
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
			saw(0, 1, verbTake, "a", "OK"), saw(2, 3, verbTake, "b", nil), saw(4, 5, verbGet, "", "a"), saw(6, 7, verbExtend, "a", int64(1)),
			saw(8, 9, verbRelease, "b", int64(0)), saw(10, 11, verbRelease, "a", int64(1)), saw(12, 13, verbReplace, "c", nil), saw(14, 15, verbGet, "", nil),
			saw(16, 17, verbSwap, "d", nil), saw(18, 19, verbReplace, "e", "OK"), saw(20, 21, verbDel, "", int64(1)), saw(22, 23, verbDel, "", int64(0)),
			saw(24, 25, verbPut, "f", "OK"), saw(26, 27, verbPut, "g", "OK"), conditional(28, 29, verbCompareSet, "f", "h", int64(0)),
			conditional(30, 31, verbCompareSet, "g", "i", int64(1)), saw(32, 33, verbGetDel, "", "i"), saw(34, 35, verbGetDel, "", nil),
			conditional(36, 37, verbExec, "", "j", "OK"), conditional(38, 39, verbExec, "j", "k", "OK"), saw(40, 41, verbGet, "", "k"),
		}, right},
		{"two hold it", []lockRecord{saw(0, 1, verbTake, "a", "OK"), saw(2, 3, verbTake, "b", "OK")}, wrong},
		{"two at once hold it", []lockRecord{saw(0, 5, verbTake, "a", "OK"), saw(1, 4, verbTake, "b", "OK")}, wrong},
		{"the wrong owner releases", []lockRecord{
			saw(0, 1, verbTake, "a", "OK"), saw(2, 3, verbRelease, "b", int64(1)), saw(4, 5, verbTake, "c", "OK"),
		}, wrong},
		{"the owner does not", []lockRecord{saw(0, 1, verbTake, "a", "OK"), saw(2, 3, verbRelease, "a", int64(0))}, wrong},
		{"two release the same", []lockRecord{
			saw(0, 1, verbTake, "a", "OK"), saw(2, 9, verbRelease, "a", int64(1)), saw(3, 8, verbRelease, "a", int64(1)),
		}, wrong},
		{"a removal of what is replaced at once", []lockRecord{
			saw(0, 1, verbTake, "a", "OK"), saw(2, 9, verbDel, "", int64(1)), saw(3, 8, verbSwap, "b", "a"), saw(10, 11, verbGet, "", "b"),
		}, wrong},
		{"what was released is there again", []lockRecord{
			saw(0, 1, verbTake, "a", "OK"), saw(2, 9, verbRelease, "a", int64(1)), saw(10, 11, verbGet, "", "a"),
		}, wrong},
		{"what is gone is extended", []lockRecord{
			saw(0, 1, verbTake, "a", "OK"), saw(2, 3, verbDel, "", int64(1)), saw(4, 5, verbExtend, "a", int64(1)),
		}, wrong},
		{"a held key reads as free", []lockRecord{
			saw(0, 1, verbTake, "a", "OK"), saw(2, 9, verbTake, "b", nil), saw(4, 5, verbGet, "", nil),
		}, wrong},
		{"read, gone, and read again", []lockRecord{
			saw(0, 9, verbTake, "a", "OK"), saw(1, 2, verbGet, "", "a"), saw(3, 4, verbGet, "", nil),
		}, wrong},
		{"two swaps get the same", []lockRecord{
			saw(0, 1, verbTake, "a", "OK"), saw(2, 9, verbSwap, "b", "a"), saw(2, 9, verbSwap, "c", "a"),
		}, wrong},
		{"two comparisons hold", []lockRecord{
			saw(0, 1, verbTake, "a", "OK"), conditional(2, 9, verbCompareSet, "a", "b", int64(1)), conditional(2, 9, verbExec, "a", "c", "OK"),
		}, wrong},
		{"two take it away", []lockRecord{
			saw(0, 1, verbTake, "a", "OK"), saw(2, 9, verbGetDel, "", "a"), saw(2, 9, verbGetDel, "", "a"),
		}, wrong},
		{"both who come at once are refused", []lockRecord{saw(0, 5, verbTake, "a", nil), saw(1, 4, verbTake, "b", nil)}, wrong},
		{"refused beside one who won, and released", []lockRecord{
			saw(0, 1, verbTake, "a", "OK"), saw(2, 5, verbRelease, "a", int64(1)), saw(2, 5, verbTake, "b", nil),
		}, right},
		{"nobody removed what is gone", []lockRecord{
			saw(0, 1, verbTake, "a", "OK"), saw(2, 9, verbRelease, "a", int64(0)), saw(3, 8, verbDel, "", int64(0)), saw(10, 11, verbGet, "", nil),
		}, wrong},
		{"refused without a holder", []lockRecord{saw(0, 1, verbTake, "a", nil), saw(2, 3, verbTake, "b", "OK")}, wrong},
		{"the value of one who was refused is seen", []lockRecord{
			saw(0, 1, verbTake, "a", nil), saw(2, 3, verbGet, "", "a"), saw(4, 5, verbTake, "b", "OK"),
		}, wrong},
		{"a transaction is told of what was written since its watch", []lockRecord{
			saw(0, 3, verbTake, "a", "OK"), {op: lockOp{verb: verbExec, value: "b"}, from: 8 * time.Millisecond, to: 9 * time.Millisecond, watched: time.Millisecond},
		}, right},
		{"a transaction beside an extension is told to start over", []lockRecord{
			saw(0, 1, verbTake, "a", "OK"), conditional(2, 9, verbExec, "a", "b", nil), saw(3, 4, verbExtend, "a", int64(1)), saw(10, 11, verbGet, "", "a"),
		}, right},
		{"a transaction that nobody disturbs is told to start over", []lockRecord{
			saw(0, 1, verbTake, "a", "OK"), conditional(2, 9, verbExec, "a", "b", nil), saw(10, 11, verbExtend, "a", int64(1)),
		}, wrong},
		{"lost, and done", []lockRecord{missed(0, 1, verbTake, "a"), saw(2, 3, verbGet, "", "a")}, right},
		{"lost, and done late", []lockRecord{missed(0, 1, verbTake, "a"), saw(2, 3, verbGet, "", nil), saw(4, 5, verbGet, "", "a")}, right},
		{"lost, done, and released", []lockRecord{
			missed(0, 1, verbTake, "a"), saw(2, 3, verbGet, "", "a"), saw(4, 5, verbGet, "", nil), saw(6, 7, verbTake, "b", "OK"),
		}, right},
		{"lost, never seen, and in the way", []lockRecord{missed(0, 1, verbTake, "a"), saw(2, 3, verbTake, "b", nil), saw(4, 5, verbTake, "c", "OK")}, right},
		{"lost, and done before it was sent", []lockRecord{saw(0, 1, verbGet, "", "a"), missed(2, 3, verbTake, "a")}, wrong},
		{"lost, and done twice", []lockRecord{
			missed(0, 1, verbTake, "a"), saw(2, 3, verbGet, "", "a"), saw(4, 5, verbDel, "", int64(1)), saw(6, 7, verbGet, "", nil), saw(8, 9, verbGet, "", "a"),
		}, wrong},
		{"lost, released, and there again", []lockRecord{
			missed(0, 1, verbTake, "a"), saw(2, 3, verbGet, "", "a"), saw(4, 5, verbGet, "", nil), saw(6, 7, verbGet, "", "a"),
		}, wrong},
		{"lost, replaced, and what replaced it released for it", []lockRecord{
			missed(0, 1, verbTake, "a"), saw(2, 3, verbSwap, "b", "a"), saw(4, 5, verbGet, "", nil),
		}, wrong},
		{"a lost swap, done", []lockRecord{
			saw(0, 1, verbTake, "a", "OK"), missed(2, 3, verbSwap, "b"), saw(4, 5, verbGet, "", "a"), saw(6, 7, verbGet, "", "b"),
		}, right},
		{"a lost swap gives back what it took", []lockRecord{
			saw(0, 1, verbTake, "a", "OK"), missed(2, 3, verbSwap, "b"), saw(4, 5, verbGet, "", "b"), saw(6, 7, verbGet, "", "a"),
		}, wrong},
		{"a lost swap of nothing is released again", []lockRecord{
			missed(0, 1, verbSwap, "a"), saw(2, 3, verbGet, "", "a"), saw(4, 5, verbGet, "", nil),
		}, wrong},
		{"a lost comparison, done late", []lockRecord{
			saw(0, 1, verbTake, "a", "OK"), missedConditional(2, 3, verbCompareSet, "a", "b"), saw(4, 5, verbGet, "", "a"), saw(6, 7, verbGet, "", "b"),
		}, right},
		{"a lost comparison, done though it did not hold", []lockRecord{
			saw(0, 1, verbTake, "a", "OK"), missedConditional(2, 3, verbExec, "c", "b"), saw(4, 5, verbGet, "", "b"),
		}, wrong},
		{"a lost release", []lockRecord{
			saw(0, 1, verbTake, "a", "OK"), missed(2, 3, verbRelease, "a"), saw(4, 5, verbGet, "", "a"), saw(6, 7, verbTake, "b", "OK"),
		}, right},
		{"a lost release is not undone", []lockRecord{
			saw(0, 1, verbTake, "a", "OK"), missed(2, 3, verbRelease, "a"), saw(4, 5, verbGet, "", nil), saw(6, 7, verbGet, "", "a"),
		}, wrong},
		{"a lost read means nothing", []lockRecord{saw(0, 1, verbTake, "a", "OK"), missed(2, 3, verbGet, ""), missed(2, 3, verbExtend, "b")}, right},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := checkLockKey(test.records); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

// TestCheckLockKeyOfOneRedis: replies that a register really gave at a time within each command are
// always found right, and no longer once one of those that tell of the key's value is another.
func TestCheckLockKeyOfOneRedis(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	for range 200 {
		records := trueHistory(random, 40, 0)
		if got := checkLockKey(records); got != porcupine.Ok {
			t.Fatalf("seed %d: %+v of %+v", seed, got, records)
		}
		for i, r := range records {
			if !r.op.verb.tells() {
				continue
			}
			records[i].reply = "of nobody"
			if got := checkLockKey(records); got != porcupine.Illegal {
				t.Fatalf("seed %d: %+v of a history with a value that nobody wrote: %+v", seed, got, records)
			}
			break
		}
	}
}

// TestCheckLockKeyWithLostCommands: the longest histories with most lost commands are found right,
// whatever became of these; with a reply that is not of its time they are wrong; and either is
// decided soon.
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

// spoil gives two readers each other's reply.
func spoil(random *rand.Rand, records []lockRecord) {
	var told []int
	for i, r := range records {
		if r.op.verb.tells() && r.op.fate != lost && r.reply != nil {
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

// trueHistory carries commands out one after the other, and stretches each of them at random around
// its moment. Of those that are lost some are carried out much later or never, and some takes of
// these released again.
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
			client: i, op: op, reply: reply, from: moment - time.Duration(random.IntN(30)), to: moment + time.Duration(random.IntN(30)),
		})
	}
	random.Shuffle(length, func(i, j int) { records[i], records[j] = records[j], records[i] })
	return records
}

// randomOp is a command that often has to do with what the key holds.
func randomOp(random *rand.Rand, state register, i int) lockOp {
	verbs := []lockVerb{
		verbTake, verbPut, verbReplace, verbSwap, verbGet, verbDel, verbGetDel, verbRelease, verbExtend, verbCompareSet, verbExec,
	}
	op := lockOp{verb: verbs[random.IntN(len(verbs))], value: fmt.Sprint("v", i)}
	switch {
	case op.verb == verbExec: // it expects what it has read
		op.expects = string(state)
	case op.verb == verbCompareSet && random.IntN(2) == 0:
		op.expects = string(state)
	case !op.verb.gives() && random.IntN(2) == 0:
		op.value = string(state)
	}
	return op
}
