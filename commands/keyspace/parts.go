package keyspace

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"redlock-proxy/commands/catalog/keys"
	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/keyspace/contents"
)

// counted is the count that a command with a key alone may name, or what it is without.
func (c call) counted(without int64) (count int64) {
	require(len(c.words) <= 3, syntax.ErrSyntax)
	if len(c.words) == 3 {
		return atLeast(c.words[2], 0, "ERR value is out of range, must be positive")
	}
	return without
}

// spop is SPOP key [count].
func (c call) spop() Reply {
	count := c.counted(1)
	sl, s := c.members()
	switch {
	case s == nil && len(c.words) == 2:
		return Reply{}
	case s == nil:
		return texts(Set, nil)
	}
	var gone []string
	for _, i := range c.sample(s.Len(), count) {
		gone = append(gone, s.Members()[i])
	}
	for _, member := range gone {
		s.Delete(member)
	}
	sl.edited(s)
	if len(c.words) == 2 {
		return Text(gone[0])
	}
	return texts(Set, gone)
}

// sample are up to so many of n places, each once.
func (c call) sample(n int, count int64) []int {
	switch {
	case count >= int64(n):
		all := make([]int, n)
		for i := range all {
			all[i] = i
		}
		return all
	case count == 1:
		return []int{c.chance().IntN(n)}
	}
	return c.chance().Perm(n)[:count]
}

// maxChosen bounds the bytes of a reply in which the same elements may come again and again.
const maxChosen = 8 << 20

// parts are elements to choose from: each is one text, or a text and what belongs to it.
type parts struct {
	n  int
	of func(i int) []Reply
}

// choose is SRANDMEMBER key [count], HRANDFIELD key [count [WITHVALUES]] and ZRANDMEMBER key [count [WITHSCORES]];
// with is the word for what belongs to an element, which all gives with it if both is set.
func (c call) choose(with string, all func(both bool) parts) Reply {
	if len(c.words) == 2 {
		p := all(false)
		if p.n == 0 {
			return Reply{}
		}
		return p.of(c.chance().IntN(p.n))[0]
	}
	count, both := c.choice(with)
	reply := Reply{Kind: Array, Elems: c.chosen(all(both), count)}
	if both {
		reply.Kind = Pairs
	}
	return reply
}

// choice reads how many are to be chosen, and whether with what belongs to them.
func (c call) choice(with string) (count int64, both bool) {
	count = integer(c.words[2])
	switch {
	case count == math.MinInt64:
		refuse(fmt.Sprintf("ERR value is out of range, value must between %d and %d", -math.MaxInt64, math.MaxInt64))
	case len(c.words) == 3:
		return count, false
	case with == "" || len(c.words) > 4 || syntax.Lower(c.words[3]) != with:
		refuse(syntax.ErrSyntax)
	case count < -math.MaxInt64/2 || count > math.MaxInt64/2:
		refuse("ERR value is out of range")
	}
	return count, true
}

// chosen are so many of the parts, or, below zero, so many where each may come again.
func (c call) chosen(p parts, count int64) (all []Reply) {
	if count >= 0 {
		for _, i := range c.sample(p.n, count) {
			all = append(all, p.of(i)...)
		}
		return all
	}
	for size := 0; count < 0 && p.n > 0; count++ {
		chosen := p.of(c.chance().IntN(p.n))
		for _, r := range chosen {
			size += len(r.Str) + 16
		}
		if size > maxChosen {
			refuse(fmt.Sprintf("ERR a random choice of more than %d bytes from a lock key", maxChosen))
		}
		all = append(all, chosen...)
	}
	return all
}

func (c call) srandmember() Reply {
	require(len(c.words) <= 3, syntax.ErrSyntax)
	return c.choose("", func(bool) parts {
		_, s := c.members()
		return parts{s.Len(), func(i int) []Reply { return []Reply{Text(s.Members()[i])} }}
	})
}

func (c call) hrandfield() Reply {
	return c.choose("withvalues", func(both bool) parts {
		_, h := c.hash()
		fields := h.Fields()
		return parts{len(fields), func(i int) []Reply {
			if both {
				return []Reply{Text(fields[i]), fieldOf(h, fields[i])}
			}
			return []Reply{Text(fields[i])}
		}}
	})
}

func (c call) zrandmember() Reply {
	return c.choose("withscores", func(both bool) parts {
		_, z := c.sorted()
		return parts{z.Len(), func(i int) []Reply { return scoredReplies(z.Members()[i:i+1], both) }}
	})
}

// scan is HSCAN, SSCAN and ZSCAN key cursor [MATCH glob] [COUNT n]: all of it at once, as Redis does with what is
// small.
func (c call) scan() Reply {
	require(isCursor(c.words[2]), "ERR invalid cursor")
	if !c.ask(c.words[1]).present {
		return List(Text("0"), List())
	}
	all, perElement := c.scanned()
	match, only := parseScan(c.name, c.words[3:])
	if match == nil && !only {
		return List(Text("0"), List(all...))
	}
	glob := "*"
	if match != nil {
		glob = *match
	}
	found, pattern := List(), keys.Compile(glob)
	for element := range slices.Chunk(all, perElement) {
		fits, err := pattern.Match(element[0].Str)
		if err != nil {
			return Fail("ERR " + err.Error())
		}
		if only {
			element = element[:1]
		}
		if fits {
			found.Elems = append(found.Elems, element...)
		}
	}
	return List(Text("0"), found)
}

// scanned is what a present key holds, of so many parts per element.
func (c call) scanned() (all []Reply, perElement int) {
	switch c.name {
	case "hscan":
		_, h := c.hash()
		h.Each(func(field, value string) { all = append(all, Text(field), Text(value)) })
		return all, 2
	case "sscan":
		_, s := c.members()
		return Texts(s.Members()).Elems, 1
	default:
		_, z := c.sorted()
		for _, m := range z.Members() {
			all = append(all, Text(m.Member), Text(scanScore(z, m.Score)))
		}
		return all, 2
	}
}

// scanScore is a score as ZSCAN writes it: of what a Redis keeps in its compact form, whole numbers have all their digits.
func scanScore(z *contents.SortedSet, score float64) string {
	const most = float64(math.MaxInt64 / 2)
	if whole := math.Trunc(score); whole == score && math.Abs(score) <= most && z.Encoding() == "listpack" {
		return strconv.FormatInt(int64(whole), 10)
	}
	return contents.FormatDouble(score)
}

// isCursor is true of what C's strtoul reads as a whole.
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

// parseScan reads the options of a scan, as Redis does when it knows that there is something to be scanned.
func parseScan(name string, options []string) (match *string, onlyFields bool) {
	for len(options) > 0 {
		word, taken := syntax.Lower(options[0]), 2
		switch {
		case word == "novalues" && name == "hscan":
			onlyFields, taken = true, 1
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
		options = options[taken:]
	}
	return match, onlyFields
}
