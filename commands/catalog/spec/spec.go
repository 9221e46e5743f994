package spec

import (
	"iter"
	"slices"

	"redlock-proxy/commands/catalog/keys"
	"redlock-proxy/commands/catalog/syntax"
)

// Command describes a command of Redis, or of a module. It is immutable.
type Command struct {
	// Name is in lower case.
	Name string
	// Arity is the number of words, including the name. If it is negative, -Arity is the minimum; 0
	// means unknown.
	Arity int
	// Keys is the rule for the command's keys; nil if it has none.
	Keys *keys.Rule
	// Properties holds the further properties of the command.
	Properties Properties
	// Effect is the effect on the connection.
	Effect Effect
}

// Properties holds a set of properties of a command.
type Properties uint8

// The properties of a command.
const (
	// Writes is set if the command changes data.
	Writes Properties = 1 << iota
	// Propagates is set if the command writes nothing, but Redis may forward it to replicas. A
	// read-only script must not call it.
	Propagates
	// Blocks is set if the command may wait for other clients or servers.
	Blocks
)

// HasAny reports whether a command has at least one of the properties.
func (c *Command) HasAny(properties Properties) bool { return c.Properties&properties != 0 }

// Find returns a command by its name in any case, or nil. It allocates nothing.
func Find(name []byte) *Command { return byName.Find(name) }

// KeysOf returns the rule for the keys of the command with this name, in any case. It returns nil
// if the command is unknown or has no keys.
func KeysOf(name []byte) *keys.Rule {
	if c := byName.Find(name); c != nil {
		return c.Keys
	}
	return nil
}

// KeysAmong returns the keys of a call. It returns none if the words do not fit the command's rule.
func (c *Command) KeysAmong(words []string) (keys []string) {
	if at, fixed := c.Keys.FixedSpan(); fixed {
		if at = at.LimitTo(len(words)); (len(words)-1)%at.Step != 0 {
			return nil // the command itself replies with the error
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

// IsKeyless reports whether the table has a command, by its name in any case, as a command without
// keys. Every word of an unknown command may be a key.
func IsKeyless(name []byte) bool {
	c := byName.Find(syntax.CString(name, len(name)))
	return c != nil && c.Keys == nil
}

// All returns all commands.
func All() iter.Seq[*Command] {
	return func(yield func(*Command) bool) {
		for i := range allCommands {
			if !yield(&allCommands[i]) {
				return
			}
		}
	}
}

// Filter returns the commands for which matches returns true, as a map by name. A map of fewer
// commands rejects most other names faster.
func Filter(matches func(*Command) bool) *syntax.Names[*Command] {
	matching := map[string]*Command{}
	for c := range All() {
		if matches(c) {
			matching[c.Name] = c
		}
	}
	return syntax.NewNames(matching)
}

// allCommands holds all commands; byName finds them by name. They are immutable.
var (
	allCommands = slices.Concat(valueCommands, collectionCommands, serverCommands, laterCommands, commandsWithKeysOnly())
	byName      = Filter(func(*Command) bool { return true })
)
