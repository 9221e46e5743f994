package keyspace

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/keyspace/contents"
)

// sets are those of some keys, nil for an absent one, each of the later ones once: to join, keep or take away the same again changes
// nothing.
func (c call) sets(keys []string) (all []*contents.Set) {
	for _, key := range slices.Concat(keys[:1], syntax.Distinct(keys[1:])) {
		all = append(all, held[*contents.Set](c.ask(key)))
	}
	return all
}

// combine is SINTER, SUNION and SDIFF key …, and the same with STORE and a destination before the keys.
func (c call) combine() Reply {
	how, stores := strings.CutSuffix(c.name, "store")
	keys := c.words[1:]
	if stores {
		keys = keys[1:]
	}
	result := combined(how, c.sets(keys))
	if !stores {
		return texts(Set, result.Members())
	}
	c.use(c.words[1]).store(result)
	return Number(int64(result.Len()))
}

func combined(how string, all []*contents.Set) *contents.Set {
	result := contents.NewSet(all[0].Members()...)
	for _, other := range all[1:] {
		switch how {
		case "sunion":
			for _, member := range other.Members() {
				result.Add(member)
			}
		case "sdiff":
			for _, member := range other.Members() {
				result.Delete(member)
			}
		default:
			common := contents.NewSet()
			for _, member := range result.Members() {
				if other.Has(member) {
					common.Add(member)
				}
			}
			result = common
		}
	}
	return result
}

// sintercard is SINTERCARD numkeys key … [LIMIT n].
func (c call) sintercard() Reply {
	n := atLeast(c.words[1], 1, "ERR numkeys should be greater than 0")
	require(n <= int64(len(c.words)-2), "ERR Number of keys can't be greater than number of args")
	limit := int64(0)
	for options := c.words[2+n:]; len(options) > 0; options = options[2:] {
		require(syntax.Lower(options[0]) == "limit" && len(options) > 1, syntax.ErrSyntax)
		limit = atLeast(options[1], 0, "ERR LIMIT can't be negative")
	}
	all := c.sets(c.words[2 : 2+n])
	return Number(limited(combined("sinter", all).Len(), limit))
}

// limited is a number up to a limit, where there is one.
func limited(n int, limit int64) int64 {
	return min(int64(n), cmp.Or(limit, math.MaxInt64))
}
