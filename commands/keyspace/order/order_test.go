package order

import (
	"errors"
	"math"
	"slices"
	"testing"
)

func TestSort(t *testing.T) {
	for _, c := range []struct {
		by          By
		texts, want []string
	}{
		{By{}, []string{"10", "9", "-inf", "1.0", "1", "", " 7"}, []string{"-inf", "", "1", "1.0", " 7", "9", "10"}},
		{By{Descending: true}, []string{"1", "1.0", "2"}, []string{"2", "1.0", "1"}},
		{By{Alpha: true}, []string{"b\x00b", "b\x00a", "a", "B", ""}, []string{"", "B", "a", "b\x00b", "b\x00a"}},
		{By{Alpha: true, Descending: true}, []string{"b\x00b", "b\x00a", "a"}, []string{"b\x00b", "b\x00a", "a"}},
		{By{Alpha: true, Whole: true}, []string{"b\x00b", "b\x00a", "b"}, []string{"b", "b\x00a", "b\x00b"}},
		{By{}, nil, []string{}},
	} {
		given := slices.Clone(c.texts)
		if got, err := c.by.Sort(given); err != nil || !slices.Equal(got, c.want) || !slices.Equal(given, c.texts) {
			t.Errorf("%+v of %q: %q, %v, want %q; given %q", c.by, c.texts, got, err, c.want, given)
		}
	}
	if _, err := (By{}).Sort([]string{"1", "x"}); !errors.Is(err, ErrNotNumbers) {
		t.Error(err)
	}
}

func TestScore(t *testing.T) {
	for text, want := range map[string]float64{"": 0, "\x00x": 0, "1\x00x": 1, " \t1": 1, "0x10": 16, "-Infinity": math.Inf(-1), "2.2250738585072014e-308": smallest, "0e-999": 0} {
		if got, ok := Score(text); !ok || got != want {
			t.Errorf("%q is %v, %v", text, got, ok)
		}
	}
	for _, text := range []string{" ", "x", "1x", "1 ", "nan", "1e400", "1e-400", "1e-310", "0x", "-"} {
		if got, ok := Score(text); ok {
			t.Errorf("%q is %v", text, got)
		}
	}
}

func TestWindow(t *testing.T) {
	for _, c := range []struct {
		n             int
		offset, count int64
		from, to      int
	}{
		{5, 0, -1, 0, 5}, {5, 1, 2, 1, 3}, {5, -3, 2, 0, 2}, {5, 4, 9, 4, 5}, {5, 5, 1, 5, 5}, {5, math.MaxInt64, math.MaxInt64, 5, 5}, {5, math.MinInt64, math.MinInt64, 0, 5}, {5, 2, 0, 2, 2}, {0, 0, -1, 0, 0}, {0, 3, 3, 0, 0},
	} {
		if from, to := Window(c.n, c.offset, c.count); from != c.from || to != c.to {
			t.Errorf("of %d from %d, %d: %d to %d", c.n, c.offset, c.count, from, to)
		}
	}
}

func TestPatterns(t *testing.T) {
	for pattern, want := range map[string][2]bool{"": {}, "nosort": {}, "w_*": {true, false}, "*": {true, false}, "a\x00*": {}, "#": {false, true}, "#\x00*": {false, true}, "##": {}, "#*": {true, false}} {
		if got := [2]bool{Key(pattern), Itself(pattern)}; got != want {
			t.Errorf("%q: %v", pattern, got)
		}
	}
}
