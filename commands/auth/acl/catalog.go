package acl

import (
	"maps"
	"slices"
	"strings"

	"redlock-proxy/commands/catalog/keys"
	"redlock-proxy/commands/catalog/spec"
	"redlock-proxy/commands/catalog/syntax"
)

// OwnCommand describes a command of the proxy that Redis does not have.
type OwnCommand struct {
	// Name is in lower case.
	Name string
	// Categories are the ACL categories.
	Categories spec.Categories
	// Keys is the rule for the command's keys; nil if it has none.
	Keys *keys.Rule
	// Access is the way in which the command accesses its keys.
	Access spec.Access
}

// entry describes a command or subcommand that rules may name.
type entry struct {
	name        string // a subcommand follows its command: config|get
	bit         int
	categories  spec.Categories // 0 if unknown
	parent      *entry
	subcommands map[string]*entry // nil if there are none
	keys        *keys.Rule
	isOwn       bool
	access      spec.Access // only for the proxy's own commands
	// hasHiddenKeys is set if the command may access keys that none of its words names.
	hasHiddenKeys bool
	effect        spec.Effect
}

// Catalog holds all commands that rules may name. It is immutable.
type Catalog struct {
	entries []*entry // by bit
	byName  map[string]*entry
}

// NewCatalog returns a catalog of Redis' commands and the proxy's own commands.
func NewCatalog(ownCommands ...OwnCommand) *Catalog {
	c := &Catalog{byName: map[string]*entry{}}
	categories := spec.CategoriesByName()
	for known := range spec.All() {
		in, categorized := categories[known.Name]
		delete(categories, known.Name)
		c.add(&entry{
			name: known.Name, categories: in, keys: known.Keys, effect: known.Effect,
			hasHiddenKeys: !categorized && known.Keys == nil,
		})
	}
	// The rest are the subcommands, and commands without an entry in spec.
	for _, name := range slices.Sorted(maps.Keys(categories)) {
		command, _, isSub := strings.Cut(name, "|")
		e := &entry{name: name, categories: categories[name]}
		if parent := c.byName[command]; isSub {
			e.parent, e.keys = parent, parent.keys
			if parent.subcommands == nil {
				parent.subcommands = map[string]*entry{}
			}
			parent.subcommands[strings.TrimPrefix(name, command+"|")] = e
		}
		c.add(e)
	}
	for _, o := range ownCommands {
		c.add(&entry{name: o.Name, categories: o.Categories, keys: o.Keys, isOwn: true, access: o.Access})
	}
	return c
}

func (c *Catalog) add(e *entry) {
	e.bit = len(c.entries)
	c.entries = append(c.entries, e)
	c.byName[e.name] = e
}

// Names returns the sorted names of the commands in a category; nil if there is no such category.
func (c *Catalog) Names(category string) []string {
	in := spec.CategoriesOf(syntax.Lower(category))
	if in == 0 {
		return nil
	}
	names := []string{}
	for _, e := range c.entries {
		if e.categories&in != 0 {
			names = append(names, e.name)
		}
	}
	slices.Sort(names)
	return names
}

// Knows reports whether the catalog has the command. If the command has subcommands, the catalog
// must also have the subcommand.
func (c *Catalog) Knows(words [][]byte) bool {
	_, known := c.find(words)
	return known
}

// find returns the command or subcommand that the words name. known is false if the command is
// unknown, or if its subcommand is missing or unknown. A name with a zero byte is unknown, although
// Redis may ignore the rest of such a name.
func (c *Catalog) find(words [][]byte) (e *entry, known bool) {
	e = c.byName[syntax.Lower(words[0])]
	switch {
	case e == nil || e.parent != nil: // config|get is not the name of a command
		return nil, false
	case e.subcommands == nil:
		return e, true
	case len(words) < 2:
		return e, false
	}
	sub := e.subcommands[syntax.Lower(words[1])]
	return sub, sub != nil
}
