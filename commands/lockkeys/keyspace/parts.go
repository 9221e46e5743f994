package keyspace

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"redlock-proxy/commands/catalog/keys"
	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/lockkeys/keyspace/contents"
)

// countOr returns the optional count after a key, or defaultCount.
func (c call) countOr(defaultCount int64) (count int64) {
	require(len(c.words) <= 3, syntax.ErrSyntax)
	if len(c.words) == 3 {
		return parseAtLeast(c.words[2], 0, "ERR value is out of range, must be positive")
	}
	return defaultCount
}

// spop implements SPOP key [count].
func (c call) spop() Reply {
	count := c.countOr(1)
	k, s := c.members()
	switch {
	case s == nil && len(c.words) == 2:
		return Reply{}
	case s == nil:
		return textsReply(Set, nil)
	}
	var removed []string
	for _, i := range c.sample(s.Len(), count) {
		removed = append(removed, s.Members()[i])
	}
	for _, member := range removed {
		s.Delete(member)
	}
	k.setCollection(s)
	if len(c.words) == 2 {
		return BulkReply(removed[0])
	}
	return textsReply(Set, removed)
}

// sample returns up to count random indices below n, without repetition.
func (c call) sample(n int, count int64) []int {
	switch {
	case count >= int64(n):
		all := make([]int, n)
		for i := range all {
			all[i] = i
		}
		return all
	case count == 1:
		return []int{c.generator().IntN(n)}
	}
	return c.generator().Perm(n)[:count]
}

// scan implements HSCAN, SSCAN and ZSCAN key cursor [MATCH glob] [COUNT n]. It returns all elements
// in one reply, as Redis does for small collections.
func (c call) scan() Reply {
	require(isCursor(c.words[2]), "ERR invalid cursor")
	if !c.observe(c.words[1]).present {
		return ArrayReply(BulkReply("0"), ArrayReply())
	}
	all, perElement := c.elementsOf()
	match, onlyFields := parseScan(c.name, c.words[3:])
	if match == nil && !onlyFields {
		return ArrayReply(BulkReply("0"), ArrayReply(all...))
	}
	glob := "*"
	if match != nil {
		glob = *match
	}
	matching, pattern := ArrayReply(), keys.Compile(glob)
	for element := range slices.Chunk(all, perElement) {
		matches, err := pattern.Match(element[0].Str)
		if err != nil {
			return ErrorReply("ERR " + err.Error())
		}
		if onlyFields {
			element = element[:1]
		}
		if matches {
			matching.Elems = append(matching.Elems, element...)
		}
	}
	return ArrayReply(BulkReply("0"), matching)
}

// elementsOf returns the elements of an existing key, and the number of replies per element.
func (c call) elementsOf() (elements []Reply, repliesPerElement int) {
	switch c.name {
	case "hscan":
		_, h := c.hash()
		h.Each(func(field, value string) { elements = append(elements, BulkReply(field), BulkReply(value)) })
		return elements, 2
	case "sscan":
		_, s := c.members()
		return TextsReply(s.Members()).Elems, 1
	default:
		_, z := c.sortedSet()
		for _, m := range z.Members() {
			elements = append(elements, BulkReply(m.Member), BulkReply(scanScore(z, m.Score)))
		}
		return elements, 2
	}
}

// scanScore formats a score as ZSCAN does. For a set in Redis' compact encoding, listpack, ZSCAN
// returns whole numbers with all digits.
func scanScore(z *contents.SortedSet, score float64) string {
	const maxWhole = float64(math.MaxInt64 / 2)
	if whole := math.Trunc(score); whole == score && math.Abs(score) <= maxWhole && z.Encoding() == "listpack" {
		return strconv.FormatInt(int64(whole), 10)
	}
	return contents.FormatDouble(score)
}

// isCursor reports whether C's strtoul can parse the whole word.
func isCursor(word string) bool {
	if word == "" {
		return true
	}
	if strings.IndexByte(" \t\n\v\f\r", word[0]) >= 0 {
		return false
	}
	word, _, _ = strings.Cut(word, "\x00")
	digits := word
	if word != "" && (word[0] == '-' || word[0] == '+') {
		digits = word[1:]
	}
	_, err := strconv.ParseUint(digits, 10, 64)
	return word == "" || err == nil
}

// parseScan parses the options of a scan. Redis parses them only if the key exists.
func parseScan(name string, options []string) (match *string, onlyFields bool) {
	for len(options) > 0 {
		word, consumed := syntax.Lower(options[0]), 2
		switch {
		case word == "novalues" && name == "hscan":
			onlyFields, consumed = true, 1
		case word == "novalues":
			refuse("ERR NOVALUES option can only be used in HSCAN")
		case len(options) < 2:
			refuse(syntax.ErrSyntax)
		case word == "count":
			require(integer(options[1]) >= 1, syntax.ErrSyntax)
		case word == "match":
			match = &options[1]
		default:
			refuse(syntax.ErrSyntax)
		}
		options = options[consumed:]
	}
	return match, onlyFields
}
