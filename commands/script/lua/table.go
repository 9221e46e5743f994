package lua

import (
	"math"
	"math/bits"

	"redlock-proxy/commands/script/lua/meter"
)

// Table is a table: an array part and a hash part that grow by the rules of the C implementation, because scripts can see them: in
// the border of an array with holes and in the order of pairs.
type Table struct {
	array   []Value
	nodes   []node // none, or a power of two
	free    int    // all nodes from here on were once in use
	meta    *Table
	under   *Table // read where a key is not here
	frozen  bool
	address uint32
	meter   *meter.Meter // of the run that it belongs to; nil if all runs share it
}

// pay charges for a look at so many places.
func (t *Table) pay(places int) {
	if t.meter != nil {
		t.meter.Work(places * placeWork)
	}
}

const (
	// placeWork is what looking at a place costs, in bytes gone through.
	placeWork = 8
	// fewPlaces are looked at in any step.
	fewPlaces = 4
	// longKey is how much of a key is compared in the time of a look at a place.
	longKey = 256
)

// node is a place of the hash part. next is the distance to the next node of the same chain, 0 at its end.
type node struct {
	key, value Value
	next       int32
}

// What a table and its places are charged as, in bytes.
const (
	arraySlotSize = 16
	nodeSize      = 40
	tableSize     = 96
)

// Freeze makes every change of the table an error, in this run and all others.
func (t *Table) Freeze() { t.frozen = true }

// Get is the value of a key, without metamethods; nil if it has none.
func (t *Table) Get(key Value) Value {
	switch k := key.(type) {
	case string:
		return t.getString(k, hashString(k))
	case float64:
		if i := int(k); float64(i) == k {
			return t.getInt(i)
		}
	case nil:
		return nil
	}
	if n := t.find(key); n >= 0 {
		return t.nodes[n].value
	}
	return nil
}

// getString is Get where the hash of the key is known.
func (t *Table) getString(key string, hash uint32) Value {
	if len(t.nodes) > 0 {
		for n, places := hash&uint32(len(t.nodes)-1), 0; ; places++ {
			if places > fewPlaces || len(key) > longKey {
				t.pay(1 + len(key)/longKey)
			}
			at := &t.nodes[n]
			if s, ok := at.key.(string); ok && s == key {
				return at.value
			}
			if at.next == 0 {
				break
			}
			n = uint32(int32(n) + at.next)
		}
	}
	if t.under != nil {
		return t.under.getString(key, hash)
	}
	return nil
}

func (t *Table) getInt(i int) Value {
	if uint(i-1) < uint(len(t.array)) {
		return t.array[i-1]
	}
	if n := t.find(float64(i)); n >= 0 {
		return t.nodes[n].value
	}
	return nil
}

// find is the node of a key, dead or alive, or -1.
func (t *Table) find(key Value) int {
	if len(t.nodes) == 0 {
		return -1
	}
	text, _ := key.(string)
	for n, places := t.mainPosition(key), 0; ; places++ {
		if places > fewPlaces || len(text) > longKey {
			t.pay(1 + len(text)/longKey)
		}
		if t.nodes[n].key == key {
			return n
		}
		if t.nodes[n].next == 0 {
			return -1
		}
		n += int(t.nodes[n].next)
	}
}

// set gives a key its value, without metamethods. The key is not nil and not NaN, and the table is not frozen. Even nil takes a
// place for a key that has none, as in C.
func (t *Table) set(m *meter.Meter, key, value Value) {
	if f, ok := key.(float64); ok {
		if i := int(f); float64(i) == f && uint(i-1) < uint(len(t.array)) {
			t.array[i-1] = value
			return
		}
	}
	if n := t.find(key); n >= 0 {
		t.nodes[n].value = value
		return
	}
	t.insert(m, key, value)
}

// insert places a key that the hash part does not have: at its main position, or, if another key stands there, at a free place;
// the other gives way if it does not belong there itself.
func (t *Table) insert(m *meter.Meter, key, value Value) {
	if len(t.nodes) == 0 {
		t.rehash(m, key)
		t.set(m, key, value)
		return
	}
	at := t.mainPosition(key)
	if t.nodes[at].value != nil {
		free := t.freePlace()
		if free < 0 {
			t.rehash(m, key)
			t.set(m, key, value)
			return
		}
		if owner := t.mainPosition(t.nodes[at].key); owner != at {
			t.move(owner, at, free)
		} else {
			t.nodes[free].next = 0
			if next := t.nodes[at].next; next != 0 {
				t.nodes[free].next = int32(at-free) + next
			}
			t.nodes[at].next = int32(free - at)
			at = free
		}
	}
	t.nodes[at].key, t.nodes[at].value = key, value
}

// move takes the node at from its chain, which begins at owner, to a free place.
func (t *Table) move(owner, at, free int) {
	previous := owner
	for previous+int(t.nodes[previous].next) != at {
		previous += int(t.nodes[previous].next)
	}
	t.nodes[previous].next = int32(free - previous)
	t.nodes[free] = t.nodes[at]
	if next := t.nodes[at].next; next != 0 {
		t.nodes[free].next = int32(at-free) + next
	}
	t.nodes[at].next, t.nodes[at].value = 0, nil
}

// freePlace is a node that never had a key, or -1.
func (t *Table) freePlace() int {
	for t.free > 0 {
		t.free--
		if t.nodes[t.free].key == nil {
			return t.free
		}
	}
	return -1
}

// rehash makes room for one more key: the array part becomes the largest that is more than half in use.
func (t *Table) rehash(m *meter.Meter, extra Value) {
	t.pay(len(t.array) + len(t.nodes))
	var counts [maxArrayBits + 1]int // of keys in (2^(i-1), 2^i]
	used := 0
	count := func(key Value) {
		used++
		if i, ok := arrayIndex(key); ok {
			counts[ceilLog2(uint32(i))]++
		}
	}
	for i, v := range t.array {
		if v != nil {
			used++
			counts[ceilLog2(uint32(i+1))]++
		}
	}
	for i := range t.nodes {
		if t.nodes[i].value != nil {
			count(t.nodes[i].key)
		}
	}
	count(extra)
	size, inArray := arraySizeFor(counts[:])
	t.resize(m, size, used-inArray)
}

const maxArrayBits = 26

// arrayIndex is the index of a key that can live in the array part.
func arrayIndex(key Value) (int, bool) {
	f, ok := key.(float64)
	if !ok {
		return 0, false
	}
	i := int(f)
	return i, float64(i) == f && i >= 1 && i <= 1<<maxArrayBits
}

// arraySizeFor is the largest power of two of which more than half would be in use, and how many keys that takes.
func arraySizeFor(counts []int) (size, inArray int) {
	total := 0
	for i, n := range counts {
		if n == 0 {
			continue
		}
		total += n
		if total > 1<<i/2 {
			size, inArray = 1<<i, total
		}
	}
	return size, inArray
}

// resize gives the table room for an array of a size and for so many other keys, and places all values anew.
func (t *Table) resize(m *meter.Meter, arraySize, hashSize int) {
	oldNodes := t.nodes
	var vanishing []Value
	if arraySize > len(t.array) {
		t.growArray(m, arraySize)
	} else {
		vanishing = t.array[arraySize:]
		t.array = t.array[:arraySize:arraySize]
	}
	t.nodes, t.free = nil, 0
	if hashSize > 0 {
		size := 1 << ceilLog2(uint32(hashSize))
		m.Charge(size * nodeSize)
		t.nodes, t.free = make([]node, size), size
	}
	for i, v := range vanishing {
		if v != nil {
			t.set(m, float64(arraySize+i+1), v)
		}
	}
	for i := len(oldNodes) - 1; i >= 0; i-- {
		if oldNodes[i].value != nil {
			t.set(m, oldNodes[i].key, oldNodes[i].value)
		}
	}
}

func (t *Table) growArray(m *meter.Meter, size int) {
	m.Charge(size * arraySlotSize)
	array := make([]Value, size)
	copy(array, t.array)
	t.array = array
}

// reserveArray makes room for the elements of a constructor.
func (t *Table) reserveArray(m *meter.Meter, size int) {
	if size <= len(t.array) {
		return
	}
	t.resize(m, size, len(t.nodes))
}

// Len is a border of the table: the number of elements, where these have no holes.
func (t *Table) Len() int {
	n := len(t.array)
	if n > 0 && t.array[n-1] == nil {
		return border(0, n, func(i int) bool { return t.array[i-1] != nil })
	}
	if len(t.nodes) == 0 {
		return n
	}
	low, high := n, n+1
	for t.getInt(high) != nil {
		low, high = high, high*2
		if high > 1<<31-1 {
			for n = 1; t.getInt(n) != nil; n++ {
				t.pay(1)
			}
			return n - 1
		}
	}
	return border(low, high, func(i int) bool { return t.getInt(i) != nil })
}

// border halves the way between a present and an absent index until they are neighbours.
func border(low, high int, present func(int) bool) int {
	for high-low > 1 {
		if middle := (low + high) / 2; present(middle) {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

// Next is the entry behind a key, the first behind nil; key is nil at the end. ok is false if the table never had that key.
func (t *Table) Next(key Value) (next, value Value, ok bool) {
	from, ok := t.position(key)
	if !ok {
		if t.under != nil {
			return t.under.Next(key)
		}
		return nil, nil, false
	}
	for i := from; i < len(t.array); i++ {
		t.pay(1)
		if t.array[i] != nil {
			return float64(i + 1), t.array[i], true
		}
	}
	for i := max(from-len(t.array), 0); i < len(t.nodes); i++ {
		t.pay(1)
		if t.nodes[i].value != nil {
			return t.nodes[i].key, t.nodes[i].value, true
		}
	}
	if t.under != nil {
		return t.under.Next(nil)
	}
	return nil, nil, true
}

// position counts the places up to a key and with it.
func (t *Table) position(key Value) (int, bool) {
	if key == nil {
		return 0, true
	}
	if i, ok := arrayIndex(key); ok && i <= len(t.array) {
		return i, true
	}
	if n := t.find(key); n >= 0 {
		return len(t.array) + n + 1, true
	}
	return 0, false
}

func (t *Table) mainPosition(key Value) int {
	switch k := key.(type) {
	case string:
		return int(hashString(k) & uint32(len(t.nodes)-1))
	case float64:
		return int(hashNumber(k) % t.oddSize())
	case bool:
		if k && len(t.nodes) > 1 {
			return 1
		}
		return 0
	}
	return int(addressOf(key) % t.oddSize())
}

// oddSize is the divisor for hashes whose low bits say little.
func (t *Table) oddSize() uint32 { return uint32(len(t.nodes)-1) | 1 }

// ceilLog2 is the smallest i with 2^i ≥ n, for n ≥ 1.
func ceilLog2(n uint32) int { return bits.Len32(n - 1) }

// hashString is the hash of C Lua: long strings are not read whole.
func hashString(s string) uint32 {
	h := uint32(len(s))
	step := len(s)>>5 + 1
	for i := len(s); i >= step; i -= step {
		h ^= h<<5 + h>>2 + uint32(s[i-1])
	}
	return h
}

// hashNumber adds the two halves of a number.
func hashNumber(n float64) uint32 {
	if n == 0 {
		return 0 // of both signs
	}
	b := math.Float64bits(n)
	return uint32(b) + uint32(b>>32)
}
