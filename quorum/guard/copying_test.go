package guard

import (
	"fmt"
	"maps"
	"math/big"
	"math/bits"
	"slices"
	"strings"
	"testing"
	"time"

	"redlock-proxy/quorum/vote"

	"redlock-proxy/quorum/cell"
)

var (
	ids        = cell.NumberedSource(big.NewInt(1))
	attemptA   = ids.Attempt()
	attemptB   = ids.Attempt()
	now        = time.Now()
	b1, b2, b3 = ids.Ballot(1), ids.Ballot(2), ids.Ballot(3)
)

func plain(a cell.Attempt, left time.Duration) heldCell {
	return heldCell{cell.Cell{Form: cell.Plain, Attempt: a, Value: cell.Value{Present: true, Text: "t"}}, now.Add(left)}
}

func register(a cell.Attempt, promised, accepted cell.Ballot, text string) heldCell {
	v := cell.Value{Present: text != "", Text: text}
	return heldCell{cell.Cell{Form: cell.Register, Attempt: a, Promised: promised, Accepted: accepted, Value: v},
		now.Add(time.Minute)}
}

func block(a cell.Attempt) heldCell {
	return heldCell{cell.Cell{Form: cell.Blocking, Attempt: a}, now.Add(time.Minute)}
}

func foreign(text string) heldCell {
	return heldCell{Cell: cell.Cell{Form: cell.Foreign, Value: cell.Value{Present: true, Text: text}}}
}

func viewsWith(key string, all ...heldCell) []view {
	var views []view
	for _, h := range all {
		v := view{}
		if h.Form != cell.Absent {
			v[key] = h
		}
		views = append(views, v)
	}
	return views
}

// TestChoose tests choices from four or three sources of five masters.
func TestChoose(t *testing.T) {
	none := heldCell{}
	a, b := plain(attemptA, time.Minute), plain(attemptB, time.Minute)
	for _, c := range []struct {
		name   string
		cells  []heldCell
		before incarnation // in the previous pass
		want   choice
		text   string // the resulting cell
	}{
		{"nobody holds it", []heldCell{none, none, none, none}, "", chooseNothing, ""},
		{"a majority, twice", []heldCell{a, a, a, none}, a.incarnation(), chooseCopy, a.String()},
		{"a majority, once", []heldCell{a, a, a, none}, "", chooseLater, ""},
		{"a majority, another one before", []heldCell{a, a, a, none}, b.incarnation(), chooseLater, ""},
		{"two: granted with the master's own vote, or a leftover", []heldCell{a, a, none, none}, "", chooseBlock,
			block(attemptA).String()},
		{"two that had been three", []heldCell{a, a, none, none}, a.incarnation(), chooseBlock, block(attemptA).String()},
		{"one of four is a leftover", []heldCell{a, none, none, none}, "", chooseNothing, ""},
		{"one of three may be a lock", []heldCell{a, none, none}, "", chooseBlock, block(attemptA).String()},
		{"a holder and a blocking copy", []heldCell{a, block(attemptA), none, none}, "", chooseBlock,
			block(attemptA).String()},
		{"blocking copies are no holders", []heldCell{a, a, block(attemptA), none}, a.incarnation(), chooseBlock,
			block(attemptA).String()},
		{"two against one", []heldCell{a, a, b, none}, "", chooseBlock, block(attemptA).String()},
		{"two against two", []heldCell{a, a, b, b}, "", chooseLater, ""},
		{"one against one, of three", []heldCell{a, b, none}, "", chooseLater, ""},
		{"three against one", []heldCell{a, a, a, b}, a.incarnation(), chooseCopy, a.String()},
		{"promises are not copied", []heldCell{register(attemptA, b1, "", "t"), a, a, none}, a.incarnation(),
			chooseCopy, a.String()},
		{"the highest ballot", []heldCell{register(attemptA, b3, b2, "v"), register(attemptA, b2, b1, "u"), a, none},
			a.incarnation(),
			chooseCopy, register(attemptA, b2, b2, "v").String()},
		{"a value of others that two hold", []heldCell{foreign("v"), foreign("v"), none, none}, "", chooseBlock,
			block(foreign("v").Incarnation()).String()},
		{"a value of others, and a blocking copy",
			[]heldCell{foreign("v"), block(foreign("v").Incarnation()), none, none}, "", chooseBlock,
			block(foreign("v").Incarnation()).String()},
		{"a value of others that a majority holds", []heldCell{foreign("v"), foreign("v"), foreign("v"), none},
			foreign("v").incarnation(), chooseCopy, "v"},
		{"a value of others that one holds", []heldCell{foreign("v"), none, none, none}, "", chooseNothing, ""},
		{"two values of others", []heldCell{foreign("v"), foreign("v"), foreign("w"), foreign("w")}, "", chooseLater, ""},
		{"a value of others and an attempt", []heldCell{foreign("v"), foreign("v"), a, none}, "", chooseBlock,
			block(foreign("v").Incarnation()).String()},
	} {
		t.Run(c.name, func(t *testing.T) {
			views := viewsWith("k", c.cells...)
			first := incarnationsOf(views, "k")
			got, how := copyPolicy{Masters: 5, Sources: len(views)}.choose(views, "k", first, c.before)
			if how != c.want || got.String() != c.text {
				t.Errorf("got %d, %q, want %d, %q", how, got.String(), c.want, c.text)
			}
			if _, how := (copyPolicy{Masters: 5, Sources: len(views)}).choose(views, "k", nil,
				c.before); how != chooseNothing {
				t.Errorf("what came after the copying began was chosen: %d", how)
			}
		})
	}
}

// TestChosenIsWhatMayBeGranted tries all sets of holders of one attempt among all masters,
// including the master that lost its data, and all sets of sources. An attempt that a majority held
// before the loss is copied or blocked. A copied attempt had a majority without that master.
func TestChosenIsWhatMayBeGranted(t *testing.T) {
	for _, n := range []int{3, 4, 5, 6, 7} {
		for holders := range 1 << n {
			for sources := range 1 << (n - 1) { // the last master lost its data
				var views []view
				k := 0
				for i := range n - 1 {
					switch {
					case sources&(1<<i) == 0:
					case holders&(1<<i) == 0:
						views = append(views, view{})
					default:
						views = append(views, view{"k": plain(attemptA, time.Minute)})
						k++
					}
				}
				if len(views) < vote.ReadQuorum(n) {
					continue
				}
				granted := 0
				for i := range n {
					granted += holders >> i & 1
				}
				_, how := copyPolicy{Masters: n, Sources: len(views)}.choose(views, "k", incarnationsOf(views, "k"),
					plain(attemptA, 0).incarnation())
				forgot := holders>>(n-1)&1 == 1
				if forgot && granted >= vote.Majority(n) && how != chooseCopy && how != chooseBlock {
					t.Fatalf("n %d, holders %b, sources %b: a lock is not kept", n, holders, sources)
				}
				if how == chooseCopy && k < vote.Majority(n) {
					t.Fatalf("n %d, holders %b, sources %b: a leftover grows", n, holders, sources)
				}
			}
		}
	}
}

// TestPasses checks the steps of each pass, for several passes.
func TestPasses(t *testing.T) {
	a, b := plain(attemptA, time.Minute), plain(attemptB, time.Minute)
	none := heldCell{}
	longer := plain(attemptA, time.Hour)
	own := view{
		"kept": foreign("v"), "stale": plain(attemptB, time.Hour), "promised": register(attemptA, b3, "", "t"), "k": a,
	}
	first := viewsWith("k", a, a, a, none)
	first[0]["promised"], first[1]["promised"], first[2]["promised"] = a, a, a
	c := newCopy(copyPolicy{Masters: 5, Sources: 4}, false, -1, own, first)
	later := func(views []view) []view {
		for _, v := range views[:3] {
			v["promised"] = a
		}
		return views
	}
	own = maps.Clone(own)
	for n, pass := range []struct {
		views   []view
		want    string
		settled bool
	}{
		{later(viewsWith("k", a, a, a, none)), "copy k plain, put promised plain", false},
		{later(viewsWith("k", a, a, a, none)), "drop stale plain", true},
		{later(viewsWith("k", longer, a, a, none)), "put k plain", true},
		{later(viewsWith("k", a, a, none, none)), "put k blocking", false},
		{later(viewsWith("k", b, b, b, none)), "drop k blocking", true},
	} {
		steps, settled := c.Pass(own, pass.views)
		if got := describe(steps); got != pass.want || settled != pass.settled {
			t.Errorf("pass %d: got %q, settled %v, want %q, %v", n, got, settled, pass.want, pass.settled)
		}
		apply(own, steps)
	}
}

// TestFailedStepsAreDoneAgain checks that a step that may or may not have been done is repeated in
// the next pass if it was not; before that, no key is settled. The master had a lock that has
// expired, had made a promise, and gets a lock that expires during the copy.
func TestFailedStepsAreDoneAgain(t *testing.T) {
	a := plain(attemptA, time.Minute)
	for _, arrived := range []bool{false, true} {
		own := view{"stale": plain(attemptB, time.Hour), "promised": register(attemptA, b3, "", "t")}
		views := func(ended bool) []view {
			all := viewsWith("k", a, a, a, a)
			for _, v := range all {
				v["promised"], v["ends"] = a, a
				if ended {
					delete(v, "ends")
				}
			}
			return all
		}
		c := newCopy(copyPolicy{Masters: 5, Sources: 4}, false, -1, own, views(false))
		own = maps.Clone(own)
		lost := func(steps []copyStep) {
			c.Failed(steps)
			if arrived {
				apply(own, steps)
			}
		}
		const all = "put ends plain, put k plain, put promised plain"
		for n, pass := range []struct {
			ended, fails  bool
			want, arrived string // if no failed step arrived, and if all did
			settled       [2]bool
		}{
			{false, true, all, all, [2]bool{false, false}},
			{false, true, all + ", drop stale plain", "drop stale plain", [2]bool{false, true}},
			{false, false, all + ", drop stale plain", "", [2]bool{false, true}},
			{true, true, "drop ends plain", "drop ends plain", [2]bool{true, true}},
			{true, false, "drop ends plain", "", [2]bool{true, true}},
			{true, false, "", "", [2]bool{true, true}},
		} {
			steps, settled := c.Pass(own, views(pass.ended))
			want, wantSettled := pass.want, pass.settled[0]
			if arrived {
				want, wantSettled = pass.arrived, pass.settled[1]
			}
			if got := describe(steps); got != want || settled != wantSettled {
				t.Errorf("arrived %v, pass %d: got %q, settled %v, want %q, %v", arrived, n, got, settled, want,
					wantSettled)
			}
			if pass.fails {
				lost(steps)
			} else {
				apply(own, steps)
			}
		}
	}
}

// describe returns steps in a few words, sorted by key.
func describe(steps []copyStep) string {
	form := map[cell.Form]string{cell.Plain: "plain", cell.Blocking: "blocking", cell.Register: "register"}
	var all []string
	for _, s := range slices.SortedFunc(slices.Values(steps),
		func(x, y copyStep) int { return strings.Compare(x.Key, y.Key) }) {
		all = append(all, fmt.Sprint(s.Act, " ", s.Key, " ", form[s.Held.Form]))
	}
	return strings.Join(all, ", ")
}

func apply(own view, steps []copyStep) {
	for _, s := range steps {
		if s.Act == actDrop {
			delete(own, s.Key)
		} else {
			own[s.Key] = s.Held
		}
	}
}

// TestChangesOnTheWay changes keys on the master and the sources during the copy. A change within
// an incarnation keeps no key open, and cells created since the copy began stay.
func TestChangesOnTheWay(t *testing.T) {
	a, b, none := plain(attemptA, time.Minute), plain(attemptB, time.Minute), heldCell{}
	changed := func(n uint64) heldCell { return register(attemptA, ids.Ballot(n), ids.Ballot(n), fmt.Sprint("v", n)) }
	for _, c := range []struct {
		name      string
		first     [3]heldCell // of the master itself, and of both sources
		pass      [][3]heldCell
		want      []string
		unsettled int // passes at the beginning
	}{
		{"a value is changed all the time, here too", [3]heldCell{none, changed(1), changed(1)},
			[][3]heldCell{{none, changed(2), changed(2)}, {changed(3), changed(4), changed(3)}},
			[]string{"put k register", ""}, 1},
		{"a value was changed, and the master missed it", [3]heldCell{none, changed(1), changed(1)},
			[][3]heldCell{{none, changed(1), changed(1)}, {changed(1), changed(2), changed(2)}},
			[]string{"put k register", "put k register"}, 1},
		{"a lock was released, first here", [3]heldCell{none, a, a},
			[][3]heldCell{{none, a, a}, {none, a, a}}, []string{"put k plain", ""}, 1},
		{"a lock was released", [3]heldCell{none, a, a},
			[][3]heldCell{{none, a, a}, {a, none, none}}, []string{"put k plain", "drop k plain"}, 1},
		{"another lock was granted since", [3]heldCell{none, a, a},
			[][3]heldCell{{none, none, none}, {b, b, b}}, []string{"", ""}, 0},
		{"a lock came here first", [3]heldCell{a, none, none},
			[][3]heldCell{{a, a, none}, {a, a, a}}, []string{"", ""}, 1},
		{"a lock that only the master has", [3]heldCell{a, none, none},
			[][3]heldCell{{a, none, none}, {a, none, none}}, []string{"", "drop k plain"}, 1},
		{"a promise that only the master has", [3]heldCell{register(attemptA, b2, b1, "v"), none, none},
			[][3]heldCell{{register(attemptA, b2, b1, "v"), changed(1), none},
				{register(attemptA, b2, b1, "v"), changed(1), changed(1)}}, []string{"", "drop k register"}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			views := viewsWith("k", c.first[:]...)
			k := newCopy(copyPolicy{Masters: 3, Sources: 2}, false, -1, views[0], views[1:])
			for n, now := range c.pass {
				views := viewsWith("k", now[:]...)
				steps, settled := k.Pass(views[0], views[1:])
				if got := describe(steps); got != c.want[n] || settled != (n >= c.unsettled) {
					t.Errorf("pass %d: got %q, settled %v, want %q", n, got, settled, c.want[n])
				}
			}
		})
	}
}

// TestNothingStaysOpenInTheEnd checks keys for which either of two attempts may have been granted.
// The master gets a copy that stands for both, until the longer one expires. So does a master that
// copies later, when such a copy may complete a majority.
func TestNothingStaysOpenInTheEnd(t *testing.T) {
	a, b, none := plain(attemptA, time.Minute), plain(attemptB, time.Hour), heldCell{}
	undecided := blocking(incarnation(cell.Undecided), b)
	for _, c := range []struct {
		name  string
		cells []heldCell
		want  heldCell
	}{
		{"two against two", []heldCell{a, a, b, b}, undecided},
		{"one against one, with two undecided", []heldCell{a, undecided, undecided, b}, undecided},
		{"two of four are undecided", []heldCell{none, undecided, undecided, none}, undecided},
		{"one of four is undecided", []heldCell{none, undecided, none, none}, heldCell{}},
		{"one holds it, one is undecided", []heldCell{a, undecided, none, none}, blocking(a.incarnation(), undecided)},
		{"three hold it, one is undecided", []heldCell{a, a, a, undecided}, a},
	} {
		t.Run(c.name, func(t *testing.T) {
			views := viewsWith("k", c.cells...)
			if got, _ := blockingPolicy(5, len(views)).choose(views, "k", incarnationsOf(views, "k"),
				a.incarnation()); got.String() != c.want.String() || got.Ends != c.want.Ends {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func blockingPolicy(masters, sources int) copyPolicy {
	return copyPolicy{Masters: masters, Sources: sources, Blocks: true}
}

// TestGrantedIsNeverGivenUp tries all distributions of attempts a and b on up to five masters in
// which b was granted. One master after another loses its data, and the locks of a either stay or
// are removed meanwhile. Each master that granted b then refuses other attempts.
func TestGrantedIsNeverGivenUp(t *testing.T) {
	a, b := plain(attemptA, time.Minute), plain(attemptB, time.Minute)
	for n := 3; n <= 5; n++ {
		for spread, all := 0, pow(3, n); spread < all; spread++ {
			cells, granted := make([]heldCell, n), 0
			for m := range n {
				switch spread / pow(3, m) % 3 {
				case 1:
					cells[m] = a
				case 2:
					cells[m], granted = b, granted|1<<m
				}
			}
			if bits.OnesCount(uint(granted)) >= vote.Majority(n) {
				for _, removed := range []bool{false, true} {
					forget(t, slices.Clone(cells), granted, removed, 2)
				}
			}
		}
	}
}

func pow(base, n int) int {
	p := 1
	for range n {
		p *= base
	}
	return p
}

// forget lets each master lose its data, and catch up from any sufficient set of other masters. It
// then repeats that with another master, until it has done so the given number of times.
func forget(t *testing.T, cells []heldCell, granted int, removed bool, times int) {
	n := len(cells)
	for target := range n {
		for sources := range 1 << n {
			if sources>>target&1 == 1 || bits.OnesCount(uint(sources)) < vote.ReadQuorum(n) {
				continue
			}
			var seen []heldCell
			for m := range n {
				if sources>>m&1 == 1 {
					seen = append(seen, cells[m])
				}
			}
			views := viewsWith("k", seen...)
			policy := blockingPolicy(n, len(views))
			got, _ := policy.choose(views, "k", incarnationsOf(views, "k"), policy.majorityOf(views, "k"))
			if granted>>target&1 == 1 && !got.IsUndecided() && got.Attempt != attemptB {
				t.Fatalf("%d masters hold %v, %b granted it: number %d catches up from %b, and gets %v", n, cells,
					granted, target, sources, got)
			}
			if times == 1 {
				continue
			}
			next := slices.Clone(cells)
			next[target] = got
			for m, h := range next {
				if removed && h.Attempt == attemptA {
					next[m] = heldCell{}
				}
			}
			forget(t, next, granted, removed, times-1)
		}
	}
}

// TestOpen checks that two attempts that may both have been granted keep a copy open, and that Open
// returns the key, until one of the attempts is gone.
func TestOpen(t *testing.T) {
	a, b, none := plain(attemptA, time.Minute), plain(attemptB, time.Minute), heldCell{}
	both := viewsWith("k", a, a, b, b)
	c := newCopy(copyPolicy{Masters: 5, Sources: 4}, false, -1, view{}, both)
	if _, settled := c.Pass(view{}, both); settled || !slices.Equal(c.Open(), []string{"k"}) {
		t.Errorf("settled %v, open %q", settled, c.Open())
	}
	one := viewsWith("k", a, a, none, none)
	c.Pass(view{}, one)
	if _, settled := c.Pass(view{}, one); !settled || len(c.Open()) > 0 {
		t.Errorf("settled %v, open %q", settled, c.Open())
	}
}
