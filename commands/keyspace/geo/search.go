package geo

import (
	"cmp"
	"slices"
	"sort"

	"redlock-proxy/commands/keyspace/contents"
	"redlock-proxy/commands/script/lua/clib"
)

// Found is a member that a search has found.
type Found struct {
	contents.Scored
	Position Position
	// Distance is that from the center, in the unit of the search.
	Distance float64
}

// Hash is the member's score as an integer.
func (f Found) Hash() int64 { return clib.Truncate(f.Score) }

// In are the members of a sorted set that a search finds.
func (s *Search) In(z *contents.SortedSet) []Found {
	found := s.all(z.Members())
	wanted := len(found)
	if s.count > 0 {
		wanted = int(min(s.count, int64(wanted)))
	}
	order := s.order
	if order == unsorted && s.count > 0 && !s.any {
		order = nearest
	}
	if order != unsorted {
		inOrder(found, wanted, func(a, b Found) int { return order.compare(a.Distance, b.Distance) })
	}
	found = found[:wanted]
	for i := range found {
		found[i].Distance /= s.area.unit
	}
	return found
}

// all are the members in the area, with their distances in meters: where any will do, no more than are wanted.
func (s *Search) all(members []contents.Scored) (found []Found) {
	cells, last := s.area.cover(), 0
	for i, c := range cells {
		if c.isNone() || last > 0 && c == cells[last] { // of a large area several are the same
			continue
		}
		if s.isEnough(len(found)) {
			break
		}
		last = i
		from, to := c.scores()
		first := sort.Search(len(members), func(i int) bool { return members[i].Score >= from })
		for _, m := range members[first:] {
			if m.Score >= to {
				break
			}
			position := Of(m.Score)
			if distance, ok := s.area.holds(position); ok {
				found = append(found, Found{m, position, distance})
			}
			if s.isEnough(len(found)) {
				break
			}
		}
	}
	return found
}

func (s *Search) isEnough(found int) bool {
	return s.any && found > 0 && int64(found) >= s.count
}

// order is in which order members are wanted.
type order int

const (
	unsorted order = 0
	nearest  order = 1
	farthest order = -1
)

// compare is in which order two distances come.
func (o order) compare(a, b float64) int {
	result := -1
	switch {
	case a > b:
		result = 1
	case a == b:
		return 0
	}
	return result * int(o)
}

// inOrder has the first so many elements be in order. Which of equal ones come first is as in Redis, which keeps their order only where it
// sorts all.
func inOrder(all []Found, wanted int, compare func(a, b Found) int) {
	if wanted == len(all) {
		stable(all, compare)
		return
	}
	partial[Found]{all, compare}.sort(0, len(all), wanted)
}

// stable sorts places rather than elements, which are large, and is quicker than sorting these stably.
func stable(all []Found, compare func(a, b Found) int) {
	before := slices.Clone(all)
	places := make([]int, len(all))
	for i := range places {
		places[i] = i
	}
	slices.SortFunc(places, func(i, j int) int { return cmp.Or(compare(before[i], before[j]), i-j) })
	for i, place := range places {
		all[i] = before[place]
	}
}
