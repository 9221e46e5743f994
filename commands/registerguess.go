package commands

import "redlock-proxy/commands/register"

// guessesFor tells what the keys of a command may hold: what its arguments compare
// with, what it asks to be absent, or what the client itself has put there last.
func guessesFor(c *Client, words, keys []string) (guesses []guess) {
	switch name := lower([]byte(words[0])); {
	case name == "setnx" || name == "msetnx":
		guesses = append(guesses, guessAbsent(keys))
	case name == "delifeq" || name == "delex" && len(words) == 4:
		guesses = append(guesses, guessHeld(keys, words[len(words)-1]))
	case name == "set":
		guesses = guessesForSet(words, keys)
	}
	if len(keys) == 1 && c.last.db == c.DB && c.last.key == keys[0] {
		guesses = append(guesses, guessHeld(keys, c.last.value))
	}
	return guesses
}

func guessesForSet(words, keys []string) (guesses []guess) {
	for i, word := range words {
		switch lower([]byte(word)) {
		case "nx":
			guesses = append(guesses, guessAbsent(keys))
		case "ifeq":
			if i+1 < len(words) {
				guesses = append(guesses, guessHeld(keys, words[i+1]))
			}
		}
	}
	return guesses
}

// lastSet is what a client has put under a key last.
type lastSet struct {
	db         int
	key, value string
}

// remember takes down what a client has changed itself: for its next guess, and
// because it must not change what it watches.
func (c *Client) remember(db int, edits []register.Edit) {
	if len(edits) == 1 && edits[0].Now.Present {
		c.last = lastSet{db, edits[0].Key, edits[0].Now.Value}
	}
	for _, e := range edits {
		_, watches := c.watched.keys[e.Key]
		c.watched.changed = c.watched.changed || watches && c.watched.db == db && e.Changes()
	}
}
