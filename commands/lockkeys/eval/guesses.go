package eval

import (
	"slices"
	"sync/atomic"

	"redlock-proxy/commands/lockkeys/keyspace"
	"redlock-proxy/commands/lockkeys/keyspace/contents"
	"redlock-proxy/commands/lockkeys/program"
)

// memoAbsent is the Memo of a script whose last change found all keys absent. Otherwise a script's
// Memo is the index of the argument that was the value of its keys. The calls of a script are much
// alike, so its last change gives the best guess for the next call.
const memoAbsent = -1

// guessesFor returns guesses of the values of a script's keys, the likeliest first. For a new
// script, it returns the two frequent cases. In a release or an extension, the keys hold the first
// argument. In an acquisition, they are absent.
//
// lastWritten returns the value that this proxy wrote last under a key. If that value is a
// collection, it is the only guess, because no argument equals a collection.
func guessesFor(
	memo *atomic.Int64, keys, argv []string, lastWritten func(key string) (value string, ok bool),
) (list []program.Guess) {
	if len(keys) == 0 {
		return []program.Guess{{}} // enough for a script that uses no key
	}
	if g := guessCollections(keys, lastWritten); g != nil {
		return []program.Guess{g}
	}
	argument := int(memo.Load()) // 0, the first argument, for a new script
	if argument != memoAbsent && argument < len(argv) {
		list = append(list, program.GuessText(keys, argv[argument]))
	}
	return append(list, program.GuessAbsent(keys))
}

// updateMemo updates the memo with the edits that a script made.
func updateMemo(memo *atomic.Int64, edits []keyspace.Edit, argv []string) {
	if argument, ok := heldArgument(edits, argv); ok {
		memo.Store(int64(argument))
	}
}

// heldArgument returns the index of the argument that was the value of all keys, or memoAbsent if
// all keys were absent.
func heldArgument(edits []keyspace.Edit, argv []string) (argument int, ok bool) {
	if len(edits) == 0 {
		return 0, false
	}
	first := edits[0].Before
	for _, e := range edits {
		if e.Before.Present != first.Present || e.Before.Value != first.Value {
			return 0, false
		}
	}
	if !first.Present {
		return memoAbsent, true
	}
	argument = slices.IndexFunc(argv, func(arg string) bool { return contents.EncodeText(arg) == first.Value })
	return argument, argument >= 0
}

// guessCollections guesses that each key holds the collection that this proxy wrote last, or is
// absent if this proxy wrote no collection under it. It returns nil if this proxy wrote no
// collection under any of the keys.
func guessCollections(keys []string, lastWritten func(key string) (value string, ok bool)) program.Guess {
	guess, found := program.GuessAbsent(keys), false
	for _, key := range keys {
		if value, ok := lastWritten(key); ok && contents.IsMarked(value) {
			found = true
			guess[key] = keyspace.Entry{Present: true, Value: value, RemainingTTL: keyspace.UnknownExpiry}
		}
	}
	if !found {
		return nil
	}
	return guess
}
