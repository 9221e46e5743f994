package keyspace

import (
	"math"
	"slices"
	"strings"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/keyspace/contents"
)

// combining is a command that makes one sorted set of several: ZUNION, ZINTER, ZDIFF and ZINTERCARD numkeys key …
// with options, or with STORE a destination before that.
type combining struct {
	how                  string // zunion, zinter or zdiff
	stores, scores, card bool
	limit                int64
	inputs               []input
	aggregate            string
}

// input is one of the sets, with what its scores count.
type input struct {
	scores *contents.SortedSet
	set    *contents.Set // where it is one without scores
	weight float64
}

func (in input) len() int { return in.scores.Len() + in.set.Len() }

// score is that of a member, weighted.
func (in input) score(member string) (score float64, ok bool) {
	score, ok = in.scores.Score(member)
	if in.set.Has(member) {
		score, ok = 1, true
	}
	return weighted(score, in.weight), ok
}

func weighted(score, weight float64) float64 {
	if score *= weight; math.IsNaN(score) {
		return 0
	}
	return score
}

// each calls do with all members and their weighted scores.
func (in input) each(do func(member string, score float64)) {
	for _, m := range in.scores.Members() {
		do(m.Member, weighted(m.Score, in.weight))
	}
	for _, member := range in.set.Members() {
		do(member, weighted(1, in.weight))
	}
}

// zcombine carries such a command out.
func (c call) zcombine() Reply {
	cb := combining{how: c.name, aggregate: "sum"}
	words := c.words[1:]
	if cb.how, cb.stores = strings.CutSuffix(c.name, "store"); cb.stores {
		words = words[1:]
	}
	cb.how, cb.card = strings.CutSuffix(cb.how, "card")
	cb.parse(c.inputs(&cb, words))
	result := cb.result()
	switch {
	case cb.card:
		return Number(limited(result.Len(), cb.limit))
	case cb.stores:
		c.use(c.words[1]).store(result)
		return Number(int64(result.Len()))
	}
	return scored(result.Members(), cb.scores)
}

// inputs reads numkeys key …, and what the keys hold. What follows are options.
func (c call) inputs(cb *combining, words []string) (options []string) {
	n := integer(words[0])
	require(n >= 1, "ERR at least 1 input key is needed for '"+c.name+"' command")
	require(n <= int64(len(words)-1), syntax.ErrSyntax)
	for _, key := range words[1 : 1+n] {
		cb.inputs = append(cb.inputs, c.input(key))
	}
	return words[1+n:]
}

func (c call) input(key string) (in input) {
	sl := c.ask(key)
	in.weight = 1
	if !sl.present {
		return in
	}
	switch content := sl.read().(type) {
	case *contents.SortedSet:
		in.scores = content
	case *contents.Set:
		in.set = content
	default:
		refuse(errWrongType)
	}
	return in
}

// parse reads the options.
func (cb *combining) parse(options []string) {
	for len(options) > 0 {
		weighs := cb.how != "zdiff" && !cb.card
		taken := 2
		switch option := syntax.Lower(options[0]); {
		case option == "weights" && weighs && len(options) > len(cb.inputs):
			taken = 1 + len(cb.inputs)
			cb.weigh(options[1:taken])
		case option == "aggregate" && weighs && len(options) > 1:
			cb.aggregate = syntax.Lower(options[1])
			require(slices.Contains([]string{"sum", "min", "max"}, cb.aggregate), syntax.ErrSyntax)
		case option == "withscores" && !cb.stores && !cb.card:
			cb.scores, taken = true, 1
		case option == "limit" && cb.card && len(options) > 1:
			cb.limit = atLeast(options[1], 0, "ERR LIMIT can't be negative")
		default:
			refuse(syntax.ErrSyntax)
		}
		options = options[taken:]
	}
}

func (cb *combining) weigh(words []string) {
	for i, word := range words {
		weight, ok := contents.ParseDouble(word)
		require(ok, "ERR weight value is not a float")
		cb.inputs[i].weight = weight
	}
}

// aggregated is the score of a member of two sets.
func (cb *combining) aggregated(a, b float64) float64 {
	switch cb.aggregate {
	case "min":
		return min(a, b)
	case "max":
		return max(a, b)
	}
	if sum := a + b; !math.IsNaN(sum) {
		return sum
	}
	return 0 // of inf and -inf
}

func (cb *combining) result() *contents.SortedSet {
	result := contents.NewSortedSet()
	switch cb.how {
	case "zdiff":
		cb.inputs[0].each(func(member string, score float64) {
			if !slices.ContainsFunc(cb.inputs[1:], func(in input) bool { _, ok := in.score(member); return ok }) {
				result.Set(member, score)
			}
		})
		return result
	case "zunion":
		cb.bySize()
		for _, in := range cb.inputs {
			in.each(func(member string, score float64) {
				if before, ok := result.Score(member); ok {
					score = cb.aggregated(before, score)
				}
				result.Set(member, score)
			})
		}
		return result
	}
	cb.bySize()
	cb.inputs[0].each(func(member string, score float64) {
		for _, in := range cb.inputs[1:] {
			other, ok := in.score(member)
			if !ok {
				return
			}
			score = cb.aggregated(score, other)
		}
		result.Set(member, score)
	})
	return result
}

// bySize has the smallest sets come first, as in Redis: sums of three numbers depend on their order.
func (cb *combining) bySize() {
	slices.SortStableFunc(cb.inputs, func(a, b input) int { return a.len() - b.len() })
}
