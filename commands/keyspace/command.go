package keyspace

import (
	"fmt"

	"redlock-proxy/commands/spec"
	"redlock-proxy/commands/syntax"
)

// command is one that a Space can carry out.
type command struct {
	spec *spec.Command
	run  func(c call) (Reply, error)
	docs docs
}

// docs are what COMMAND DOCS says of it where there is no upstream.
type docs struct{ group, since, summary string }

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
		names[i] = c.spec.Name
	}
	return names
}

// Fits reports whether a supported command may have that many words, its name
// included.
func Fits(name string, words int) bool {
	c := find(name)
	return c != nil && c.fits(words)
}

// Docs are the group of a supported command, what it does, and the version of Redis that it came with.
func Docs(name string) (group, summary, since string) {
	d := find(name).docs
	return d.group, d.summary, d.since
}

// Keys are the keys among the words of a supported command; none if there are too
// few or too many of them.
func Keys(words []string) []string {
	c := find(syntax.Lower(words[0]))
	if c == nil || !c.fits(len(words)) {
		return nil
	}
	return c.keys(words)
}

// Do carries out a command and gives its reply, which is an error reply where
// Redis has one. It changes nothing if it returns an error: ErrNeedsRead, or an
// *UnreadError for a key that is not in the Space.
func (s *Space) Do(words []string) (Reply, error) {
	name := syntax.Lower(words[0])
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

func (c *command) fits(words int) bool { return syntax.Fits(c.spec.Arity, words) }

// keys are those of a command that fits, whose keys are always at the same places.
func (c *command) keys(words []string) (keys []string) {
	at := c.spec.Keys.Within(len(words))
	if (len(words)-1)%at.Step != 0 {
		return nil // the command itself says what is wrong
	}
	for i := at.First; i <= at.Last; i += at.Step {
		keys = append(keys, words[i])
	}
	return keys
}

func wrongArity(name string) Reply { return Fail(syntax.WrongArity(name)) }
