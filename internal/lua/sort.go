package lua

import (
	"sort"

	"redlock-proxy/internal/lua/meter"
)

// tableSort sorts the values of a table. If the comparison is not an order, the order of the result
// is undefined.
func tableSort(c *Call) []Value {
	t := c.WantTable(1)
	n := t.Len()
	s := sorting{call: c}
	if c.Arg(2) != nil {
		s.order = c.wantFunction(2)
	}
	c.State().Charge(n * arraySlotSize)
	s.values = make([]Value, n)
	for i := range s.values {
		s.values[i] = t.getInt(i + 1)
	}
	sort.Sort(s)
	for i, v := range s.values {
		c.rawSet(t, float64(i+1), v)
	}
	return nil
}

// sorting implements sort.Interface.
type sorting struct {
	call   *Call
	values []Value
	order  Value
}

// Len implements sort.Interface.
func (s sorting) Len() int { return len(s.values) }

// Swap implements sort.Interface.
func (s sorting) Swap(i, j int) { s.values[i], s.values[j] = s.values[j], s.values[i] }

// Less implements sort.Interface. If the comparison raises an error, the table stays unchanged.
func (s sorting) Less(i, j int) bool {
	t := s.call.thread
	t.state.meter.Work(meter.Step)
	if s.order != nil {
		return Truth(first(t.goCall(s.order, s.values[i], s.values[j])))
	}
	return t.less(s.values[i], s.values[j], 0)
}
