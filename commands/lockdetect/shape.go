package lockdetect

import (
	"bytes"
	"strconv"
)

// use is what a command does to a key, by its form.
type use int

const (
	other use = iota
	takes
	releases
)

// Words is how many of a command's first words [Notices.CountUncovered] looks at.
const Words = 10

// shortestTake is SET key value NX PX ms.
const shortestTake = 6

// Suspect reports whether a command of that name, in any case, and with so many words may
// be one that [Notices.CountUncovered] counts. It is for every command of a relay: nearly all are
// told by their length.
func Suspect(name []byte, words int) bool {
	switch len(name) {
	case 3:
		return words >= shortestTake && is(name, "set")
	case 4:
		return is(name, "eval")
	case 5:
		return is(name, "delex")
	case 6:
		return is(name, "script") || is(name, "msetex")
	case 7:
		return is(name, "evalsha") || is(name, "delifeq")
	}
	return false
}

// is compares with a word in lower case.
func is(word []byte, lower string) bool {
	return len(word) == len(lower) && word[0]|0x20 == lower[0] && bytes.EqualFold(word, []byte(lower))
}

// optionsOfMsetex are what stands behind the keys and values of a MSETEX, as far as it is given.
func optionsOfMsetex(words [][]byte) [][]byte {
	keys, err := strconv.Atoi(string(words[1]))
	if err != nil || keys < 1 || keys > len(words) || 2+2*keys > len(words) {
		return nil
	}
	return words[2+2*keys:]
}

// takesLock reports whether the options of a SET are those of a lock: NX and a time.
func takesLock(options [][]byte) bool {
	nx, timed := false, false
	for _, o := range options {
		switch {
		case is(o, "nx"):
			nx = true
		case is(o, "px"), is(o, "ex"), is(o, "pxat"), is(o, "exat"):
			timed = true
		}
	}
	return nx && timed
}

// firstKey is the first key of an EVAL or EVALSHA; ok is false where there is none.
func firstKey(words [][]byte) (key []byte, ok bool) {
	if len(words) < 4 || string(words[2]) == "0" {
		return nil, false
	}
	return words[3], true
}
