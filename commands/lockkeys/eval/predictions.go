package eval

import (
	"slices"
	"sync/atomic"

	"redlock-proxy/commands/lockkeys/keyspace"
	"redlock-proxy/commands/lockkeys/keyspace/contents"
	"redlock-proxy/commands/lockkeys/program"
)

// The memo of a script is what its keys held when it last changed them, as the index of an
// argument: its calls are much alike, so it is the best guess for the next one. wereAbsent is that
// of keys that were not there.
const wereAbsent = -1

// guesses are what the keys of a script may hold, the likeliest first. Of a script that is not
// known yet, both frequent cases are tried: a release or an extension of the first argument's lock,
// and an acquisition.
//
// own is what this proxy itself has put under a key. Where that is a collection there is no better
// guess, since no argument is one.
func guesses(memo *atomic.Int64, keys, argv []string, own func(key string) (value string, ok bool)) (all []program.Guess) {
	if len(keys) == 0 {
		return []program.Guess{{}} // a script that needs no key at all is done with that
	}
	if g := collections(keys, own); g != nil {
		return []program.Guess{g}
	}
	argument := int(memo.Load()) // at first, the first one
	if argument != wereAbsent && argument < len(argv) {
		all = append(all, program.Text(keys, argv[argument]))
	}
	return append(all, program.Absent(keys))
}

// learn takes the edits that a script made.
func learn(memo *atomic.Int64, edits []keyspace.Edit, argv []string) {
	if argument, ok := relation(edits, argv); ok {
		memo.Store(int64(argument))
	}
}

// relation finds the argument that all keys held, or wereAbsent.
func relation(edits []keyspace.Edit, argv []string) (argument int, ok bool) {
	if len(edits) == 0 {
		return 0, false
	}
	first := edits[0].Was
	for _, e := range edits {
		if e.Was.Present != first.Present || e.Was.Value != first.Value {
			return 0, false
		}
	}
	if !first.Present {
		return wereAbsent, true
	}
	argument = slices.IndexFunc(argv, func(arg string) bool { return contents.EncodeText(arg) == first.Value })
	return argument, argument >= 0
}

// collections are the keys in which this proxy has put collections, and the others absent; nil
// where there are none.
func collections(keys []string, own func(key string) (value string, ok bool)) program.Guess {
	absent, found := program.Absent(keys), false
	for _, key := range keys {
		if value, ok := own(key); ok && contents.IsMarked(value) {
			found = true
			absent[key] = keyspace.Entry{Present: true, Value: value, Left: keyspace.Unknown}
		}
	}
	if !found {
		return nil
	}
	return absent
}
