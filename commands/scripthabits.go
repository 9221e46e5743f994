package commands

import (
	"container/list"
	"slices"
	"sync"

	"redlock-proxy/commands/register"
)

// maxHabits bounds how many scripts' habits are kept.
const maxHabits = 1024

// habits remember of each script what its keys held when it last changed them: its
// calls are much alike, so it is the best guess for the next one. The zero value is
// ready for use, by any number of goroutines.
type habits struct {
	mu     sync.Mutex
	bySHA  map[string]*list.Element
	recent list.List // of habit, the last one used in front
}

// habit is what the keys of a script held: the argument with that index, or nothing.
type habit struct {
	sha      string
	argument int
}

// wereAbsent is the argument of keys that were not there.
const wereAbsent = -1

// guesses are what the keys of a script may hold, the likeliest first. Of a script
// that is not known yet, both frequent cases are tried: a release or an extension of
// the first argument's lock, and an acquisition.
func (h *habits) guesses(sha string, keys, argv []string) (all []guess) {
	if len(keys) == 0 {
		return []guess{{}} // a script that needs no key at all is done with that
	}
	argument := h.last(sha)
	if argument != wereAbsent && argument < len(argv) {
		all = append(all, guessHeld(keys, argv[argument]))
	}
	return append(all, guessAbsent(keys))
}

// last is the argument that the keys held last; at first, the first one.
func (h *habits) last(sha string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	element, ok := h.bySHA[sha]
	if !ok {
		return 0
	}
	h.recent.MoveToFront(element)
	return element.Value.(habit).argument
}

// learn takes the edits that a script made.
func (h *habits) learn(sha string, edits []register.Edit, argv []string) {
	argument, ok := relation(edits, argv)
	if !ok {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if element, ok := h.bySHA[sha]; ok {
		element.Value = habit{sha, argument}
		return
	}
	if h.bySHA == nil {
		h.bySHA = map[string]*list.Element{}
	}
	h.bySHA[sha] = h.recent.PushFront(habit{sha, argument})
	if h.recent.Len() > maxHabits {
		oldest := h.recent.Remove(h.recent.Back()).(habit)
		delete(h.bySHA, oldest.sha)
	}
}

// relation finds the argument that all keys held, or wereAbsent.
func relation(edits []register.Edit, argv []string) (argument int, ok bool) {
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
	argument = slices.Index(argv, first.Value)
	return argument, argument >= 0
}
