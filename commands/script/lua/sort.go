package lua

import "redlock-proxy/commands/script/lua/meter"

// tableSort sorts by C Lua's steps, since the order of equal elements, and what a comparison sees that is not an order, depend on them.
func tableSort(c *Call) []Value {
	s := sorter{call: c, table: c.WantTable(1)}
	n := s.table.Len()
	if c.Arg(2) != nil {
		s.order = c.wantFunction(2)
	}
	s.sort(1, n)
	return nil
}

type sorter struct {
	call  *Call
	table *Table
	order Value
}

func (s *sorter) get(i int) Value { return s.table.getInt(i) }

func (s *sorter) swap(i, j int, a, b Value) {
	s.call.rawSet(s.table, float64(i), b)
	s.call.rawSet(s.table, float64(j), a)
}

func (s *sorter) less(a, b Value) bool {
	t := s.call.thread
	t.state.meter.Work(meter.Step)
	if s.order != nil {
		return Truth(first(t.goCall(s.order, a, b)))
	}
	return t.less(a, b, 0)
}

func (s *sorter) sort(low, high int) {
	for low < high {
		if a, b := s.get(low), s.get(high); s.less(b, a) {
			s.swap(low, high, a, b)
		}
		if high-low == 1 {
			return
		}
		middle := (low + high) / 2
		s.median(low, middle, high)
		if high-low == 2 {
			return
		}
		pivot := s.get(middle)
		s.swap(middle, high-1, pivot, s.get(high-1))
		at := s.partition(low, high, pivot)
		if at-low < high-at {
			s.sort(low, at-1)
			low = at + 1
		} else {
			s.sort(at+1, high)
			high = at - 1
		}
	}
}

// median brings the middle one of three to the middle.
func (s *sorter) median(low, middle, high int) {
	a, b := s.get(middle), s.get(low)
	if s.less(a, b) {
		s.swap(middle, low, a, b)
		return
	}
	if b = s.get(high); s.less(b, a) {
		s.swap(middle, high, a, b)
	}
}

// partition brings what is less than the pivot, which is at high-1, before it and the rest behind it, and returns its place.
func (s *sorter) partition(low, high int, pivot Value) int {
	i, j := low, high-1
	for {
		var a, b Value
		for {
			i++
			if a = s.get(i); !s.less(a, pivot) {
				break
			}
			if i > high {
				s.call.Fail("invalid order function for sorting")
			}
		}
		for {
			j--
			if b = s.get(j); !s.less(pivot, b) {
				break
			}
			if j < low {
				s.call.Fail("invalid order function for sorting")
			}
		}
		if j < i {
			break
		}
		s.swap(i, j, a, b)
	}
	s.swap(high-1, i, s.get(high-1), s.get(i))
	return i
}
