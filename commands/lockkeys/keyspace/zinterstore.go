package keyspace

import (
	"math"
	"slices"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/lockkeys/keyspace/contents"
)

// intersection holds a parsed ZINTERSTORE.
type intersection struct {
	inputs    []input
	aggregate string
}

// input holds one of the sets, with the weight of its scores.
type input struct {
	sortedSet *contents.SortedSet
	set       *contents.Set // instead of sortedSet, for a set without scores
	weight    float64
}

func (in input) len() int { return in.sortedSet.Len() + in.set.Len() }

// score returns the weighted score of a member.
func (in input) score(member string) (score float64, ok bool) {
	score, ok = in.sortedSet.Score(member)
	if in.set.Has(member) {
		score, ok = 1, true
	}
	return weightedScore(score, in.weight), ok
}

func weightedScore(score, weight float64) float64 {
	if score *= weight; math.IsNaN(score) {
		return 0
	}
	return score
}

// each calls do with all members and their weighted scores.
func (in input) each(do func(member string, score float64)) {
	for _, m := range in.sortedSet.Members() {
		do(m.Member, weightedScore(m.Score, in.weight))
	}
	for _, member := range in.set.Members() {
		do(member, weightedScore(1, in.weight))
	}
}

// zinterstore implements ZINTERSTORE destination numkeys key … [WEIGHTS weight …] [AGGREGATE SUM
// | MIN | MAX]. The fair semaphore in the book Redis in Action uses ZINTERSTORE to remove the
// counters of expired members.
func (c call) zinterstore() Reply {
	s := intersection{aggregate: "sum"}
	s.parse(c.readInputs(&s))
	result := s.result()
	c.use(c.words[1]).overwrite(result)
	return IntReply(int64(result.Len()))
}

// readInputs reads numkeys key …, and the values of the keys. It returns the options after them.
func (c call) readInputs(s *intersection) (options []string) {
	n := integer(c.words[2])
	require(n >= 1, "ERR at least 1 input key is needed for '"+c.name+"' command")
	require(n <= int64(len(c.words)-3), syntax.ErrSyntax)
	for _, key := range c.words[3 : 3+n] {
		s.inputs = append(s.inputs, c.readInput(key))
	}
	return c.words[3+n:]
}

func (c call) readInput(key string) (in input) {
	k := c.observe(key)
	in.weight = 1
	if !k.present {
		return in
	}
	switch content := k.read().(type) {
	case *contents.SortedSet:
		in.sortedSet = content
	case *contents.Set:
		in.set = content
	default:
		refuse(errWrongType)
	}
	return in
}

func (s *intersection) parse(options []string) {
	for len(options) > 0 {
		consumed := 2
		switch option := syntax.Lower(options[0]); {
		case option == "weights" && len(options) > len(s.inputs):
			consumed = 1 + len(s.inputs)
			s.setWeights(options[1:consumed])
		case option == "aggregate" && len(options) > 1:
			s.aggregate = syntax.Lower(options[1])
			require(slices.Contains([]string{"sum", "min", "max"}, s.aggregate), syntax.ErrSyntax)
		default:
			refuse(syntax.ErrSyntax)
		}
		options = options[consumed:]
	}
}

func (s *intersection) setWeights(words []string) {
	for i, word := range words {
		weight, ok := contents.ParseDouble(word)
		require(ok, "ERR weight value is not a float")
		s.inputs[i].weight = weight
	}
}

// aggregateScores returns the score of a member from its scores in two sets.
func (s *intersection) aggregateScores(a, b float64) float64 {
	switch s.aggregate {
	case "min":
		return min(a, b)
	case "max":
		return max(a, b)
	}
	if sum := a + b; !math.IsNaN(sum) {
		return sum
	}
	return 0 // for inf and -inf
}

// result returns the members that all sets have. It adds the scores in Redis' order, the smallest
// set first, because rounding makes a sum of three numbers depend on their order.
func (s *intersection) result() *contents.SortedSet {
	slices.SortStableFunc(s.inputs, func(a, b input) int { return a.len() - b.len() })
	result := contents.NewSortedSet()
	s.inputs[0].each(func(member string, score float64) {
		for _, in := range s.inputs[1:] {
			otherScore, ok := in.score(member)
			if !ok {
				return
			}
			score = s.aggregateScores(score, otherScore)
		}
		result.Set(member, score)
	})
	return result
}
