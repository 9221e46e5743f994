package keys

import (
	"maps"
	"slices"
	"sort"
	"strings"
)

// FirstMatch finds the first of several globs that matches a key. It compares a key with few of the
// globs: it groups them by their literal prefixes, and searches the sorted prefixes.
type FirstMatch struct{ groups []prefixGroup }

// prefixGroup holds the globs with the same literal prefix.
type prefixGroup struct {
	prefix string
	globs  []numberedRest // by ascending index
	// parent is the index of the group with the longest prefix of this group's prefix, or -1.
	parent int
}

// numberedRest is a glob without its literal prefix, and its index among all globs.
type numberedRest struct {
	rest  string
	index int
}

// NewFirstMatch compiles globs of the syntax of KEYS.
func NewFirstMatch(patterns ...string) FirstMatch {
	byPrefix := map[string][]numberedRest{}
	for i, p := range patterns {
		prefix := Prefix(p)
		byPrefix[prefix] = append(byPrefix[prefix], numberedRest{p[len(prefix):], i})
	}
	var f FirstMatch
	for _, prefix := range slices.Sorted(maps.Keys(byPrefix)) {
		parent := len(f.groups) - 1
		for parent >= 0 && !strings.HasPrefix(prefix, f.groups[parent].prefix) {
			parent = f.groups[parent].parent
		}
		f.groups = append(f.groups, prefixGroup{prefix, byPrefix[prefix], parent})
	}
	return f
}

// Index returns the index of the first glob that matches a key, or -1. It allocates nothing.
func (f FirstMatch) Index(key string) int {
	// In lexical order, all texts between a prefix of the key and the key begin with that prefix.
	// So each group whose prefix is a prefix of the key is the last group up to the key, or one of
	// the parents of that group.
	i := sort.Search(len(f.groups), func(i int) bool { return f.groups[i].prefix > key }) - 1
	first := -1
	for i >= 0 {
		group := &f.groups[i]
		if strings.HasPrefix(key, group.prefix) {
			first = group.firstMatch(key[len(group.prefix):], first)
		}
		i = group.parent
	}
	return first
}

// firstMatch returns the index of the first glob that matches the rest of a key. It returns known
// if there is none, or if known is lower and not -1.
func (g *prefixGroup) firstMatch(rest string, known int) int {
	for _, glob := range g.globs {
		switch {
		case known >= 0 && glob.index > known:
			return known
		case matchRest(glob.rest, rest):
			return glob.index
		}
	}
	return known
}
