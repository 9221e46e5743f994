package keyspace

import (
	"math"
	"slices"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/keyspace/contents"
)

// sorted is the sorted set of a command's first key; nil where the key is absent.
func (c call) sorted() (*slot, *contents.SortedSet, *Reply) {
	sl := c.ask(c.words[1])
	z, failed := held[*contents.SortedSet](sl)
	return sl, z, failed
}

// scoredReplies are members, each followed by its score if that is wanted.
func scoredReplies(all []contents.Scored, scores bool) (replies []Reply) {
	for _, m := range all {
		replies = append(replies, Text(m.Member))
		if scores {
			replies = append(replies, Real(m.Score))
		}
	}
	return replies
}

// scored is members as a reply, with their scores if these are wanted.
func scored(all []contents.Scored, scores bool) Reply {
	reply := Reply{Kind: Array, Elems: scoredReplies(all, scores)}
	if scores {
		reply.Kind = Pairs
	}
	return reply
}

// adding is a ZADD or ZINCRBY: its options, and what it adds.
type adding struct {
	nx, xx, gt, lt, changed, incr bool
	elements                      []contents.Scored
}

// parseAdding reads them.
func parseAdding(words []string, incr bool) (a adding, failed *Reply) {
	a.incr = incr
	for len(words) > 0 && a.takes(syntax.Lower(words[0])) {
		words = words[1:]
	}
	switch {
	case len(words) == 0 || len(words)%2 == 1:
		return a, new(Fail(syntax.ErrSyntax))
	case a.nx && a.xx:
		return a, new(Fail("ERR XX and NX options at the same time are not compatible"))
	case a.gt && a.nx || a.lt && a.nx || a.gt && a.lt:
		return a, new(Fail("ERR GT, LT, and/or NX options at the same time are not compatible"))
	case a.incr && len(words) > 2:
		return a, new(Fail("ERR INCR option supports a single increment-element pair"))
	}
	for pair := range slices.Chunk(words, 2) {
		score, ok := contents.ParseDouble(pair[0])
		if !ok {
			return a, new(Fail(errNotFloat))
		}
		a.elements = append(a.elements, contents.Scored{Member: pair[1], Score: score})
	}
	return a, nil
}

func (a *adding) takes(option string) bool {
	switch option {
	case "nx":
		a.nx = true
	case "xx":
		a.xx = true
	case "gt":
		a.gt = true
	case "lt":
		a.lt = true
	case "ch":
		a.changed = true
	case "incr":
		a.incr = true
	default:
		return false
	}
	return true
}

// allows reports whether a member may get a score in the place of the one that it has.
func (a adding) allows(before, score float64) bool {
	return !(a.lt && score >= before || a.gt && score <= before)
}

// zadd is ZADD key [NX|XX] [GT|LT] [CH] [INCR] score member …, and ZINCRBY key increment member.
func (c call) zadd() (Reply, error) {
	a, failed := parseAdding(c.words[2:], c.name == "zincrby")
	if failed != nil {
		return *failed, nil
	}
	return c.adds(a), nil
}

// adds carries it out on the command's first key.
func (c call) adds(a adding) Reply {
	sl := c.use(c.words[1])
	sl.asked = sl.asked || a.nx || a.xx || a.gt || a.lt
	z, failed := held[*contents.SortedSet](sl)
	switch {
	case failed != nil:
		return *failed
	case z == nil && a.xx && a.incr:
		return Reply{}
	case z == nil && a.xx:
		return Number(0)
	case z == nil:
		z = contents.NewSortedSet()
	}
	reply := a.addTo(z)
	if z.Len() > 0 {
		sl.edited(z)
	}
	return reply
}

// addTo does it.
func (a adding) addTo(z *contents.SortedSet) Reply {
	added, updated := int64(0), int64(0)
	for _, e := range a.elements {
		before, present := z.Score(e.Member)
		if present && a.incr && !a.nx {
			if e.Score += before; math.IsNaN(e.Score) {
				return Fail("ERR resulting score is not a number (NaN)")
			}
		}
		switch {
		case present && (a.nx || !a.allows(before, e.Score)), !present && a.xx:
			if a.incr {
				return Reply{}
			}
			continue
		case !present:
			added++
		case e.Score != before:
			updated++
		}
		z.Set(e.Member, e.Score+0) // -0 is kept as 0
		if a.incr {
			return Real(e.Score)
		}
	}
	if a.changed {
		added += updated
	}
	return Number(added)
}

func (c call) zrem() (Reply, error) {
	sl, z, failed := c.sorted()
	switch {
	case failed != nil:
		return *failed, nil
	case z == nil:
		return Number(0), nil
	}
	gone := int64(0)
	for _, member := range c.words[2:] {
		if z.Delete(member) {
			gone++
		}
	}
	sl.edited(z)
	return Number(gone), nil
}

func (c call) zcard() (Reply, error) {
	_, z, failed := c.sorted()
	if failed != nil {
		return *failed, nil
	}
	return Number(int64(z.Len())), nil
}

// zscore is ZSCORE key member, and ZMSCORE key member ….
func (c call) zscore() (Reply, error) {
	_, z, failed := c.sorted()
	if failed != nil {
		return *failed, nil
	}
	elems := make([]Reply, len(c.words)-2)
	for i, member := range c.words[2:] {
		if score, ok := z.Score(member); ok {
			elems[i] = Real(score)
		}
	}
	if c.name == "zscore" {
		return elems[0], nil
	}
	return List(elems...), nil
}

// zrank is ZRANK and ZREVRANK key member.
func (c call) zrank() (Reply, error) {
	scored := len(c.words) == 4
	switch {
	case len(c.words) > 4:
		return wrongArity(c.name), nil
	case scored && syntax.Lower(c.words[3]) != "withscore":
		return Fail(syntax.ErrSyntax), nil
	}
	_, z, failed := c.sorted()
	if failed != nil {
		return *failed, nil
	}
	rank, ok := z.Rank(c.words[2])
	switch {
	case !ok && scored:
		return Reply{Kind: NilArray}, nil
	case !ok:
		return Reply{}, nil
	case c.name == "zrevrank":
		rank = z.Len() - 1 - rank
	}
	if score, _ := z.Score(c.words[2]); scored {
		return List(Number(int64(rank)), Real(score)), nil
	}
	return Number(int64(rank)), nil
}

// zpop is ZPOPMIN and ZPOPMAX key [count].
func (c call) zpop() (Reply, error) {
	count, failed := c.counted(-1)
	if failed != nil {
		return *failed, nil
	}
	sl, z, failed := c.sorted()
	switch {
	case failed != nil:
		return *failed, nil
	case z == nil:
		return List(), nil
	case count < 0:
		return List(scoredReplies(sl.poppedScored(z, c.name == "zpopmin", 1), true)...), nil
	}
	return scored(sl.poppedScored(z, c.name == "zpopmin", count), true), nil
}

// poppedScored takes up to so many members off one end of a sorted set.
func (sl *slot) poppedScored(z *contents.SortedSet, least bool, count int64) []contents.Scored {
	n := int(min(count, int64(z.Len())))
	all := slices.Clone(z.Members())
	if !least {
		slices.Reverse(all)
	}
	for _, m := range all[:n] {
		z.Delete(m.Member)
	}
	sl.edited(z)
	return all[:n]
}

// bzpop is BZPOPMIN and BZPOPMAX key … timeout.
func (c call) bzpop() (Reply, error) {
	last := len(c.words) - 1
	if failed := c.patience(c.words[last]); failed != nil {
		return *failed, nil
	}
	sl, z, failed := firstOf[*contents.SortedSet](c, c.words[1:last])
	switch {
	case failed != nil:
		return *failed, nil
	case sl == nil:
		return Reply{Kind: NilArray}, nil
	}
	m := sl.poppedScored(z, c.name == "bzpopmin", 1)[0]
	return List(Text(sl.key), Text(m.Member), Real(m.Score)), nil
}

// zmpop is ZMPOP and BZMPOP.
func (c call) zmpop() (Reply, error) {
	s, failed := c.severalOf("min", "max")
	if failed != nil {
		return *failed, nil
	}
	sl, z, failed := firstOf[*contents.SortedSet](c, s.keys)
	switch {
	case failed != nil:
		return *failed, nil
	case sl == nil:
		return Reply{Kind: NilArray}, nil
	}
	pairs := List()
	for _, m := range sl.poppedScored(z, s.first, s.count) {
		pairs.Elems = append(pairs.Elems, List(Text(m.Member), Real(m.Score)))
	}
	return List(Text(sl.key), pairs), nil
}
