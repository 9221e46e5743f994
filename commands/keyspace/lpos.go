package keyspace

import (
	"math"

	"redlock-proxy/commands/catalog/syntax"
)

// lposOptions are those of LPOS; count is -1 where only one place is wanted.
type lposOptions struct{ rank, count, most int64 }

func parseLpos(words []string) (o lposOptions) {
	o = lposOptions{rank: 1, count: -1}
	for ; len(words) > 0; words = words[2:] {
		require(len(words) > 1, syntax.ErrSyntax)
		switch syntax.Lower(words[0]) {
		case "rank":
			o.rank = parseRank(words[1])
		case "count":
			o.count = atLeast(words[1], 0, "ERR COUNT can't be negative")
		case "maxlen":
			o.most = atLeast(words[1], 0, "ERR MAXLEN can't be negative")
		default:
			refuse(syntax.ErrSyntax)
		}
	}
	return o
}

func parseRank(word string) int64 {
	rank := integer(word)
	if rank == math.MinInt64 {
		return -1 // its opposite is no number, so that Redis skips nothing
	}
	require(rank != 0, "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use negative to start from the end of the list")
	return rank
}

// lpos is LPOS key element [RANK rank] [COUNT n] [MAXLEN n].
func (c call) lpos() Reply {
	o := parseLpos(c.words[3:])
	_, l := c.list()
	found := o.places(l.Elems(), c.words[2])
	switch {
	case o.count >= 0:
		return List(found...)
	case len(found) > 0:
		return found[0]
	}
	return Reply{}
}

// places are where an element is found, as many as are wanted.
func (o lposOptions) places(elems []string, elem string) (found []Reply) {
	skip, wanted := max(o.rank, -o.rank)-1, o.count
	switch wanted {
	case -1:
		wanted = 1
	case 0:
		wanted = math.MaxInt64
	}
	for i := range elems {
		if o.most > 0 && int64(i) >= o.most || int64(len(found)) == wanted {
			break
		}
		at := i
		if o.rank < 0 {
			at = len(elems) - 1 - i
		}
		switch {
		case elems[at] != elem:
		case skip > 0:
			skip--
		default:
			found = append(found, Number(int64(at)))
		}
	}
	return found
}
