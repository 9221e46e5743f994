//go:build integration

package integration

import (
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

func TestCheckLockKey(t *testing.T) {
	ok, wrong := porcupine.Ok, porcupine.Illegal
	for _, test := range []struct {
		name    string
		records []lockRecord
		want    finding
	}{
		{"nothing", nil, finding{result: ok}},
		{"one after the other", []lockRecord{
			saw(0, 1, verbTake, "a", "OK"), saw(2, 3, verbTake, "b", nil), saw(4, 5, verbGet, "", "a"), saw(6, 7, verbExtend, "a", int64(1)),
			saw(8, 9, verbRelease, "b", int64(0)), saw(10, 11, verbRelease, "a", int64(1)), saw(12, 13, verbReplace, "c", nil), saw(14, 15, verbGet, "", nil),
			saw(16, 17, verbSwap, "d", nil), saw(18, 19, verbReplace, "e", "OK"), saw(20, 21, verbDel, "", int64(1)), saw(22, 23, verbDel, "", int64(0)),
		}, finding{result: ok}},
		{"two hold it", []lockRecord{saw(0, 1, verbTake, "a", "OK"), saw(2, 3, verbTake, "b", "OK")}, finding{result: wrong}},
		{"two at once hold it", []lockRecord{saw(0, 5, verbTake, "a", "OK"), saw(1, 4, verbTake, "b", "OK")}, finding{result: wrong}},
		{"the wrong owner releases", []lockRecord{
			saw(0, 1, verbTake, "a", "OK"), saw(2, 3, verbRelease, "b", int64(1)), saw(4, 5, verbTake, "c", "OK"),
		}, finding{result: wrong}},
		{"the owner does not", []lockRecord{saw(0, 1, verbTake, "a", "OK"), saw(2, 3, verbRelease, "a", int64(0))}, finding{result: wrong}},
		{"two release the same", []lockRecord{
			saw(0, 1, verbTake, "a", "OK"), saw(2, 9, verbRelease, "a", int64(1)), saw(3, 8, verbRelease, "a", int64(1)),
		}, finding{ok, excuses{lateRemovals: 1}}},
		{"a removal of what is replaced at once", []lockRecord{
			saw(0, 1, verbTake, "a", "OK"), saw(2, 9, verbDel, "", int64(1)), saw(3, 8, verbSwap, "b", "a"), saw(10, 11, verbGet, "", "b"),
		}, finding{ok, excuses{lateRemovals: 1}}},
		{"a removal after what is there was put there", []lockRecord{
			saw(0, 1, verbTake, "a", "OK"), saw(2, 3, verbSwap, "b", "a"), saw(4, 5, verbDel, "", int64(1)), saw(6, 7, verbGet, "", "b"),
		}, finding{result: wrong}},
		{"what was released is there again", []lockRecord{
			saw(0, 1, verbTake, "a", "OK"), saw(2, 9, verbRelease, "a", int64(1)), saw(10, 11, verbGet, "", "a"),
		}, finding{result: wrong}},
		{"what is gone is extended", []lockRecord{
			saw(0, 1, verbTake, "a", "OK"), saw(2, 3, verbDel, "", int64(1)), saw(4, 5, verbExtend, "a", int64(1)),
		}, finding{result: wrong}},
		{"a held key reads as free", []lockRecord{
			saw(0, 1, verbTake, "a", "OK"), saw(2, 9, verbTake, "b", nil), saw(4, 5, verbGet, "", nil),
		}, finding{result: wrong}},
		{"read, gone, and read again", []lockRecord{
			saw(0, 9, verbTake, "a", "OK"), saw(1, 2, verbGet, "", "a"), saw(3, 4, verbGet, "", nil),
		}, finding{result: wrong}},
		{"two swaps get the same", []lockRecord{
			saw(0, 1, verbTake, "a", "OK"), saw(2, 9, verbSwap, "b", "a"), saw(2, 9, verbSwap, "c", "a"),
		}, finding{result: wrong}},
		{"a split vote", []lockRecord{saw(0, 5, verbTake, "a", nil), saw(1, 4, verbTake, "b", nil)}, finding{ok, excuses{splitVotes: 2}}},
		{"a vote split by one who won", []lockRecord{
			saw(0, 2, verbTake, "a", nil), saw(1, 6, verbTake, "b", "OK"), saw(3, 4, verbGet, "", nil),
		}, finding{ok, excuses{splitVotes: 1}}},
		{"no split vote, the key was held", []lockRecord{
			saw(0, 1, verbTake, "a", "OK"), saw(2, 5, verbRelease, "a", int64(1)), saw(2, 5, verbTake, "b", nil),
		}, finding{result: ok}},
		{"a split removal", []lockRecord{
			saw(0, 1, verbTake, "a", "OK"), saw(2, 9, verbRelease, "a", int64(0)), saw(3, 8, verbDel, "", int64(0)), saw(10, 11, verbGet, "", nil),
		}, finding{ok, excuses{splitRemovals: 1}}},
		{"a split removal that removed nothing", []lockRecord{
			saw(0, 1, verbTake, "a", "OK"), saw(2, 9, verbRelease, "a", int64(0)), saw(3, 8, verbDel, "", int64(0)), saw(10, 11, verbGet, "", "a"),
		}, finding{result: wrong}},
		{"a leftover", []lockRecord{saw(0, 1, verbTake, "a", nil), saw(2, 3, verbTake, "b", "OK")}, finding{ok, excuses{leftovers: 1}}},
		{"the value of one who was refused is seen, and goes", []lockRecord{
			saw(0, 1, verbTake, "a", nil), saw(2, 3, verbGet, "", "a"), saw(4, 5, verbTake, "b", "OK"),
		}, finding{ok, excuses{seenRefusals: 1}}},
		{"the value of one who was refused comes back", []lockRecord{
			saw(0, 1, verbTake, "a", nil), saw(2, 3, verbGet, "", "a"), saw(4, 5, verbGet, "", nil), saw(6, 7, verbGet, "", "a"),
		}, finding{result: wrong}},
		{"lost, and done", []lockRecord{missed(0, 1, verbTake, "a"), saw(2, 3, verbGet, "", "a")}, finding{result: ok}},
		{"lost, and done late", []lockRecord{missed(0, 1, verbTake, "a"), saw(2, 3, verbGet, "", nil), saw(4, 5, verbGet, "", "a")}, finding{result: ok}},
		{"lost, done and undone", []lockRecord{
			missed(0, 1, verbTake, "a"), saw(2, 3, verbGet, "", "a"), saw(4, 5, verbGet, "", nil), saw(6, 7, verbTake, "b", "OK"),
		}, finding{result: ok}},
		{"done before it was sent", []lockRecord{saw(0, 1, verbGet, "", "a"), missed(2, 3, verbTake, "a")}, finding{result: wrong}},
		{"done twice", []lockRecord{
			missed(0, 1, verbTake, "a"), saw(2, 3, verbGet, "", "a"), saw(4, 5, verbDel, "", int64(1)), saw(6, 7, verbGet, "", nil), saw(8, 9, verbGet, "", "a"),
		}, finding{result: wrong}},
		{"a lost swap gives back what it took", []lockRecord{
			saw(0, 1, verbTake, "a", "OK"), missed(2, 3, verbSwap, "b"), saw(4, 5, verbGet, "", "b"), saw(6, 7, verbGet, "", "a"),
		}, finding{result: ok}},
		{"two lost swaps give back what they took, the later one first", []lockRecord{
			saw(0, 1, verbTake, "a", "OK"), missed(2, 3, verbSwap, "b"), missed(4, 5, verbReplace, "c"), saw(6, 7, verbGet, "", "c"),
			saw(8, 9, verbGet, "", "b"), saw(10, 11, verbGet, "", "a"),
		}, finding{result: ok}},
		{"what was read from a lost swap and replaced does not come back", []lockRecord{
			saw(0, 1, verbTake, "a", "OK"), missed(2, 3, verbSwap, "b"), saw(4, 5, verbSwap, "c", "b"), saw(6, 7, verbGet, "", "a"),
		}, finding{result: wrong}},
		{"a lost release", []lockRecord{
			saw(0, 1, verbTake, "a", "OK"), missed(2, 3, verbRelease, "a"), saw(4, 5, verbGet, "", "a"), saw(6, 7, verbTake, "b", "OK"),
		}, finding{result: ok}},
		{"a lost release is not undone", []lockRecord{
			saw(0, 1, verbTake, "a", "OK"), missed(2, 3, verbRelease, "a"), saw(4, 5, verbGet, "", nil), saw(6, 7, verbGet, "", "a"),
		}, finding{result: wrong}},
		{"a lost read means nothing", []lockRecord{saw(0, 1, verbTake, "a", "OK"), missed(2, 3, verbGet, ""), missed(2, 3, verbExtend, "b")}, finding{result: ok}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := checkLockKey(test.records); got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

// TestCheckLockKeyOfOneRedis: replies that a register really gave at a time within each command are always found right, and no longer
// once one of those that tell of the key's value is another.
func TestCheckLockKeyOfOneRedis(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	for range 200 {
		records := trueHistory(random, 40)
		if got := checkLockKey(records); got != (finding{result: porcupine.Ok}) {
			t.Fatalf("seed %d: %+v of %+v", seed, got, records)
		}
		for i, r := range records {
			if r.reply == any(r.op.value) || r.op.verb != verbGet && r.op.verb != verbSwap {
				continue
			}
			records[i].reply = "of nobody"
			if got := checkLockKey(records); got.result != porcupine.Illegal {
				t.Fatalf("seed %d: %+v of a history with a value that nobody wrote: %+v", seed, got, records)
			}
			break
		}
	}
}

// trueHistory carries commands out one after the other, and stretches each of them at random around its moment.
func trueHistory(random *rand.Rand, length int) []lockRecord {
	verbs := []lockVerb{verbTake, verbReplace, verbSwap, verbGet, verbDel, verbRelease, verbExtend}
	state, records := register(""), []lockRecord(nil)
	for i := range length {
		op := lockOp{verb: verbs[random.IntN(len(verbs))], value: string(rune('A' + i))}
		if !op.verb.gives() && random.IntN(2) == 0 {
			op.value = state.value()
		}
		var reply any
		reply, state = state.run(op)
		moment := time.Duration(10 * i)
		records = append(records, lockRecord{
			client: i, op: op, reply: reply, from: moment - time.Duration(random.IntN(30)), to: moment + time.Duration(random.IntN(30)),
		})
	}
	random.Shuffle(length, func(i, j int) { records[i], records[j] = records[j], records[i] })
	return records
}
