package lua

import (
	"strings"

	"redlock-proxy/internal/lua/meter"
)

var tableLibrary = []Entry{
	{"concat", tableConcat},
	{"foreach", tableForEach},
	{"foreachi", tableForEachI},
	{"getn", func(c *Call) []Value { return c.Return(float64(c.WantTable(1).Len())) }},
	{"insert", tableInsert},
	{"maxn", tableMaxN},
	{"remove", tableRemove},
	{"setn", func(c *Call) []Value { c.WantTable(1); return c.Fail("'setn' is obsolete") }},
	{"sort", tableSort},
}

func tableConcat(c *Call) []Value {
	t := c.WantTable(1)
	separator := c.OptString(2, "")
	from := c.optInt32(3, 1)
	var to int
	if c.Arg(4) == nil {
		to = t.Len()
	} else {
		to = c.WantInt32(4)
	}
	var b strings.Builder
	for i := from; i <= to; i++ {
		s, ok := ToString(t.getInt(i))
		if !ok {
			return c.Fail("invalid value (%s) at index %d in table for 'concat'", TypeName(t.getInt(i)), i)
		}
		if i > from {
			b.WriteString(separator)
		}
		c.State().meter.Charge(len(s) + len(separator))
		b.WriteString(s)
		c.State().meter.ChargeWork(meter.Step)
	}
	return c.Return(b.String())
}

func tableForEach(c *Call) []Value {
	t, f := c.WantTable(1), c.wantFunction(2)
	for key, value, _ := t.Next(nil); key != nil; {
		if v := firstValue(c.thread.callFromGo(f, key, value)); v != nil {
			return c.Return(v)
		}
		var ok bool
		if key, value, ok = t.Next(key); !ok {
			return c.Raise("invalid key to 'next'")
		}
	}
	return nil
}

func tableForEachI(c *Call) []Value {
	t, f := c.WantTable(1), c.wantFunction(2)
	for i, n := 1, t.Len(); i <= n; i++ {
		if v := firstValue(c.thread.callFromGo(f, float64(i), t.getInt(i))); v != nil {
			return c.Return(v)
		}
	}
	return nil
}

func tableInsert(c *Call) []Value {
	t := c.WantTable(1)
	last := t.Len() + 1
	m := &c.State().meter
	switch c.NArgs() {
	case 2:
		c.rawSet(t, float64(last), c.Arg(2))
	case 3:
		position := c.WantInt32(2)
		for i := max(last, position); i > position; i-- {
			m.ChargeWork(meter.Step)
			c.rawSet(t, float64(i), t.getInt(i-1))
		}
		c.rawSet(t, float64(position), c.Arg(3))
	default:
		return c.Fail("wrong number of arguments to 'insert'")
	}
	return nil
}

func tableRemove(c *Call) []Value {
	t := c.WantTable(1)
	last := t.Len()
	position := c.optInt32(2, last)
	if position < 1 || position > last {
		return nil
	}
	removed := t.getInt(position)
	for i := position; i < last; i++ {
		c.State().meter.ChargeWork(meter.Step)
		c.rawSet(t, float64(i), t.getInt(i+1))
	}
	c.rawSet(t, float64(last), nil)
	return c.Return(removed)
}

func tableMaxN(c *Call) []Value {
	t := c.WantTable(1)
	largest := 0.0
	for key, _, _ := t.Next(nil); key != nil; key, _, _ = t.Next(key) {
		c.State().meter.ChargeWork(meter.Step)
		if n, ok := key.(float64); ok {
			largest = max(largest, n)
		}
	}
	return c.Return(largest)
}
