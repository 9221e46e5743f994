package lua

import (
	"math/rand/v2"
	"testing"

	"redlock-proxy/internal/lua/meter"
)

// TestSortWithoutAnOrder checks that a sort with an inconsistent comparison loses no value.
func TestSortWithoutAnOrder(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 4))
	for name, answer := range map[string]func() bool{
		"always": func() bool { return true }, "never": func() bool { return false },
		"at random": func() bool { return random.IntN(2) == 0 },
	} {
		for size := range 200 {
			n := float64(size)
			const source = `local t, seen = {}, 0 for i = 1, n do t[i] = i end table.sort(t, less)
				for i, v in ipairs(t) do seen = seen + v end return #t * 1e6 + seen`
			less := func(c *Call) []Value { return c.Return(answer()) }
			got, err := run(t, source, meter.Limits{}, Entry{"n", n}, Entry{"less", less})
			if want := n*1e6 + n*(n+1)/2; err != nil || got != want {
				t.Fatalf("%s, %v values: %v %v, want %v", name, n, got, err, want)
			}
		}
	}
}

// TestSortOfAChangingTable checks that the comparison may change the table. The sort uses the
// values that the table had when the sort began.
func TestSortOfAChangingTable(t *testing.T) {
	got, err := run(t, `local t = {} for i = 1, 50 do t[i] = i * 7 % 50 end
		table.sort(t, function(a, b) t[#t], t.x = nil, a return a < b end) return table.concat(t, " ", 1, 50) == text`,
		meter.Limits{}, Entry{"text",
			"0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49"})
	if err != nil || got != true {
		t.Errorf("%v %v", got, err)
	}
}
