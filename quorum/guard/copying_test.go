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
	ids                       = cell.NumberedSource(big.NewInt(1))
	attemptA                  = ids.Attempt()
	attemptB                  = ids.Attempt()
	testStart                 = time.Now()
	ballot1, ballot2, ballot3 = ids.Ballot(1), ids.Ballot(2), ids.Ballot(3)
)

func plainCell(a cell.Attempt, timeLeft time.Duration) storedCell {
	return storedCell{cell.Cell{Form: cell.Plain, Attempt: a, Value: cell.Value{Present: true, Text: "t"}}, testStart.Add(timeLeft)}
}

func registerCell(a cell.Attempt, promised, accepted cell.Ballot, text string) storedCell {
	v := cell.Value{Present: text != "", Text: text}
	return storedCell{cell.Cell{Form: cell.Register, Attempt: a, Promised: promised, Accepted: accepted, Value: v},
		testStart.Add(time.Minute)}
}

func blockingCell(a cell.Attempt) storedCell {
	return storedCell{cell.Cell{Form: cell.Blocking, Attempt: a}, testStart.Add(time.Minute)}
}

func foreignCell(text string) storedCell {
	return storedCell{Cell: cell.Cell{Form: cell.Foreign, Value: cell.Value{Present: true, Text: text}}}
}

func viewsWith(key string, cells ...storedCell) []view {
	var views []view
	for _, h := range cells {
		v := view{}
		if h.Form != cell.Absent {
			v[key] = h
		}
		views = append(views, v)
	}
	return views
}

// TestChoose checks the choices from four or three sources of five masters.
func TestChoose(t *testing.T) {
	none := storedCell{}
	a, b := plainCell(attemptA, time.Minute), plainCell(attemptB, time.Minute)
	for _, c := range []struct {
		name             string
		cells            []storedCell
		previousMajority cell.Attempt // in the previous pass
		want             choice
		text             string // the resulting cell
	}{
		{"no master holds it", []storedCell{none, none, none, none}, "", chooseNothing, ""},
		{"a majority, twice", []storedCell{a, a, a, none}, a.Incarnation(), chooseCopy, a.String()},
		{"a majority, once", []storedCell{a, a, a, none}, "", chooseLater, ""},
		{"a majority, another one before", []storedCell{a, a, a, none}, b.Incarnation(), chooseLater, ""},
		{"two: granted with the master's own vote, or a leftover", []storedCell{a, a, none, none}, "", chooseBlock,
			blockingCell(attemptA).String()},
		{"two that had been three", []storedCell{a, a, none, none}, a.Incarnation(), chooseBlock, blockingCell(attemptA).String()},
		{"one of four is a leftover", []storedCell{a, none, none, none}, "", chooseNothing, ""},
		{"one of three may be a lock", []storedCell{a, none, none}, "", chooseBlock, blockingCell(attemptA).String()},
		{"a holder and a blocking copy", []storedCell{a, blockingCell(attemptA), none, none}, "", chooseBlock,
			blockingCell(attemptA).String()},
		{"blocking copies are no holders", []storedCell{a, a, blockingCell(attemptA), none}, a.Incarnation(), chooseBlock,
			blockingCell(attemptA).String()},
		{"two against one", []storedCell{a, a, b, none}, "", chooseBlock, blockingCell(attemptA).String()},
		{"two against two", []storedCell{a, a, b, b}, "", chooseLater, ""},
		{"one against one, of three", []storedCell{a, b, none}, "", chooseLater, ""},
		{"three against one", []storedCell{a, a, a, b}, a.Incarnation(), chooseCopy, a.String()},
		{"promises are not copied", []storedCell{registerCell(attemptA, ballot1, "", "t"), a, a, none}, a.Incarnation(),
			chooseCopy, a.String()},
		{"the highest ballot", []storedCell{registerCell(attemptA, ballot3, ballot2, "v"), registerCell(attemptA, ballot2, ballot1, "u"), a, none},
			a.Incarnation(),
			chooseCopy, registerCell(attemptA, ballot2, ballot2, "v").String()},
		{"a value of others that two hold", []storedCell{foreignCell("v"), foreignCell("v"), none, none}, "", chooseBlock,
			blockingCell(foreignCell("v").Incarnation()).String()},
		{"a value of others, and a blocking copy",
			[]storedCell{foreignCell("v"), blockingCell(foreignCell("v").Incarnation()), none, none}, "", chooseBlock,
			blockingCell(foreignCell("v").Incarnation()).String()},
		{"a value of others that a majority holds", []storedCell{foreignCell("v"), foreignCell("v"), foreignCell("v"), none},
			foreignCell("v").Incarnation(), chooseCopy, "v"},
		{"a value of others that one holds", []storedCell{foreignCell("v"), none, none, none}, "", chooseNothing, ""},
		{"two values of others", []storedCell{foreignCell("v"), foreignCell("v"), foreignCell("w"), foreignCell("w")}, "", chooseLater, ""},
		{"a value of others and an attempt", []storedCell{foreignCell("v"), foreignCell("v"), a, none}, "", chooseBlock,
			blockingCell(foreignCell("v").Incarnation()).String()},
	} {
		t.Run(c.name, func(t *testing.T) {
			views := viewsWith("k", c.cells...)
			first := incarnationsOf(views, "k")
			got, kind := copyPolicy{Masters: 5, Sources: len(views)}.choose(views, "k", first, c.previousMajority)
			if kind != c.want || got.String() != c.text {
				t.Errorf("got %d, %q, want %d, %q", kind, got.String(), c.want, c.text)
			}
			if _, kind := (copyPolicy{Masters: 5, Sources: len(views)}).choose(views, "k", nil,
				c.previousMajority); kind != chooseNothing {
				t.Errorf("chose a cell that was created after the copying began: %d", kind)
			}
		})
	}
}

// TestChooseKeepsPossibleGrants tries all sets of holders of one attempt among all masters,
// including the master that lost its data, and all sets of sources. An attempt that this master and
// a majority held before the loss must be copied or blocked. A copied attempt must be on a majority
// without this master.
func TestChooseKeepsPossibleGrants(t *testing.T) {
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
						views = append(views, view{"k": plainCell(attemptA, time.Minute)})
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
				_, kind := copyPolicy{Masters: n, Sources: len(views)}.choose(views, "k", incarnationsOf(views, "k"),
					plainCell(attemptA, 0).Incarnation())
				lostHolder := holders>>(n-1)&1 == 1
				if lostHolder && granted >= vote.Majority(n) && kind != chooseCopy && kind != chooseBlock {
					t.Fatalf("n %d, holders %b, sources %b: a lock is not kept", n, holders, sources)
				}
				if kind == chooseCopy && k < vote.Majority(n) {
					t.Fatalf("n %d, holders %b, sources %b: a leftover grows", n, holders, sources)
				}
			}
		}
	}
}

// TestBlockingCopyExpiresWithPossibleMajority tries all views of one attempt on up to six other
// masters: absent, held or blocked until an early or a late time, or not read. A blocking copy
// expires when too few masters hold the attempt for a majority, even with the master itself and
// those that were not read. It lasts longer by the time of a ballot, by which a cell may expire
// early, if another cell does. So it expires neither before a lock that was granted with its vote,
// nor much later than a copy that would begin then.
func TestBlockingCopyExpiresWithPossibleMajority(t *testing.T) {
	const early, late = 3 * time.Second, time.Minute
	blockedUntil := func(timeLeft time.Duration) storedCell {
		return storedCell{blockingCell(attemptA).Cell, testStart.Add(timeLeft)}
	}
	kinds := []storedCell{
		{}, plainCell(attemptA, early), plainCell(attemptA, late), blockedUntil(early), blockedUntil(late),
	}
	const unreadKind = 5
	for _, n := range []int{3, 4, 5, 6, 7} {
		for all, count := 0, power(6, n-1); all < count; all++ {
			var cells []storedCell
			full, lasts := 0, map[time.Duration]int{} // the number of masters that may hold it until then
			hasLate := false
			for m := range n - 1 {
				kind := all / power(6, m) % 6
				if kind == unreadKind {
					lasts[early], lasts[late] = lasts[early]+1, lasts[late]+1
					continue
				}
				cells = append(cells, kinds[kind])
				if kind == 1 || kind == 2 {
					full++
				}
				if kind != 0 {
					lasts[early]++
				}
				if kind == 2 || kind == 4 {
					lasts[late]++
					hasLate = true
				}
			}
			q := vote.Majority(n)
			if len(cells) < vote.ReadQuorum(n) || full >= q {
				continue
			}
			want := time.Duration(0)
			for _, end := range []time.Duration{early, late} {
				if lasts[end]+1 >= q {
					want = end
				}
			}
			if want == early && hasLate {
				want += vote.RoundLimit
			}
			views := viewsWith("k", cells...)
			got, kind := copyPolicy{Masters: n, Sources: len(views)}.choose(views, "k", incarnationsOf(views, "k"), "")
			if (kind == chooseBlock) != (want != 0) || want != 0 && got.Expiry != testStart.Add(want) {
				t.Fatalf("n %d, %v: got %d, %v, want a blocking copy for %v", n, cells, kind, got.Expiry.Sub(testStart), want)
			}
		}
	}
}

// TestCopyOutlastsEarlyCell checks that a copy of a value lasts longer than the cells of this value,
// by the time of a ballot, if cells of an earlier value do.
func TestCopyOutlastsEarlyCell(t *testing.T) {
	newer := registerCell(attemptA, ballot2, ballot2, "t")
	newer.Value = newer.Value.WithChange(newer.Value, ids.Change())
	for _, test := range []struct{ earlierLeft, want time.Duration }{
		{time.Minute - time.Second, time.Minute},
		{time.Minute + vote.RoundLimit/2, time.Minute + vote.RoundLimit/2},
		{time.Hour, time.Minute + vote.RoundLimit},
	} {
		earlier := plainCell(attemptA, test.earlierLeft)
		got := newestCell([]storedCell{earlier, newer, earlier})
		if got.Value.Text != "t" || got.Accepted != ballot2 || got.Expiry != testStart.Add(test.want) {
			t.Errorf("earlier value for %v: got %v for %v, want %v", test.earlierLeft, got, got.Expiry.Sub(testStart), test.want)
		}
	}
}

// TestCopyPasses checks the steps of each pass, for several passes.
func TestCopyPasses(t *testing.T) {
	a, b := plainCell(attemptA, time.Minute), plainCell(attemptB, time.Minute)
	none := storedCell{}
	longer := plainCell(attemptA, time.Hour)
	ownCells := view{
		"kept": foreignCell("v"), "stale": plainCell(attemptB, time.Hour), "promised": registerCell(attemptA, ballot3, "", "t"), "k": a,
	}
	first := viewsWith("k", a, a, a, none)
	first[0]["promised"], first[1]["promised"], first[2]["promised"] = a, a, a
	c := newKeysCopy(copyPolicy{Masters: 5, Sources: 4}, false, -1, ownCells, first)
	withPromised := func(views []view) []view {
		for _, v := range views[:3] {
			v["promised"] = a
		}
		return views
	}
	ownCells = maps.Clone(ownCells)
	for n, pass := range []struct {
		views   []view
		want    string
		settled bool
	}{
		{withPromised(viewsWith("k", a, a, a, none)), "copy k plain, put promised plain", false},
		{withPromised(viewsWith("k", a, a, a, none)), "drop stale plain", true},
		{withPromised(viewsWith("k", longer, a, a, none)), "put k plain", true},
		{withPromised(viewsWith("k", a, a, none, none)), "put k blocking", false},
		{withPromised(viewsWith("k", b, b, b, none)), "drop k blocking", true},
	} {
		steps, settled := c.RunPass(ownCells, pass.views)
		if got := describeSteps(steps); got != pass.want || settled != pass.settled {
			t.Errorf("pass %d: got %q, settled %v, want %q, %v", n, got, settled, pass.want, pass.settled)
		}
		applySteps(ownCells, steps)
	}
}

// TestFailedStepsAreRepeated checks that the next pass repeats a failed step that had no effect,
// and settles no key before that. The master holds a promise, and a lock that no source holds. The
// sources hold a lock that expires during the copy.
func TestFailedStepsAreRepeated(t *testing.T) {
	a := plainCell(attemptA, time.Minute)
	for _, arrived := range []bool{false, true} {
		ownCells := view{"stale": plainCell(attemptB, time.Hour), "promised": registerCell(attemptA, ballot3, "", "t")}
		views := func(expired bool) []view {
			allPuts := viewsWith("k", a, a, a, a)
			for _, v := range allPuts {
				v["promised"], v["ends"] = a, a
				if expired {
					delete(v, "ends")
				}
			}
			return allPuts
		}
		c := newKeysCopy(copyPolicy{Masters: 5, Sources: 4}, false, -1, ownCells, views(false))
		ownCells = maps.Clone(ownCells)
		failSteps := func(steps []copyStep) {
			c.RecordFailure(steps)
			if arrived {
				applySteps(ownCells, steps)
			}
		}
		const allPuts = "put ends plain, put k plain, put promised plain"
		for n, pass := range []struct {
			expired, fails bool
			want, arrived  string // the steps if no failed step took effect, and if all did
			settled        [2]bool
		}{
			{false, true, allPuts, allPuts, [2]bool{false, false}},
			{false, true, allPuts + ", drop stale plain", "drop stale plain", [2]bool{false, true}},
			{false, false, allPuts + ", drop stale plain", "", [2]bool{false, true}},
			{true, true, "drop ends plain", "drop ends plain", [2]bool{true, true}},
			{true, false, "drop ends plain", "", [2]bool{true, true}},
			{true, false, "", "", [2]bool{true, true}},
		} {
			steps, settled := c.RunPass(ownCells, views(pass.expired))
			want, wantSettled := pass.want, pass.settled[0]
			if arrived {
				want, wantSettled = pass.arrived, pass.settled[1]
			}
			if got := describeSteps(steps); got != want || settled != wantSettled {
				t.Errorf("arrived %v, pass %d: got %q, settled %v, want %q, %v", arrived, n, got, settled, want,
					wantSettled)
			}
			if pass.fails {
				failSteps(steps)
			} else {
				applySteps(ownCells, steps)
			}
		}
	}
}

// describeSteps returns steps in a few words, sorted by key.
func describeSteps(steps []copyStep) string {
	formNames := map[cell.Form]string{cell.Plain: "plain", cell.Blocking: "blocking", cell.Register: "register"}
	var texts []string
	for _, s := range slices.SortedFunc(slices.Values(steps),
		func(x, y copyStep) int { return strings.Compare(x.Key, y.Key) }) {
		texts = append(texts, fmt.Sprint(s.Act, " ", s.Key, " ", formNames[s.Cell.Form]))
	}
	return strings.Join(texts, ", ")
}

func applySteps(cells view, steps []copyStep) {
	for _, s := range steps {
		if s.Act == actDrop {
			delete(cells, s.Key)
		} else {
			cells[s.Key] = s.Cell
		}
	}
}

// TestChangesDuringCopy changes keys on the master and the sources during the copy. A change within
// an incarnation does not keep a key open, and cells created since the copy began stay.
func TestChangesDuringCopy(t *testing.T) {
	a, b, none := plainCell(attemptA, time.Minute), plainCell(attemptB, time.Minute), storedCell{}
	registerAt := func(n uint64) storedCell {
		return registerCell(attemptA, ids.Ballot(n), ids.Ballot(n), fmt.Sprint("v", n))
	}
	for _, c := range []struct {
		name      string
		first     [3]storedCell // of the master itself, and of both sources
		pass      [][3]storedCell
		want      []string
		unsettled int // number of first passes that do not settle the key
	}{
		{"a value is changed all the time, here too", [3]storedCell{none, registerAt(1), registerAt(1)},
			[][3]storedCell{{none, registerAt(2), registerAt(2)}, {registerAt(3), registerAt(4), registerAt(3)}},
			[]string{"put k register", ""}, 1},
		{"a value was changed, and the master missed it", [3]storedCell{none, registerAt(1), registerAt(1)},
			[][3]storedCell{{none, registerAt(1), registerAt(1)}, {registerAt(1), registerAt(2), registerAt(2)}},
			[]string{"put k register", "put k register"}, 1},
		{"a lock was released, first here", [3]storedCell{none, a, a},
			[][3]storedCell{{none, a, a}, {none, a, a}}, []string{"put k plain", ""}, 1},
		{"a lock was released", [3]storedCell{none, a, a},
			[][3]storedCell{{none, a, a}, {a, none, none}}, []string{"put k plain", "drop k plain"}, 1},
		{"another lock was granted since", [3]storedCell{none, a, a},
			[][3]storedCell{{none, none, none}, {b, b, b}}, []string{"", ""}, 0},
		{"a lock came here first", [3]storedCell{a, none, none},
			[][3]storedCell{{a, a, none}, {a, a, a}}, []string{"", ""}, 1},
		{"a lock that only the master has", [3]storedCell{a, none, none},
			[][3]storedCell{{a, none, none}, {a, none, none}}, []string{"", "drop k plain"}, 1},
		{"a promise that only the master has", [3]storedCell{registerCell(attemptA, ballot2, ballot1, "v"), none, none},
			[][3]storedCell{{registerCell(attemptA, ballot2, ballot1, "v"), registerAt(1), none},
				{registerCell(attemptA, ballot2, ballot1, "v"), registerAt(1), registerAt(1)}}, []string{"", "drop k register"}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			views := viewsWith("k", c.first[:]...)
			k := newKeysCopy(copyPolicy{Masters: 3, Sources: 2}, false, -1, views[0], views[1:])
			for n, cells := range c.pass {
				views := viewsWith("k", cells[:]...)
				steps, settled := k.RunPass(views[0], views[1:])
				if got := describeSteps(steps); got != c.want[n] || settled != (n >= c.unsettled) {
					t.Errorf("pass %d: got %q, settled %v, want %q", n, got, settled, c.want[n])
				}
			}
		})
	}
}

// TestUndecidedKeysAreBlocked checks keys for which either of two attempts may have been granted.
// The master gets an undecided copy, which stands for both attempts until the later one would
// expire. A master that copies later gets an undecided copy, too, if such copies may complete a
// majority.
func TestUndecidedKeysAreBlocked(t *testing.T) {
	a, b, none := plainCell(attemptA, time.Minute), plainCell(attemptB, time.Hour), storedCell{}
	undecided := blockingCopy(cell.UndecidedAttempt, b.Expiry)
	for _, c := range []struct {
		name  string
		cells []storedCell
		want  storedCell
	}{
		{"two against two", []storedCell{a, a, b, b}, undecided},
		{"one against one, with two undecided", []storedCell{a, undecided, undecided, b}, undecided},
		{"two of four are undecided", []storedCell{none, undecided, undecided, none}, undecided},
		{"one of four is undecided", []storedCell{none, undecided, none, none}, storedCell{}},
		{"one holds it, one is undecided", []storedCell{a, undecided, none, none}, blockingCopy(a.Incarnation(), a.Expiry.Add(vote.RoundLimit))},
		{"three hold it, one is undecided", []storedCell{a, a, a, undecided}, a},
	} {
		t.Run(c.name, func(t *testing.T) {
			views := viewsWith("k", c.cells...)
			if got, _ := blockingPolicy(5, len(views)).choose(views, "k", incarnationsOf(views, "k"),
				a.Incarnation()); got.String() != c.want.String() || got.Expiry != c.want.Expiry {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func blockingPolicy(masters, sources int) copyPolicy {
	return copyPolicy{Masters: masters, Sources: sources, BlockUndecided: true}
}

// TestGrantedLockIsKept tries all distributions of attempts a and b on up to five masters in
// which b was granted. One master after another loses its data, and the locks of a either stay or
// are removed meanwhile. Each master that granted b then refuses other attempts.
func TestGrantedLockIsKept(t *testing.T) {
	a, b := plainCell(attemptA, time.Minute), plainCell(attemptB, time.Minute)
	for n := 3; n <= 5; n++ {
		for distribution, count := 0, power(3, n); distribution < count; distribution++ {
			cells, granted := make([]storedCell, n), 0
			for m := range n {
				switch distribution / power(3, m) % 3 {
				case 1:
					cells[m] = a
				case 2:
					cells[m], granted = b, granted|1<<m
				}
			}
			if bits.OnesCount(uint(granted)) >= vote.Majority(n) {
				for _, removed := range []bool{false, true} {
					checkDataLosses(t, slices.Clone(cells), granted, removed, 2)
				}
			}
		}
	}
}

func power(base, n int) int {
	p := 1
	for range n {
		p *= base
	}
	return p
}

// checkDataLosses lets each master lose its data, and catch up from each read quorum of other
// masters. After each catch-up, it continues with further losses, up to the given number.
func checkDataLosses(t *testing.T, cells []storedCell, granted int, removed bool, times int) {
	n := len(cells)
	for target := range n {
		for sources := range 1 << n {
			if sources>>target&1 == 1 || bits.OnesCount(uint(sources)) < vote.ReadQuorum(n) {
				continue
			}
			var sourceCells []storedCell
			for m := range n {
				if sources>>m&1 == 1 {
					sourceCells = append(sourceCells, cells[m])
				}
			}
			views := viewsWith("k", sourceCells...)
			policy := blockingPolicy(n, len(views))
			got, _ := policy.choose(views, "k", incarnationsOf(views, "k"), policy.majorityIncarnation(views, "k"))
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
					next[m] = storedCell{}
				}
			}
			checkDataLosses(t, next, granted, removed, times-1)
		}
	}
}

// TestOpenKeys checks a key on which either of two attempts may have been granted. The copy stays
// open, and openKeys holds the key, while both attempts exist.
func TestOpenKeys(t *testing.T) {
	a, b, none := plainCell(attemptA, time.Minute), plainCell(attemptB, time.Minute), storedCell{}
	both := viewsWith("k", a, a, b, b)
	c := newKeysCopy(copyPolicy{Masters: 5, Sources: 4}, false, -1, view{}, both)
	if _, settled := c.RunPass(view{}, both); settled || !slices.Equal(c.openKeys, []string{"k"}) {
		t.Errorf("settled %v, open %q", settled, c.openKeys)
	}
	single := viewsWith("k", a, a, none, none)
	c.RunPass(view{}, single)
	if _, settled := c.RunPass(view{}, single); !settled || len(c.openKeys) > 0 {
		t.Errorf("settled %v, open %q", settled, c.openKeys)
	}
}
