package spec

import (
	"maps"
	"math/bits"
	"slices"
	"strings"
)

// Categories holds a set of categories of Redis' ACL.
type Categories uint32

// categoryNames lists the names of the categories, in the order of ACL CAT.
var categoryNames = []string{
	"keyspace", "read", "write", "set", "sortedset", "list", "hash", "string", "bitmap", "hyperloglog", "geo", "stream",
	"pubsub", "admin", "fast", "slow", "blocking", "dangerous", "connection", "transaction", "scripting",
}

// CategoryNames returns the names of all categories, in the order of ACL CAT.
func CategoryNames() []string { return slices.Clone(categoryNames) }

// CategoriesOf parses lower-case names separated by blanks. It ignores unknown names.
func CategoriesOf(names string) (set Categories) {
	for name := range strings.FieldsSeq(names) {
		if i := slices.Index(categoryNames, name); i >= 0 {
			set |= 1 << i
		}
	}
	return set
}

// Names returns the names of the set, each with a leading @, as COMMAND shows them.
func (c Categories) Names() (names []string) {
	for ; c != 0; c &= c - 1 {
		names = append(names, "@"+categoryNames[bits.TrailingZeros32(uint32(c))])
	}
	return names
}

// CategoriesByName returns the categories of Redis' commands, by name in lower case, with
// subcommands as command|subcommand. Commands with unknown categories are absent.
func CategoriesByName() map[string]Categories { return maps.Clone(categoriesByName) }

// categoriesByName maps names to categories. It is immutable.
var categoriesByName = func() map[string]Categories {
	byName := map[string]Categories{}
	for _, group := range commandCategories {
		set := CategoriesOf(group.categories)
		for name := range strings.FieldsSeq(group.names) {
			byName[name] = set
		}
	}
	return byName
}()
