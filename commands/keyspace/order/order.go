// Package order puts texts into the order that Redis' SORT gives them.
package order

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"strings"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/keyspace/contents"
	"redlock-proxy/commands/script/lua/clib"
)

// By is what texts are ordered by.
type By struct {
	// Alpha: by their bytes; else they are numbers.
	Alpha bool
	// Whole is set where all bytes count; else, with Alpha, those up to a zero byte, as in a Redis with the C locale.
	Whole bool
	// Descending turns the order around.
	Descending bool
}

// ErrNotNumbers is what Redis says of texts that are to be ordered as numbers, and are none.
var ErrNotNumbers = errors.New("ERR One or more scores can't be converted into double")

// element is a text with what it is compared by.
type element struct {
	text  string
	shown string
	score float64
}

// Sort gives the texts in order; the given ones stay as they are.
func (by By) Sort(texts []string) ([]string, error) {
	elems := make([]element, len(texts))
	for i, text := range texts {
		elems[i] = element{text: text, shown: text}
		if by.Alpha && !by.Whole {
			elems[i].shown, _, _ = strings.Cut(text, "\x00")
		}
		if by.Alpha {
			continue
		}
		var ok bool
		if elems[i].score, ok = Score(text); !ok {
			return nil, ErrNotNumbers
		}
	}
	slices.SortStableFunc(elems, func(a, b element) int {
		compared := cmp.Or(cmp.Compare(a.score, b.score), strings.Compare(a.shown, b.shown))
		if by.Descending {
			return -compared
		}
		return compared
	})
	sorted := make([]string, len(elems))
	for i, e := range elems {
		sorted[i] = e.text
	}
	return sorted, nil
}

// smallest is the smallest number with all its digits: C calls what is closer to zero, and not zero, out of range. (Not where it is
// exact, which takes hexadecimal or 700 digits; here it is out of range, too.)
const smallest = 0x1p-1022

// Score reads a text as SORT does: blanks before the number are skipped, what stands behind a zero byte does not count, and nothing
// at all is 0.
func Score(text string) (score float64, ok bool) {
	text, _, _ = strings.Cut(text, "\x00")
	if text == "" {
		return 0, true
	}
	score, rest := clib.ParsePrefix(text)
	switch {
	case rest != "", math.IsNaN(score):
		return 0, false
	case math.IsInf(score, 0), score == 0:
		_, ok = contents.ParseDouble(strings.TrimLeft(text, " \t\n\v\f\r"))
		return score, ok
	}
	return score, math.Abs(score) >= smallest
}

// Window are the places, of n, from an offset on, as many as are counted; all where the count is below zero. The last one is not
// included.
func Window(n int, offset, count int64) (from, to int) {
	size := int64(n)
	first := min(max(offset, 0), size)
	if count < 0 {
		return int(first), n
	}
	return int(first), int(first + min(count, size-first))
}

// Key is true of a pattern of BY and GET that names a key for each text.
func Key(pattern string) bool {
	return strings.ContainsRune(string(syntax.CString([]byte(pattern), len(pattern))), '*')
}

// Itself is true of the pattern of GET that is the text itself.
func Itself(pattern string) bool {
	return string(syntax.CString([]byte(pattern), len(pattern))) == "#"
}
