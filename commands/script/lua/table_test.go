package lua

import (
	"math"
	"math/rand/v2"
	"testing"

	"redlock-proxy/commands/script/lua/meter"
)

// A table and a Go map that are changed the same way hold the same; pairs gives each entry once, # a border.
func TestTableIsAMap(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(3, seed))
		table, oracle := &Table{}, map[Value]Value{}
		for range 400 {
			key := randomKey(random)
			var value Value
			if random.IntN(3) > 0 {
				value = float64(random.IntN(100))
			}
			table.set(nil, key, value)
			if oracle[key] = value; value == nil {
				delete(oracle, key)
			}
			if random.IntN(40) == 0 {
				compare(t, seed, table, oracle)
			}
		}
		compare(t, seed, table, oracle)
	}
}

func randomKey(random *rand.Rand) Value {
	switch random.IntN(6) {
	case 0:
		return string(rune('a' + random.IntN(20)))
	case 1:
		return random.IntN(2) == 0
	case 2:
		return float64(random.IntN(2000))/4 - 100
	case 3:
		return float64(random.IntN(1 << 30))
	}
	return float64(1 + random.IntN(40))
}

func compare(t *testing.T, seed uint64, table *Table, oracle map[Value]Value) {
	t.Helper()
	seen := 0
	for key, value, ok := table.Next(nil); key != nil; key, value, ok = table.Next(key) {
		if !ok || oracle[key] != value {
			t.Fatalf("seed %d: pairs gives %v = %v, want %v", seed, key, value, oracle[key])
		}
		seen++
	}
	if seen != len(oracle) {
		t.Fatalf("seed %d: pairs gives %d entries of %d", seed, seen, len(oracle))
	}
	for key, value := range oracle {
		if got := table.Get(key); got != value {
			t.Fatalf("seed %d: %v = %v, want %v", seed, key, got, value)
		}
	}
	if n := float64(table.Len()); n > 0 && oracle[n] == nil || oracle[n+1] != nil {
		t.Fatalf("seed %d: # is %v, which is no border", seed, n)
	}
}

// Entries can be removed while pairs goes through them.
func TestRemovalDuringPairs(t *testing.T) {
	table := &Table{}
	for i := range 100 {
		table.set(nil, float64(i*3), true)
	}
	n := 0
	for key, _, ok := table.Next(nil); key != nil; key, _, ok = table.Next(key) {
		if !ok {
			t.Fatal("the key is not known any more")
		}
		table.set(nil, key, nil)
		n++
	}
	if n != 100 || table.Len() != 0 {
		t.Errorf("%d entries, # %d", n, table.Len())
	}
	if _, _, ok := table.Next("never there"); ok {
		t.Error("went on behind a key that was never there")
	}
}

// An index far away takes no more room than another.
func TestSparseIndex(t *testing.T) {
	m := meter.New(meter.Limits{}, 0)
	table := &Table{}
	for i := range 20 {
		table.set(&m, math.Ldexp(1000, i), true)
	}
	if m.Spent() > 10000 {
		t.Errorf("%d bytes for 20 entries", m.Spent())
	}
}
