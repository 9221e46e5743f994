package keyspace

import (
	"errors"
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
func (c call) counted(without int64) (count int64, failed *Reply) {
	switch {
	case len(c.words) > 3:
		return 0, new(Fail(syntax.ErrSyntax))
	case len(c.words) == 3:
		return positive(c.words[2])
	}
	return without, nil
}

// spop is SPOP key [count].
func (c call) spop() (Reply, error) {
	count, failed := c.counted(1)
	if failed != nil {
		return *failed, nil
	}
	sl, s, failed := c.members()
	switch {
	case failed != nil:
		return *failed, nil
	case s == nil && len(c.words) == 2:
		return Reply{}, nil
	case s == nil:
		return texts(Set, nil), nil
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
		return Text(gone[0]), nil
	}
	return texts(Set, gone), nil
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
func (c call) choose(with string, all func(both bool) (parts, *Reply)) Reply {
	if len(c.words) == 2 {
		p, failed := all(false)
		switch {
		case failed != nil:
			return *failed
		case p.n == 0:
			return Reply{}
		}
		return p.of(c.chance().IntN(p.n))[0]
	}
	count, both, failed := c.choice(with)
	if failed != nil {
		return *failed
	}
	p, failed := all(both)
	if failed != nil {
		return *failed
	}
	reply := Reply{Kind: Array}
	if both {
		reply.Kind = Pairs
	}
	var broad error
	if reply.Elems, broad = c.chosen(p, count); broad != nil {
		return Fail(broad.Error())
	}
	return reply
}

// choice reads how many are to be chosen, and whether with what belongs to them.
func (c call) choice(with string) (count int64, both bool, failed *Reply) {
	count, ok := syntax.Int(c.words[2])
	switch {
	case !ok:
		return 0, false, new(Fail(syntax.ErrNotInteger))
	case count == math.MinInt64:
		return 0, false, new(Fail(fmt.Sprintf("ERR value is out of range, value must between %d and %d", -math.MaxInt64, math.MaxInt64)))
	case len(c.words) == 3:
		return count, false, nil
	case with == "" || len(c.words) > 4 || syntax.Lower(c.words[3]) != with:
		return 0, false, new(Fail(syntax.ErrSyntax))
	case count < -math.MaxInt64/2 || count > math.MaxInt64/2:
		return 0, false, new(Fail("ERR value is out of range"))
	}
	return count, true, nil
}

// chosen are so many of the parts, or, below zero, so many where each may come again.
func (c call) chosen(p parts, count int64) (all []Reply, err error) {
	if count >= 0 {
		for _, i := range c.sample(p.n, count) {
			all = append(all, p.of(i)...)
		}
		return all, nil
	}
	if p.n == 0 {
		return nil, nil
	}
	for size := 0; count < 0; count++ {
		chosen := p.of(c.chance().IntN(p.n))
		for _, r := range chosen {
			size += len(r.Str) + 16
		}
		if size > maxChosen {
			return nil, errTooMuchChosen
		}
		all = append(all, chosen...)
	}
	return all, nil
}

var errTooMuchChosen = errors.New("ERR a random choice of more than " + strconv.Itoa(maxChosen) + " bytes from a lock key")

func (c call) srandmember() (Reply, error) {
	if len(c.words) > 3 {
		return Fail(syntax.ErrSyntax), nil
	}
	return c.choose("", func(bool) (parts, *Reply) {
		_, s, failed := c.members()
		if failed != nil {
			return parts{}, failed
		}
		return parts{s.Len(), func(i int) []Reply { return []Reply{Text(s.Members()[i])} }}, nil
	}), nil
}

func (c call) hrandfield() (Reply, error) {
	return c.choose("withvalues", func(both bool) (parts, *Reply) {
		h, failed := c.hash()
		if failed != nil {
			return parts{}, failed
		}
		fields := h.Fields()
		return parts{len(fields), func(i int) []Reply {
			if both {
				return []Reply{Text(fields[i]), fieldOf(h, fields[i])}
			}
			return []Reply{Text(fields[i])}
		}}, nil
	}), nil
}

func (c call) zrandmember() (Reply, error) {
	return c.choose("withscores", func(both bool) (parts, *Reply) {
		_, z, failed := c.sorted()
		if failed != nil {
			return parts{}, failed
		}
		return parts{z.Len(), func(i int) []Reply { return scoredReplies(z.Members()[i:i+1], both) }}, nil
	}), nil
}

// scan is HSCAN, SSCAN and ZSCAN key cursor [MATCH glob] [COUNT n]: all of it at once, as Redis does with what is
// small.
func (c call) scan() (Reply, error) {
	if !isCursor(c.words[2]) {
		return Fail("ERR invalid cursor"), nil
	}
	if !c.ask(c.words[1]).present {
		return List(Text("0"), List()), nil
	}
	all, perElement, failed := c.scanned()
	if failed != nil {
		return *failed, nil
	}
	match, only, failed := parseScan(c.name, c.words[3:])
	if failed != nil {
		return *failed, nil
	}
	if match == nil && !only {
		return List(Text("0"), List(all...)), nil
	}
	glob := "*"
	if match != nil {
		glob = *match
	}
	found, pattern := List(), keys.Compile(glob)
	for element := range slices.Chunk(all, perElement) {
		fits, err := pattern.Match(element[0].Str)
		if err != nil {
			return Fail("ERR " + err.Error()), nil
		}
		if only {
			element = element[:1]
		}
		if fits {
			found.Elems = append(found.Elems, element...)
		}
	}
	return List(Text("0"), found), nil
}

// scanned is what a present key holds, of so many parts per element.
func (c call) scanned() (all []Reply, perElement int, failed *Reply) {
	switch c.name {
	case "hscan":
		h, failed := c.hash()
		h.Each(func(field, value string) { all = append(all, Text(field), Text(value)) })
		return all, 2, failed
	case "sscan":
		_, s, failed := c.members()
		return texts(Array, s.Members()).Elems, 1, failed
	default:
		_, z, failed := c.sorted()
		for _, m := range z.Members() {
			all = append(all, Text(m.Member), Text(scanScore(z, m.Score)))
		}
		return all, 2, failed
	}
}

// scanScore is a score as ZSCAN tells it: of what a Redis keeps in its compact form, whole numbers have all their digits.
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
func parseScan(name string, options []string) (match *string, onlyFields bool, failed *Reply) {
	for len(options) > 0 {
		word, taken := syntax.Lower(options[0]), 2
		switch {
		case word == "novalues" && name == "hscan":
			onlyFields, taken = true, 1
		case word == "novalues":
			failed = new(Fail("ERR NOVALUES option can only be used in HSCAN"))
		case len(options) < 2:
			failed = new(Fail(syntax.ErrSyntax))
		case word == "count":
			if n, ok := syntax.Int(options[1]); !ok {
				failed = new(Fail(syntax.ErrNotInteger))
			} else if n < 1 {
				failed = new(Fail(syntax.ErrSyntax))
			}
		case word == "match":
			match = &options[1]
		default:
			failed = new(Fail(syntax.ErrSyntax))
		}
		if failed != nil {
			return nil, false, failed
		}
		options = options[taken:]
	}
	return match, onlyFields, nil
}
