package spec

import (
	"iter"
	"slices"

	"redlock-proxy/commands/catalog/keys"
	"redlock-proxy/commands/catalog/syntax"
)

// Command is what is known of a command of Redis, or of a module that comes with it. It is never
// changed.
type Command struct {
	// Name is in lower case.
	Name string
	// Arity counts the words, the name included; negative: at least so many; 0: not known.
	Arity int
	// Keys says which of the words are keys; nil: none is.
	Keys *keys.Rule
	// Use is what it does besides.
	Use Use
	// Effect is what it does to the connection.
	Effect Effect
}

// Use is a set of what commands do.
type Use uint8

// What commands do.
const (
	// Writes is set for those that change the data.
	Writes Use = 1 << iota
	// Propagates is set for others that Redis may pass on to replicas, so that no read-only script
	// may call them.
	Propagates
	// Blocks is set for those that may wait for something else than the server's own work.
	Blocks
)

// Does reports whether a command does one of these.
func (c *Command) Does(either Use) bool { return c.Use&either != 0 }

// Find finds a command by its name in any case, or nil. It allocates nothing.
func Find(name []byte) *Command { return byName.Find(name) }

// KeysOf gives the rule for the keys of a command by its name in any case; nil where it has none,
// or is not known.
func KeysOf(name []byte) *keys.Rule {
	if c := byName.Find(name); c != nil {
		return c.Keys
	}
	return nil
}

// KeysAmong are the keys among as many words as the command may have; none where they do not fit
// its rule.
func (c *Command) KeysAmong(words []string) (keys []string) {
	if at, fixed := c.Keys.Fixed(); fixed {
		if at = at.Within(len(words)); (len(words)-1)%at.Step != 0 {
			return nil // the command itself says what is wrong
		}
		for i := at.First; i <= at.Last; i += at.Step {
			keys = append(keys, words[i])
		}
		return keys
	}
	places, _ := c.Keys.Places(syntax.Bytes(words), len(words))
	for _, i := range slices.Sorted(places.All()) {
		keys = append(keys, words[i])
	}
	return keys
}

// Keyless reports whether a command is known to have no keys, by its name in any case. Of one that
// is not known every word may be a key.
func Keyless(name []byte) bool {
	c := byName.Find(syntax.CString(name, len(name)))
	return c != nil && c.Keys == nil
}

// All are all commands.
func All() iter.Seq[*Command] {
	return func(yield func(*Command) bool) {
		for i := range table {
			if !yield(&table[i]) {
				return
			}
		}
	}
}

// Those are the commands of which something is true, to be found by name as by [Find]: the fewer
// there are, the sooner it is known that a name is none of theirs.
func Those(are func(*Command) bool) *syntax.Names[*Command] {
	some := map[string]*Command{}
	for c := range All() {
		if are(c) {
			some[c.Name] = c
		}
	}
	return syntax.NewNames(some)
}

// table has all of them, and byName finds them. They are never changed.
var (
	table  = slices.Concat(values, collections, others, later, onlyKeys())
	byName = Those(func(*Command) bool { return true })
)
