package lockdetect

import (
	"bytes"
	"strconv"
)

// keyUse names the use of a key by a command, as the form of the command shows it.
type keyUse int

const (
	noLock keyUse = iota
	acquisition
	release
)

// MaxWords is the number of words of a command that [Detector.Count] needs.
const MaxWords = 10

// minTakeWords is the number of words of SET key value NX PX ms.
const minTakeWords = 6

// IsCandidate reports whether [Detector.Count] may count a command with this name, in any case, and
// this number of words. It is fast, because a proxy with an upstream calls it for every command.
func IsCandidate(name []byte, words int) bool {
	switch len(name) {
	case 3:
		return words >= minTakeWords && equalFold(name, "set")
	case 4:
		return equalFold(name, "eval")
	case 5:
		return equalFold(name, "delex")
	case 6:
		return equalFold(name, "script") || equalFold(name, "msetex")
	case 7:
		return equalFold(name, "evalsha") || equalFold(name, "delifeq")
	}
	return false
}

// equalFold compares a word, in any case, with a lower-case word.
func equalFold(word []byte, lower string) bool {
	return len(word) == len(lower) && word[0]|0x20 == lower[0] && bytes.EqualFold(word, []byte(lower))
}

// optionsOfMsetex returns the words after the keys and values of an MSETEX, or nil.
func optionsOfMsetex(words [][]byte) [][]byte {
	keys, err := strconv.Atoi(string(words[1]))
	if err != nil || keys < 1 || keys > len(words) || 2+2*keys > len(words) {
		return nil
	}
	return words[2+2*keys:]
}

// takesLock reports whether the options of a SET take a lock: NX and an expiry.
func takesLock(options [][]byte) bool {
	nx, hasExpiry := false, false
	for _, o := range options {
		switch {
		case equalFold(o, "nx"):
			nx = true
		case equalFold(o, "px"), equalFold(o, "ex"), equalFold(o, "pxat"), equalFold(o, "exat"):
			hasExpiry = true
		}
	}
	return nx && hasExpiry
}

// firstKey returns the first key of an EVAL or EVALSHA; ok is false if there is none.
func firstKey(words [][]byte) (key []byte, ok bool) {
	if len(words) < 4 || string(words[2]) == "0" {
		return nil, false
	}
	return words[3], true
}
