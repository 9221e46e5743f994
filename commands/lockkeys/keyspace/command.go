package keyspace

import (
	"fmt"
	"maps"
	"slices"

	"redlock-proxy/commands/catalog/spec"
	"redlock-proxy/commands/catalog/syntax"
)

// command is one that a Space can carry out.
type command struct {
	entry
	group string // in Redis' documentation
	spec  *spec.Command
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
func Names() []string { return slices.Sorted(maps.Keys(byName)) }

// Fits reports whether a supported command may have that many words, its name
// included.
func Fits(name string, words int) bool {
	c := find(name)
	return c != nil && c.fits(words)
}

// Docs are the group of a supported command, what it does, and the version of Redis that it came
// with.
func Docs(name string) (group, summary, since string) {
	c := find(name)
	return c.group, c.summary, c.since
}

// Keys are the keys among the words of a supported command; none if there are too
// few or too many of them.
func Keys(words []string) []string {
	c := find(syntax.Lower(words[0]))
	if c == nil || !c.fits(len(words)) {
		return nil
	}
	return c.spec.KeysAmong(words)
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
	reads := !c.spec.Does(spec.Writes)
	for _, key := range c.spec.KeysAmong(words) {
		if err := s.has(key); err != nil {
			return Reply{}, err
		}
		if reads {
			s.reads(key)
		}
	}
	return s.bounded(c, words)
}

// Cost is about how many bytes Do is going to go through for a command that does not only touch a
// few elements.
func (s *Space) Cost(words []string) int {
	c := find(syntax.Lower(words[0]))
	if c == nil || fast[c.name] || !c.fits(len(words)) {
		return 0
	}
	const perByte = 4 // of what is parsed, sorted, and copied
	sum := 0
	for _, key := range c.spec.KeysAmong(words) {
		if sl := s.slots[key]; sl != nil {
			sum += sl.size() * perByte
		}
	}
	return sum
}

// bounded runs a command, and takes back what makes a collection too large.
func (s *Space) bounded(c *command, words []string) (Reply, error) {
	run := call{Space: s, name: c.name, words: words}
	if !c.grows() {
		return c.do(run)
	}
	keys := syntax.Distinct(c.spec.KeysAmong(words))
	if !s.mayGrow(run, keys) {
		return c.do(run)
	}
	if s.grown++; s.grown > maxGrown {
		return Fail(fmt.Sprintf("ERR lock key '%s' is too close to %d bytes or %d elements for more than %d changes at once", syntax.Shown(keys[0]), maxValue, maxElements, maxGrown)), nil
	}
	before := make([]slot, len(keys))
	for i, key := range keys {
		s.slots[key].value() // what is changed in place can be read again
		before[i] = *s.slots[key]
	}
	reply, err := c.do(run)
	if large := slices.IndexFunc(keys, func(key string) bool { return s.slots[key].isTooLarge() }); large >= 0 {
		for i, key := range keys {
			s.slots[key].takeBack(before[i])
		}
		return tooLarge(keys[large]), nil
	}
	return reply, err
}

// ended is the panic that ends a command early: with an error reply, or with an error of Do.
type ended struct {
	reply Reply
	err   error
}

// refuse ends a command with an error reply.
func refuse(text string) { panic(ended{reply: Fail(text)}) }

// require refuses a command unless something holds.
func require(holds bool, refusal string) {
	if !holds {
		refuse(refusal)
	}
}

// integer is a word that must be one.
func integer(word string) int64 {
	n, ok := syntax.Int(word)
	require(ok, syntax.ErrNotInteger)
	return n
}

// do runs a command, which may end early.
func (c *command) do(run call) (reply Reply, err error) {
	defer func() {
		switch problem := recover().(type) {
		case nil:
		case ended:
			reply, err = problem.reply, problem.err
		default:
			panic(problem)
		}
	}()
	return c.run(run), nil
}

// tooLarge is the error reply where a collection would become so.
func tooLarge(key string) Reply {
	return Fail(fmt.Sprintf("ERR lock key '%s' would have more than %d bytes or %d elements", syntax.Shown(key), maxValue, maxElements))
}

// maxElements bounds the elements of a collection: read into memory, the smallest take many times
// their bytes.
const maxElements = 1 << 16

// maxGrown bounds the commands of one program that are looked at closely, since each has the keys
// written out.
const maxGrown = 100

// mayGrow reports whether a command may make a collection too large: at most, its keys hold
// afterwards what they held and what its words say.
func (s *Space) mayGrow(c call, keys []string) bool {
	const perWord, spare, perScore = 40, 8 << 10, 10 // a number is a word of less than 40 bytes, and at most one has 5,000
	size, elements := 0, len(c.words)
	for _, w := range c.words {
		size += len(w) + perWord
	}
	for _, key := range keys {
		sl := s.slots[key]
		size += sl.size()
		elements += sl.elements()
	}
	if c.name == "zinterstore" {
		size *= perScore // of a set each member gets one
	}
	return size > maxValue-spare || elements > maxElements
}

func (c *command) fits(words int) bool { return syntax.Fits(c.spec.Arity, words) }

// grows is true of a command by which a collection may become larger, and which does not look at
// that itself.
func (c *command) grows() bool {
	return c.spec.Does(spec.Writes) && !slices.Contains([]string{"string", "generic"}, c.group)
}

func wrongArity(name string) Reply { return Fail(syntax.WrongArity(name)) }
