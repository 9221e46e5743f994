package lockkeys

import (
	"slices"
	"strings"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/command"
	"redlock-proxy/commands/lockkeys/program"
)

// guessesFor guesses what the keys of a command may hold: what its arguments compare
// with, what it asks to be absent, or what the client itself has put there last.
func (p *Runner) guessesFor(c *command.Client, words, keys []string) (guesses []program.Guess) {
	switch name := syntax.Lower(words[0]); {
	case name == "setnx" || name == "msetnx" || name == "hsetnx":
		guesses = append(guesses, program.Absent(keys))
	case name == "msetex" && slices.ContainsFunc(words[2+2*len(keys):], func(word string) bool { return syntax.Lower(word) == "nx" }):
		guesses = append(guesses, program.Absent(keys))
	case name == "delifeq" || name == "delex" && len(words) == 4 && strings.HasSuffix(syntax.Lower(words[2]), "feq"):
		guesses = append(guesses, program.Text(keys, words[len(words)-1]))
	case name == "set":
		guesses = guessesForSet(words, keys)
	case len(keys) == 1 && mayUseUp(name):
		if token, ok := p.Guess(c.DB, keys[0]); ok {
			guesses = append(guesses, program.Held(keys, token))
		}
	}
	return guesses
}

// Guess is what this proxy itself has put under a key last, if it knows.
func (p *Runner) Guess(db int, key string) (token string, ok bool) {
	return p.opts.Register.Guess(p.Engine.Place(db, key))
}

// mayUseUp is true of commands that mostly find what this proxy put there, and take all or much of
// it away.
func mayUseUp(name string) bool {
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
			guesses = append(guesses, program.Absent(keys))
		case "ifeq":
			if i+1 < len(words) {
				guesses = append(guesses, program.Text(keys, words[i+1]))
			}
		}
	}
	return guesses
}
