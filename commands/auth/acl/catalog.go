package acl

import (
	"maps"
	"slices"
	"strings"

	"redlock-proxy/commands/catalog/keys"
	"redlock-proxy/commands/catalog/spec"
	"redlock-proxy/commands/catalog/syntax"
)

// Own is a command that Redis does not have.
type Own struct {
	// Name is in lower case.
	Name string
	// Categories are those that it is in.
	Categories spec.Categories
	// Keys says which of its words are keys; nil: none is.
	Keys *keys.Rule
	// Access is what it does with them.
	Access spec.Access
}

// entry is a command, or a subcommand of one, as rules name it.
type entry struct {
	name       string // of a subcommand with that of its command before it: config|get
	bit        int
	categories spec.Categories // none: they are not known
	parent     *entry
	subs       map[string]*entry // nil where it has none
	keys       *keys.Rule
	own        bool
	access     spec.Access // of one that is own
	// opaque: it may reach keys that none of its words names.
	opaque bool
	effect spec.Effect
}

// Catalog is all commands that rules may name. It is never changed.
type Catalog struct {
	all    []*entry // by bit
	byName map[string]*entry
}

// NewCatalog makes one of Redis' commands and others.
func NewCatalog(own ...Own) *Catalog {
	c := &Catalog{byName: map[string]*entry{}}
	categories := spec.CategoriesIn()
	for known := range spec.All() {
		in, categorized := categories[known.Name]
		delete(categories, known.Name)
		c.add(&entry{name: known.Name, categories: in, keys: known.Keys, effect: known.Effect, opaque: !categorized && known.Keys == nil})
	}
	for _, name := range slices.Sorted(maps.Keys(categories)) { // the subcommands, and what has no entry in spec
		command, _, isSub := strings.Cut(name, "|")
		e := &entry{name: name, categories: categories[name]}
		if parent := c.byName[command]; isSub {
			e.parent, e.keys = parent, parent.keys
			if parent.subs == nil {
				parent.subs = map[string]*entry{}
			}
			parent.subs[strings.TrimPrefix(name, command+"|")] = e
		}
		c.add(e)
	}
	for _, o := range own {
		c.add(&entry{name: o.Name, categories: o.Categories, keys: o.Keys, own: true, access: o.Access})
	}
	return c
}

func (c *Catalog) add(e *entry) {
	e.bit = len(c.all)
	c.all = append(c.all, e)
	c.byName[e.name] = e
}

// Names are those of the commands in a category, sorted; nil where there is no such category.
func (c *Catalog) Names(category string) []string {
	in := spec.CategoriesOf(syntax.Lower(category))
	if in == 0 {
		return nil
	}
	names := []string{}
	for _, e := range c.all {
		if e.categories&in != 0 {
			names = append(names, e.name)
		}
	}
	slices.Sort(names)
	return names
}

// Knows reports whether these words are a command that is known, with a subcommand that is known
// where it has some.
func (c *Catalog) Knows(words [][]byte) bool {
	_, known := c.find(words)
	return known
}

// find finds the command, or the subcommand, that these words are. Without one that is known, shown
// is the name for an error. A name with a zero byte is none: Redis may take it for the one that
// ends there.
func (c *Catalog) find(words [][]byte) (e *entry, known bool) {
	e = c.byName[syntax.Lower(words[0])]
	switch {
	case e == nil || e.parent != nil: // config|get is no name of a command
		return nil, false
	case e.subs == nil:
		return e, true
	case len(words) < 2:
		return e, false
	}
	sub := e.subs[syntax.Lower(words[1])]
	return sub, sub != nil
}
