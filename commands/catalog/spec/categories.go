package spec

import (
	"maps"
	"math/bits"
	"slices"
	"strings"
)

// Categories are a set of the categories of Redis' ACL.
type Categories uint32

// categoryNames are their names, in the order of ACL CAT.
var categoryNames = []string{
	"keyspace", "read", "write", "set", "sortedset", "list", "hash", "string", "bitmap", "hyperloglog", "geo", "stream",
	"pubsub", "admin", "fast", "slow", "blocking", "dangerous", "connection", "transaction", "scripting",
}

// CategoryNames are the names of all categories, as ACL CAT lists them.
func CategoryNames() []string { return slices.Clone(categoryNames) }

// CategoriesOf makes a set of names in lower case, with blanks between them; those that are no
// categories are left out.
func CategoriesOf(names string) (set Categories) {
	for name := range strings.FieldsSeq(names) {
		if i := slices.Index(categoryNames, name); i >= 0 {
			set |= 1 << i
		}
	}
	return set
}

// Names are those of the set, each with an @ before it, as COMMAND shows them.
func (c Categories) Names() (names []string) {
	for ; c != 0; c &= c - 1 {
		names = append(names, "@"+categoryNames[bits.TrailingZeros32(uint32(c))])
	}
	return names
}

// CategoriesIn are the categories of each command of Redis of which they are known, by its name in
// lower case; subcommands stand there as command|subcommand.
func CategoriesIn() map[string]Categories { return maps.Clone(categoriesBy) }

// categoriesBy is never changed.
var categoriesBy = func() map[string]Categories {
	all := map[string]Categories{}
	for _, some := range categorized {
		set := CategoriesOf(some.in)
		for name := range strings.FieldsSeq(some.names) {
			all[name] = set
		}
	}
	return all
}()
