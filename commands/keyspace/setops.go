package keyspace

import (
	"math"
	"slices"
	"strings"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/keyspace/contents"
)

// sets are those of some keys, nil for an absent one, each of the later ones once: to join, keep or take away the same again changes
// nothing.
func (c call) sets(keys []string) (all []*contents.Set, failed *Reply) {
	for _, key := range slices.Concat(keys[:1], syntax.Distinct(keys[1:])) {
		s, failed := held[*contents.Set](c.ask(key))
		if failed != nil {
			return nil, failed
		}
		all = append(all, s)
	}
	return all, nil
}

// combine is SINTER, SUNION and SDIFF key …, and the same with STORE and a destination before the keys.
func (c call) combine() (Reply, error) {
	how, stores := strings.CutSuffix(c.name, "store")
	keys := c.words[1:]
	if stores {
		keys = keys[1:]
	}
	all, failed := c.sets(keys)
	if failed != nil {
		return *failed, nil
	}
	result := combined(how, all)
	if !stores {
		return texts(Set, result.Members()), nil
	}
	c.use(c.words[1]).store(result)
	return Number(int64(result.Len())), nil
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
func (c call) sintercard() (Reply, error) {
	n, failed := atLeast(c.words[1], 1, "ERR numkeys should be greater than 0")
	switch {
	case failed != nil:
		return *failed, nil
	case n > int64(len(c.words)-2):
		return Fail("ERR Number of keys can't be greater than number of args"), nil
	}
	limit := int64(0)
	for options := c.words[2+n:]; len(options) > 0; options = options[2:] {
		if syntax.Lower(options[0]) != "limit" || len(options) == 1 {
			return Fail(syntax.ErrSyntax), nil
		}
		if limit, failed = atLeast(options[1], 0, "ERR LIMIT can't be negative"); failed != nil {
			return *failed, nil
		}
	}
	all, failed := c.sets(c.words[2 : 2+n])
	if failed != nil {
		return *failed, nil
	}
	return Number(limited(combined("sinter", all).Len(), limit)), nil
}

// limited is a number up to a limit, where there is one.
func limited(n int, limit int64) int64 {
	if limit == 0 {
		limit = math.MaxInt64
	}
	return min(int64(n), limit)
}
