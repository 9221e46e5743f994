package lockkeys

import (
	"slices"
	"strings"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/command"
	"redlock-proxy/commands/lockkeys/program"
)

// guessesFor returns guesses of the values of a command's keys, or nil. If the command requires
// absent keys (HSETNX: an absent field), the guess is that the keys are absent. If the command
// compares its key with a value, the guess is this value. If the command likely removes its only
// key, the guess is the value that this proxy wrote last.
func (p *Runner) guessesFor(c *command.Client, words, keys []string) (guesses []program.Guess) {
	switch name := syntax.Lower(words[0]); {
	case name == "setnx" || name == "msetnx" || name == "hsetnx":
		guesses = append(guesses, program.GuessAbsent(keys))
	case name == "msetex" && slices.ContainsFunc(words[min(2+2*len(keys), len(words)):], isNX):
		guesses = append(guesses, program.GuessAbsent(keys))
	case name == "delifeq" || name == "delex" && len(words) == 4 && strings.HasSuffix(syntax.Lower(words[2]), "feq"):
		guesses = append(guesses, program.GuessText(keys, words[len(words)-1]))
	case name == "set":
		guesses = guessesForSet(words, keys)
	case len(keys) == 1 && likelyRemoves(name):
		if value, ok := p.LastWritten(c.DB, keys[0]); ok {
			guesses = append(guesses, program.GuessValue(keys, value))
		}
	}
	return guesses
}

func isNX(word string) bool { return syntax.Lower(word) == "nx" }

// LastWritten returns the encoded value that this proxy wrote last under a key. ok is false if the
// proxy does not know this value.
func (p *Runner) LastWritten(db int, key string) (value string, ok bool) {
	return p.opts.Register.Guess(p.Engine.KeyOnMasters(db, key))
}

// likelyRemoves reports whether a command mostly finds the value that this proxy wrote, and removes
// all or much of it.
func likelyRemoves(name string) bool {
	switch name {
	case "del", "unlink", "hdel", "lpop", "rpop", "spop", "srem", "zpopmin", "zpopmax", "zrem",
		"blpop", "brpop", "bzpopmin", "bzpopmax":
		return true
	}
	return false
}

func guessesForSet(words, keys []string) (guesses []program.Guess) {
	for i, word := range words {
		switch syntax.Lower(word) {
		case "nx":
			guesses = append(guesses, program.GuessAbsent(keys))
		case "ifeq":
			if i+1 < len(words) {
				guesses = append(guesses, program.GuessText(keys, words[i+1]))
			}
		}
	}
	return guesses
}
