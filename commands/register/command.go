package register

import (
	"fmt"
	"slices"
)

// command is one that a Space can carry out.
type command struct {
	name string // in lower case
	// arity counts the words, the name included; negative: at least so many.
	arity int
	// last is the index of its last key, negative if counted from the end, and step
	// the distance from key to key. The first is at 1.
	last, step int
	// writes: it is not for read-only scripts.
	writes bool
	run    func(c call) (Reply, error)
}

// call is a command that is being carried out.
type call struct {
	*Space
	name  string
	words []string
}

// Supported reports whether a Space can carry out the command, whose name is in
// lower case.
func Supported(name string) bool { return find(name) != nil }

// Names are the names of all commands that a Space can carry out.
func Names() []string {
	all := commands()
	names := make([]string, len(all))
	for i, c := range all {
		names[i] = c.name
	}
	return names
}

// Arity is the number of words of a supported command, its name included; negative:
// at least so many.
func Arity(name string) int { return find(name).arity }

// Fits reports whether a supported command may have that many words, its name
// included.
func Fits(name string, words int) bool {
	c := find(name)
	return c != nil && c.fits(words)
}

// Writes reports whether a supported command may change keys.
func Writes(name string) bool {
	c := find(name)
	return c != nil && c.writes
}

// Keys are the keys among the words of a supported command; none if there are too
// few or too many of them.
func Keys(words []string) []string {
	c := find(lower(words[0]))
	if c == nil || !c.fits(len(words)) {
		return nil
	}
	return c.keys(words)
}

// Do carries out a command and gives its reply, which is an error reply where
// Redis has one. It changes nothing if it returns an error: ErrNeedsRead, or an
// *UnreadError for a key that is not in the Space.
func (s *Space) Do(words []string) (Reply, error) {
	name := lower(words[0])
	c := find(name)
	if c == nil {
		return Fail(fmt.Sprintf("ERR unknown command '%s'", words[0])), nil
	}
	if !c.fits(len(words)) {
		return wrongArity(name), nil
	}
	for _, key := range c.keys(words) {
		if err := s.has(key); err != nil {
			return Reply{}, err
		}
	}
	return c.run(call{Space: s, name: name, words: words})
}

func (c *command) fits(words int) bool {
	if c.arity < 0 {
		return words >= -c.arity
	}
	return words == c.arity
}

func (c *command) keys(words []string) []string {
	if (len(words)-1)%c.step != 0 {
		return nil // the command itself says what is wrong
	}
	last := c.last
	if last < 0 {
		last += len(words)
	}
	var keys []string
	for i := 1; i <= last; i += c.step {
		keys = append(keys, words[i])
	}
	return keys
}

func wrongArity(name string) Reply {
	return Fail(fmt.Sprintf("ERR wrong number of arguments for '%s' command", name))
}

// lower is a word with its ASCII letters in lower case: Redis knows no others.
func lower(word string) string {
	upper := func(b byte) bool { return 'A' <= b && b <= 'Z' }
	if !slices.ContainsFunc([]byte(word), upper) {
		return word
	}
	folded := []byte(word)
	for i, b := range folded {
		if upper(b) {
			folded[i] = b + 'a' - 'A'
		}
	}
	return string(folded)
}
