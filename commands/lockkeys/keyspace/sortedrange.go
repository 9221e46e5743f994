package keyspace

import (
	"slices"
	"strings"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/lockkeys/keyspace/contents"
)

const (
	errScoreRange = "ERR min or max is not a float"
	errLexRange   = "ERR min or max not valid string range item"
)

// rangeKind is the kind of a range of a sorted set: of ranks, scores or members.
type rangeKind uint8

const (
	byRank rangeKind = iota
	byScore
	byLex
)

// sortedRange describes a range of members of a sorted set.
type sortedRange struct {
	by                  rangeKind
	reverse, withScores bool
	offset, limit       int64
	from, to            string         // the unparsed ends
	ends                contents.Range // the parsed ends of a range of scores or members
}

// parseRange parses the ends and the options of a command of the ZRANGE family. isZRange is true
// for ZRANGE itself, which has options for the kind and direction of its range.
func parseRange(r sortedRange, words []string, isZRange bool) sortedRange {
	r.from, r.to, r.limit = words[0], words[1], -1
	kindSet, directionSet := !isZRange, !isZRange
	for options := words[2:]; len(options) > 0; options = options[1:] {
		switch option := syntax.Lower(options[0]); {
		case option == "withscores":
			r.withScores = true
		case option == "limit" && len(options) > 2:
			r.offset, r.limit = integer(options[1]), integer(options[2])
			options = options[2:]
		case option == "rev" && !directionSet:
			r.reverse, directionSet = true, true
		case option == "bylex" && !kindSet:
			r.by, kindSet = byLex, true
		case option == "byscore" && !kindSet:
			r.by, kindSet = byScore, true
		default:
			refuse(syntax.ErrSyntax)
		}
	}
	require(r.limit == -1 || r.by != byRank,
		"ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX")
	require(!r.withScores || r.by != byLex, "ERR syntax error, WITHSCORES not supported in combination with BYLEX")
	if r.reverse && r.by != byRank {
		r.from, r.to = r.to, r.from
	}
	r.parseEnds()
	return r
}

func (r *sortedRange) parseEnds() {
	switch r.by {
	case byScore:
		ends, ok := contents.ParseScoreRange(r.from, r.to)
		require(ok, errScoreRange)
		r.ends = ends
	case byLex:
		ends, ok := contents.ParseLexRange(r.from, r.to)
		require(ok, errLexRange)
		r.ends = ends
	default:
		bounds(r.from, r.to, 0)
	}
}

// membersOf returns the members of a sorted set in the range, in the order of the range.
func (r sortedRange) membersOf(z *contents.SortedSet) []contents.ScoredMember {
	members := z.Members()
	if r.by == byRank {
		return r.membersByRank(members)
	}
	var membersInRange []contents.ScoredMember
	if r.reverse {
		from, to := z.IndexRangeFromEnd(r.ends)
		membersInRange = slices.Clone(members[from:to])
		slices.Reverse(membersInRange)
	} else {
		from, to := z.IndexRange(r.ends)
		membersInRange = members[from:to]
	}
	switch {
	case r.offset < 0 || r.offset >= int64(len(membersInRange)):
		return nil
	case r.limit < 0:
		return membersInRange[r.offset:]
	}
	return membersInRange[r.offset:][:min(r.limit, int64(len(membersInRange))-r.offset)]
}

func (r sortedRange) membersByRank(members []contents.ScoredMember) []contents.ScoredMember {
	if r.reverse {
		members = slices.Clone(members)
		slices.Reverse(members)
	}
	from, to := bounds(r.from, r.to, len(members))
	if from > to {
		return nil
	}
	return members[from : to+1]
}

// zrange implements ZRANGE, ZREVRANGE, ZRANGEBYSCORE, ZREVRANGEBYSCORE, ZRANGEBYLEX and
// ZREVRANGEBYLEX key min max ….
func (c call) zrange() Reply {
	r := parseRange(rangeOf(c.name), c.words[2:], c.name == "zrange")
	_, z := c.sortedSet()
	return scoredReply(r.membersOf(z), r.withScores)
}

// rangeOf returns the kind and direction of a command's range, according to its name.
func rangeOf(name string) (r sortedRange) {
	r.reverse = strings.HasPrefix(name, "zrev")
	switch {
	case strings.HasSuffix(name, "byscore"):
		r.by = byScore
	case strings.HasSuffix(name, "bylex"):
		r.by = byLex
	}
	return r
}

// zcount implements ZCOUNT and ZLEXCOUNT key min max, and ZREMRANGEBYSCORE, ZREMRANGEBYLEX and
// ZREMRANGEBYRANK, which remove the members that they count.
func (c call) zcount() Reply {
	r := rangeOf(c.name)
	switch c.name {
	case "zcount":
		r.by = byScore
	case "zlexcount":
		r.by = byLex
	}
	r.from, r.to, r.limit = c.words[2], c.words[3], -1
	r.parseEnds()
	k, z := c.sortedSet()
	if z == nil {
		return IntReply(0)
	}
	members := r.membersOf(z)
	if strings.HasPrefix(c.name, "zrem") {
		for _, m := range slices.Clone(members) {
			z.Delete(m.Member)
		}
		k.setCollection(z)
	}
	return IntReply(int64(len(members)))
}
