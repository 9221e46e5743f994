package lua

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"redlock-proxy/internal/lua/meter"
)

// TestTableAgainstMap checks that a table and a Go map with the same changes have the same
// contents. pairs must return each entry once, and # must return a border.
func TestTableAgainstMap(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(3, seed))
		table, oracle := &Table{}, map[Value]Value{}
		for range 400 {
			key := randomKey(random)
			var value Value
			if random.IntN(3) > 0 {
				value = float64(random.IntN(100))
			}
			table.set(key, value)
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
	switch random.IntN(7) {
	case 0:
		return string(rune('a' + random.IntN(20)))
	case 1:
		return random.IntN(2) == 0
	case 2:
		return float64(random.IntN(2000))/4 - 100
	case 3:
		return float64(random.IntN(1 << 30))
	case 4:
		return math.Copysign(0, float64(random.IntN(2)-1))
	}
	return float64(1 + random.IntN(40))
}

func compare(t *testing.T, seed uint64, table *Table, oracle map[Value]Value) {
	t.Helper()
	count := 0
	for key, value, ok := table.Next(nil); key != nil; key, value, ok = table.Next(key) {
		if !ok || oracle[key] != value {
			t.Fatalf("seed %d: pairs gives %v = %v, want %v", seed, key, value, oracle[key])
		}
		count++
	}
	if count != len(oracle) {
		t.Fatalf("seed %d: pairs gives %d entries of %d", seed, count, len(oracle))
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

// TestRemovalDuringPairs checks that entries can be removed while pairs visits them.
func TestRemovalDuringPairs(t *testing.T) {
	table := &Table{}
	for i := range 100 {
		table.set(float64(i*3), true)
	}
	n := 0
	for key, _, ok := table.Next(nil); key != nil; key, _, ok = table.Next(key) {
		if !ok {
			t.Fatal("the key is unknown after the removal")
		}
		table.set(key, nil)
		n++
	}
	if n != 100 || table.Len() != 0 {
		t.Errorf("%d entries, # %d", n, table.Len())
	}
	if _, _, ok := table.Next("absent"); ok {
		t.Error("Next accepts a key that was never in the table")
	}
}

// TestOrderOfNext checks that Next first visits the array, including the keys that moved into it.
// Then it visits the other keys in the order in which they were added.
func TestOrderOfNext(t *testing.T) {
	table := &Table{}
	for _, key := range []Value{"b", 3.0, 5.0, "a", 2.0, true, 1.0, 4.0, "c", 6.5} {
		table.set(key, true)
	}
	table.set("a", nil)
	table.set("b", nil)
	table.set("b", false) // the key keeps its position
	table.set("a", nil)
	var got []Value
	for key, _, ok := table.Next(nil); key != nil; key, _, ok = table.Next(key) {
		if got = append(got, key); !ok {
			t.Fatalf("%v is unknown", key)
		}
	}
	if want := []Value{1.0, 2.0, 3.0, 4.0, 5.0, "b", true, "c", 6.5}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestMemoryOfATable checks that the memory of a table depends on its present keys, not on removed
// keys.
func TestMemoryOfATable(t *testing.T) {
	table := &Table{}
	for i := range 10_000 {
		table.set(fmt.Sprint("key", i), true)
		table.set(fmt.Sprint("key", i-10), nil)
	}
	if len(table.entries) > 40 || len(table.index) > 160 {
		t.Errorf("%d entries, an index of %d", len(table.entries), len(table.index))
	}
}

// TestSparseIndex checks that large integer keys use no more memory than small integer keys.
func TestSparseIndex(t *testing.T) {
	m := meter.New(meter.Limits{}, 0)
	table := &Table{meter: &m}
	for i := range 20 {
		table.set(math.Ldexp(1000, i), true)
	}
	if m.AllocatedBytes() > 10000 {
		t.Errorf("%d bytes for 20 entries", m.AllocatedBytes())
	}
}

// TestHashesOfIntegers checks that the hashes of neighbouring integers differ in their lower bits,
// which select the slots of a table.
func TestHashesOfIntegers(t *testing.T) {
	const size, slots = 1_000, 2_048
	for _, from := range []int{0, 1_000, 10_000, 1 << 20, 1 << 40} {
		used := map[uint32]bool{}
		for i := range size {
			used[hashOf(float64(from+i))%slots] = true
		}
		if len(used) < size/2 {
			t.Errorf("%d integers from %d use %d of %d slots", size, from, len(used), slots)
		}
	}
}
