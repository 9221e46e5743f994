package keyspace

import (
	"fmt"
	"maps"
	"slices"

	"redlock-proxy/commands/catalog/spec"
	"redlock-proxy/commands/catalog/syntax"
)

// command describes a command that a Snapshot can carry out.
type command struct {
	tableEntry
	group string // as in Redis' documentation
	spec  *spec.Command
}

// call holds one execution of a command.
type call struct {
	*Snapshot
	name  string
	words []string
}

// IsSupported reports whether a Snapshot can carry out the command. name is in lower case.
func IsSupported(name string) bool { return find(name) != nil }

// Names returns the names of all commands that a Snapshot can carry out.
func Names() []string { return slices.Sorted(maps.Keys(byName)) }

// Fits reports whether a supported command may have that many words, including its name.
func Fits(name string, words int) bool {
	c := find(name)
	return c != nil && c.fits(words)
}

// Docs returns a supported command's group, summary, and the first version of Redis that has it.
func Docs(name string) (group, summary, since string) {
	c := find(name)
	return c.group, c.summary, c.since
}

// Keys returns the keys among the words of a supported command, or none if the number of words is
// wrong.
func Keys(words []string) []string {
	c := find(syntax.Lower(words[0]))
	if c == nil || !c.fits(len(words)) {
		return nil
	}
	return c.spec.KeysAmong(words)
}

// Do carries out a command and returns its reply, which may be an error reply. If it returns an
// error, it has changed nothing: the error is ErrNeedsRead, or an *UnreadError for a key that is
// not in the Snapshot.
func (s *Snapshot) Do(words []string) (Reply, error) {
	name := syntax.Lower(words[0])
	c := find(name)
	if c == nil {
		return ErrorReply(fmt.Sprintf("ERR unknown command '%s'", words[0])), nil
	}
	if !c.fits(len(words)) {
		return wrongArity(name), nil
	}
	reads := !c.spec.HasAny(spec.Writes)
	for _, key := range c.spec.KeysAmong(words) {
		if err := s.checkRead(key); err != nil {
			return Reply{}, err
		}
		if reads {
			s.noteRead(key)
		}
	}
	return s.doWithinLimits(c, words)
}

// Cost estimates the bytes that Do is going to process for a command. It returns 0 for a command
// that touches only a few elements.
func (s *Snapshot) Cost(words []string) int {
	c := find(syntax.Lower(words[0]))
	if c == nil || fastCommands[c.name] || !c.fits(len(words)) {
		return 0
	}
	const costPerByte = 4 // for parsing, sorting and copying
	sum := 0
	for _, key := range c.spec.KeysAmong(words) {
		if k := s.states[key]; k != nil {
			sum += k.size() * costPerByte
		}
	}
	return sum
}

// doWithinLimits runs a command. It restores the keys if a collection became too large.
func (s *Snapshot) doWithinLimits(c *command, words []string) (Reply, error) {
	run := call{Snapshot: s, name: c.name, words: words}
	if !c.grows() {
		return c.do(run)
	}
	keys := syntax.Distinct(c.spec.KeysAmong(words))
	if !s.mayExceed(run, keys) {
		return c.do(run)
	}
	if s.nearLimitRuns++; s.nearLimitRuns > maxNearLimitRuns {
		return ErrorReply(fmt.Sprintf("ERR too many changes of lock key '%s' near its limit of %d bytes or %d elements: "+
			"one script or transaction may make at most %d; use several",
			syntax.Excerpt(keys[0]), maxValue, maxElements, maxNearLimitRuns)), nil
	}
	before := make([]keyState, len(keys))
	for i, key := range keys {
		s.states[key].value() // encodes changes made in place, so that restore can restore them
		before[i] = *s.states[key]
	}
	reply, err := c.do(run)
	isTooLarge := func(key string) bool { return s.states[key].isTooLarge() }
	if tooLargeIndex := slices.IndexFunc(keys, isTooLarge); tooLargeIndex >= 0 {
		for i, key := range keys {
			s.states[key].restore(before[i])
		}
		return tooLargeError(keys[tooLargeIndex]), nil
	}
	return reply, err
}

// abortPanic is the panic that ends a command early: with an error reply, or with an error of Do.
type abortPanic struct {
	reply Reply
	err   error
}

// refuse ends a command with an error reply.
func refuse(text string) { panic(abortPanic{reply: ErrorReply(text)}) }

// require refuses a command unless a condition holds.
func require(condition bool, refusal string) {
	if !condition {
		refuse(refusal)
	}
}

// integer returns a word as an integer, or refuses the command.
func integer(word string) int64 {
	n, ok := syntax.Int(word)
	require(ok, syntax.ErrNotInteger)
	return n
}

// do runs a command, and recovers from its abort.
func (c *command) do(run call) (reply Reply, err error) {
	defer func() {
		switch recovered := recover().(type) {
		case nil:
		case abortPanic:
			reply, err = recovered.reply, recovered.err
		default:
			panic(recovered)
		}
	}()
	return c.run(run), nil
}

// tooLargeError returns the error reply for a collection that would become too large.
func tooLargeError(key string) Reply {
	return ErrorReply(fmt.Sprintf("ERR lock key '%s' would be too large: the limit is %d bytes or %d elements",
		syntax.Excerpt(key), maxValue, maxElements))
}

// maxElements limits the elements of a collection, because small elements take many times their
// bytes in memory.
const maxElements = 1 << 16

// maxNearLimitRuns limits how many commands of one program run near the limits of a collection,
// because each such command encodes its keys.
const maxNearLimitRuns = 100

// mayExceed reports whether a command may make a collection too large. The new size is at most the
// size of the keys and the words together.
func (s *Snapshot) mayExceed(c call, keys []string) bool {
	// A number takes less than 40 bytes. Only the result of HINCRBYFLOAT takes up to 5,000.
	const bytesPerWord, spareBytes, scoreFactor = 40, 8 << 10, 10
	size, elements := 0, len(c.words)
	for _, w := range c.words {
		size += len(w) + bytesPerWord
	}
	for _, key := range keys {
		k := s.states[key]
		size += k.size()
		elements += k.elementCount()
	}
	if c.name == "zinterstore" {
		size *= scoreFactor // each member of a set gets a score
	}
	return size > maxValue-spareBytes || elements > maxElements
}

func (c *command) fits(words int) bool { return syntax.FitsArity(c.spec.Arity, words) }

// grows reports whether a command may enlarge a collection. Commands on strings check their limit
// themselves.
func (c *command) grows() bool {
	return c.spec.HasAny(spec.Writes) && !slices.Contains([]string{"string", "generic"}, c.group)
}

func wrongArity(name string) Reply { return ErrorReply(syntax.WrongArity(name)) }
