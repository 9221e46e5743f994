package eval

import (
	"slices"

	"redlock-proxy/commands/keyspace"
	"redlock-proxy/commands/keyspace/contents"
	"redlock-proxy/commands/lockkeys/program"
	"redlock-proxy/internal/lru"
)

// maxPredictions bounds how many scripts are remembered.
const maxPredictions = 1024

// predictions remember of each script what its keys held when it last changed them, as the index of an
// argument: its calls are much alike, so it is the best guess for the next one. They are safe for concurrent
// use.
type predictions struct{ bySHA *lru.Cache[int] }

func newPredictions() predictions { return predictions{lru.New[int](maxPredictions)} }

// wereAbsent is the argument of keys that were not there.
const wereAbsent = -1

// guesses are what the keys of a script may hold, the likeliest first. Of a script
// that is not known yet, both frequent cases are tried: a release or an extension of
// the first argument's lock, and an acquisition.
//
// own is what this proxy itself has put under a key. Where that is a collection there is no better guess, since no
// argument is one.
func (p predictions) guesses(sha string, keys, argv []string, own func(key string) (value string, ok bool)) (all []program.Guess) {
	if len(keys) == 0 {
		return []program.Guess{{}} // a script that needs no key at all is done with that
	}
	if g := collections(keys, own); g != nil {
		return []program.Guess{g}
	}
	argument, _ := p.bySHA.Get(sha) // at first, the first one
	if argument != wereAbsent && argument < len(argv) {
		all = append(all, program.Text(keys, argv[argument]))
	}
	return append(all, program.Absent(keys))
}

// learn takes the edits that a script made.
func (p predictions) learn(sha string, edits []keyspace.Edit, argv []string) {
	if argument, ok := relation(edits, argv); ok {
		p.bySHA.Set(sha, argument)
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

// collections are the keys in which this proxy has put collections, and the others absent; nil where there are none.
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
