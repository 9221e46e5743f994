package lua

import (
	"sort"

	"redlock-proxy/internal/lua/meter"
)

// tableSort implements table.sort. If the comparison is inconsistent, the order of the result is
// undefined.
func tableSort(c *Call) []Value {
	t := c.WantTable(1)
	n := t.Len()
	s := sorter{call: c}
	if c.Arg(2) != nil {
		s.comparison = c.wantFunction(2)
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

// sorter implements sort.Interface for the values of a table.
type sorter struct {
	call       *Call
	values     []Value
	comparison Value
}

// Len implements sort.Interface.
func (s sorter) Len() int { return len(s.values) }

// Swap implements sort.Interface.
func (s sorter) Swap(i, j int) { s.values[i], s.values[j] = s.values[j], s.values[i] }

// Less implements sort.Interface. If the comparison raises an error, the table stays unchanged.
func (s sorter) Less(i, j int) bool {
	t := s.call.thread
	t.state.meter.ChargeWork(meter.Step)
	if s.comparison != nil {
		return IsTruthy(firstValue(t.callFromGo(s.comparison, s.values[i], s.values[j])))
	}
	return t.less(s.values[i], s.values[j], 0)
}
