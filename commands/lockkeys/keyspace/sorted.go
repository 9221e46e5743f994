package keyspace

import (
	"math"
	"slices"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/lockkeys/keyspace/contents"
)

// sortedSetCommands returns the commands on sorted sets.
func sortedSetCommands() []tableEntry {
	return []tableEntry{
		{"zadd", call.zadd, "1.2.0", "Sets the scores of members of a sorted set in a lock key."},
		{"zincrby", call.zadd, "1.2.0", "Adds to the score of a member of a sorted set in a lock key."},
		{"zrem", removeElements[*contents.SortedSet], "1.2.0", "Removes members from a sorted set in a lock key."},
		{"zcard", length[*contents.SortedSet], "1.2.0", "Counts the members of a sorted set in a lock key."},
		{"zscore", call.zscore, "1.2.0", "Returns the score of a member of a sorted set in a lock key."},
		{"zmscore", call.zscore, "6.2.0", "Returns the scores of members of a sorted set in a lock key."},
		{"zrank", call.zrank, "2.0.0", "Returns the rank of a member of a sorted set in a lock key."},
		{"zrevrank", call.zrank, "2.0.0", "Returns the rank of a member of a sorted set, counted from the end."},
		{"zcount", call.zcount, "2.0.0", "Counts the members with scores in a range."},
		{"zlexcount", call.zcount, "2.8.9", "Counts the members in a range."},
		{"zrange", call.zrange, "1.2.0", "Returns members in a range of ranks, scores or members."},
		{"zrevrange", call.zrange, "1.2.0", "Returns members in a range of ranks, from the end."},
		{"zrangebyscore", call.zrange, "1.0.5", "Returns members with scores in a range."},
		{"zrevrangebyscore", call.zrange, "2.2.0", "Returns members with scores in a range, from the end."},
		{"zrangebylex", call.zrange, "2.8.9", "Returns members in a range."},
		{"zrevrangebylex", call.zrange, "2.8.9", "Returns members in a range, from the end."},
		{"zremrangebyscore", call.zcount, "1.2.0", "Removes members with scores in a range."},
		{"zremrangebyrank", call.zcount, "2.0.0", "Removes members in a range of ranks."},
		{"zremrangebylex", call.zcount, "2.8.9", "Removes members in a range."},
		{"zpopmin", call.zpop, "5.0.0", "Removes the members with the lowest scores and returns them."},
		{"zpopmax", call.zpop, "5.0.0", "Removes the members with the highest scores and returns them."},
		{"bzpopmin", call.bzpop, "5.0.0", "Removes the member with the lowest score, or waits for one."},
		{"bzpopmax", call.bzpop, "5.0.0", "Removes the member with the highest score, or waits for one."},
		{"zscan", call.scan, "2.8.0", "Returns all matching members of a sorted set in a lock key."},
		{"zinterstore", call.zinterstore, "2.0.0", "Stores the intersection of sorted sets."},
	}
}

// scoredReplies returns the replies for members. If withScores is true, the score follows each
// member.
func scoredReplies(members []contents.ScoredMember, withScores bool) (replies []Reply) {
	for _, m := range members {
		replies = append(replies, BulkReply(m.Member))
		if withScores {
			replies = append(replies, DoubleReply(m.Score))
		}
	}
	return replies
}

// scoredReply returns the reply for members, with their scores if withScores is true.
func scoredReply(members []contents.ScoredMember, withScores bool) Reply {
	reply := Reply{Kind: Array, Elems: scoredReplies(members, withScores)}
	if withScores {
		reply.Kind = Pairs
	}
	return reply
}

// zaddRequest holds a parsed ZADD or ZINCRBY.
type zaddRequest struct {
	nx, xx, gt, lt, countUpdates, incr bool
	elements                           []contents.ScoredMember
}

// parseZadd parses the options and elements of a ZADD or ZINCRBY.
func parseZadd(words []string, incr bool) (a zaddRequest) {
	a.incr = incr
	for len(words) > 0 && a.setOption(syntax.Lower(words[0])) {
		words = words[1:]
	}
	require(len(words) > 0 && len(words)%2 == 0, syntax.ErrSyntax)
	require(!a.nx || !a.xx, "ERR XX and NX options at the same time are not compatible")
	require(!(a.gt && a.nx || a.lt && a.nx || a.gt && a.lt),
		"ERR GT, LT, and/or NX options at the same time are not compatible")
	require(!a.incr || len(words) == 2, "ERR INCR option supports a single increment-element pair")
	for pair := range slices.Chunk(words, 2) {
		score, ok := contents.ParseDouble(pair[0])
		require(ok, errNotFloat)
		a.elements = append(a.elements, contents.ScoredMember{Member: pair[1], Score: score})
	}
	return a
}

func (a *zaddRequest) setOption(option string) bool {
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
		a.countUpdates = true
	case "incr":
		a.incr = true
	default:
		return false
	}
	return true
}

// allows reports whether a member's score may change from oldScore to score.
func (a zaddRequest) allows(oldScore, score float64) bool {
	return !(a.lt && score >= oldScore || a.gt && score <= oldScore)
}

// zadd implements ZADD key [NX|XX] [GT|LT] [CH] [INCR] score member …, and ZINCRBY key increment
// member.
func (c call) zadd() Reply {
	a := parseZadd(c.words[2:], c.name == "zincrby")
	k := c.use(c.words[1])
	k.replyDependsOn = k.replyDependsOn || a.nx || a.xx || a.gt || a.lt
	z := contentOf[*contents.SortedSet](k)
	switch {
	case z == nil && a.xx && a.incr:
		return Reply{}
	case z == nil && a.xx:
		return IntReply(0)
	case z == nil:
		z = contents.NewSortedSet()
	}
	reply := a.applyTo(z)
	if z.Len() > 0 {
		k.setCollection(z)
	}
	return reply
}

// applyTo changes a sorted set, and returns the reply.
func (a zaddRequest) applyTo(z *contents.SortedSet) Reply {
	added, updated := int64(0), int64(0)
	for _, e := range a.elements {
		before, present := z.Score(e.Member)
		if present && a.incr && !a.nx {
			e.Score += before
			require(!math.IsNaN(e.Score), "ERR resulting score is not a number (NaN)")
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
		z.Set(e.Member, e.Score+0) // -0 becomes 0
		if a.incr {
			return DoubleReply(e.Score)
		}
	}
	if a.countUpdates {
		added += updated
	}
	return IntReply(added)
}

// zscore implements ZSCORE key member, and ZMSCORE key member ….
func (c call) zscore() Reply {
	_, z := c.sortedSet()
	elems := make([]Reply, len(c.words)-2)
	for i, member := range c.words[2:] {
		if score, ok := z.Score(member); ok {
			elems[i] = DoubleReply(score)
		}
	}
	if c.name == "zscore" {
		return elems[0]
	}
	return ArrayReply(elems...)
}

// zrank implements ZRANK and ZREVRANK key member [WITHSCORE].
func (c call) zrank() Reply {
	withScore := len(c.words) == 4
	switch {
	case len(c.words) > 4:
		return wrongArity(c.name)
	case withScore && syntax.Lower(c.words[3]) != "withscore":
		return ErrorReply(syntax.ErrSyntax)
	}
	_, z := c.sortedSet()
	rank, ok := z.Rank(c.words[2])
	switch {
	case !ok && withScore:
		return Reply{Kind: NilArray}
	case !ok:
		return Reply{}
	case c.name == "zrevrank":
		rank = z.Len() - 1 - rank
	}
	if score, _ := z.Score(c.words[2]); withScore {
		return ArrayReply(IntReply(int64(rank)), DoubleReply(score))
	}
	return IntReply(int64(rank))
}

// zpop implements ZPOPMIN and ZPOPMAX key [count].
func (c call) zpop() Reply {
	count := c.countOr(-1)
	k, z := c.sortedSet()
	switch {
	case z == nil:
		return ArrayReply()
	case count < 0:
		return ArrayReply(scoredReplies(k.popMembers(z, c.name == "zpopmin", 1), true)...)
	}
	return scoredReply(k.popMembers(z, c.name == "zpopmin", count), true)
}

// popMembers removes up to count members from one end of a sorted set, and returns them.
func (k *keyState) popMembers(z *contents.SortedSet, lowest bool, count int64) []contents.ScoredMember {
	n := int(min(count, int64(z.Len())))
	members := slices.Clone(z.Members())
	if !lowest {
		slices.Reverse(members)
	}
	for _, m := range members[:n] {
		z.Delete(m.Member)
	}
	k.setCollection(z)
	return members[:n]
}

// bzpop implements BZPOPMIN and BZPOPMAX key … timeout.
func (c call) bzpop() Reply {
	last := len(c.words) - 1
	c.checkTimeout(c.words[last])
	k, z := firstOf[*contents.SortedSet](c, c.words[1:last])
	if k == nil {
		return Reply{Kind: NilArray}
	}
	m := k.popMembers(z, c.name == "bzpopmin", 1)[0]
	return ArrayReply(BulkReply(k.key), BulkReply(m.Member), DoubleReply(m.Score))
}
