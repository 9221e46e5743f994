package lua

import (
	"math"
	"math/bits"

	"redlock-proxy/internal/lua/meter"
)

// Table is a table: an array of what the keys 1, 2, 3 … hold, and entries of all other keys. Next
// goes through the array and then through the entries, in the order in which their keys came. A key
// goes from the entries to the array when all before it are there.
type Table struct {
	array   []Value
	entries []entry
	index   []int32 // where the entries of keys are, by the hash of the key: 0, or 1 and more; nil if there are few entries
	meta    *Table
	under   *Table // read where a key is not here
	frozen  bool
	address uint32
	meter   *meter.Meter // of the run that it belongs to; nil if all runs share it
}

// entry is a key and its value. If that is nil, the table does not have the key any more, and Next
// passes it over.
type entry struct{ key, value Value }

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
	// fewEntries are looked through without an index.
	fewEntries = 8
)

// What a table and its places are charged as, in bytes.
const (
	arraySlotSize = 16
	entrySize     = 32
	indexSize     = 4 // of a place in it
	tableSize     = 128
)

// Freeze makes every change of the table an error, in this run and all others.
func (t *Table) Freeze() { t.frozen = true }

// Get is the value of a key, without metamethods; nil if it has none.
func (t *Table) Get(key Value) Value {
	if i, ok := arrayIndex(key); ok && i <= len(t.array) {
		return t.array[i-1]
	}
	if n := t.find(key); n >= 0 {
		return t.entries[n].value
	}
	if t.under != nil {
		return t.under.Get(key)
	}
	return nil
}

// getName is Get of a string of which the hash is known.
func (t *Table) getName(name Value, hash uint32) Value {
	for ; t != nil; t = t.under {
		n := -1
		if t.index == nil {
			n = t.scan(name)
		} else {
			n = t.probe(name, hash)
		}
		if n >= 0 {
			return t.entries[n].value
		}
	}
	return nil
}

func (t *Table) getInt(i int) Value {
	if uint(i-1) < uint(len(t.array)) {
		return t.array[i-1]
	}
	if n := t.find(float64(i)); n >= 0 {
		return t.entries[n].value
	}
	return nil
}

// arrayIndex is a key that can live in the array.
func arrayIndex(key Value) (int, bool) {
	f, ok := key.(float64)
	if !ok {
		return 0, false
	}
	i := int(f)
	return i, float64(i) == f && i >= 1
}

// find is the entry of a key, or -1.
func (t *Table) find(key Value) int {
	if t.index == nil {
		return t.scan(key)
	}
	return t.probe(key, hashOf(key))
}

// scan finds a key among few entries.
func (t *Table) scan(key Value) int {
	if text, ok := key.(string); ok && len(text) > longKey {
		t.pay(len(t.entries) * (len(text) / longKey))
	}
	for n := range t.entries {
		if t.entries[n].key == key {
			return n
		}
	}
	return -1
}

// probe finds a key by its hash.
func (t *Table) probe(key Value, hash uint32) int {
	text, _ := key.(string)
	for places := 0; ; places++ {
		if places > fewPlaces || len(text) > longKey {
			t.pay(1 + len(text)/longKey)
		}
		n := int(t.index[hash&uint32(len(t.index)-1)]) - 1
		if n < 0 || t.entries[n].key == key {
			return n
		}
		hash++
	}
}

// set gives a key its value, without metamethods. The key is not nil and not NaN, and the table is
// not frozen.
func (t *Table) set(key, value Value) {
	if i, ok := arrayIndex(key); ok {
		if i <= len(t.array) {
			t.array[i-1] = value
			return
		}
		if i == len(t.array)+1 && value != nil {
			t.push(value)
			t.pull()
			return
		}
	}
	if n := t.find(key); n >= 0 {
		t.entries[n].value = value
	} else if value != nil {
		t.insert(key, value)
	}
}

// push appends a value to the array.
func (t *Table) push(value Value) {
	const fewest = 4
	if len(t.array) == cap(t.array) {
		t.growArray(max(fewest, 2*len(t.array)))
	}
	t.array = append(t.array, value)
}

// pull appends what entries hold of the keys that follow the array.
func (t *Table) pull() {
	for len(t.entries) > 0 {
		n := t.find(float64(len(t.array) + 1))
		if n < 0 || t.entries[n].value == nil {
			return
		}
		t.pay(1)
		t.push(t.entries[n].value)
		t.entries[n].value = nil
	}
}

// growArray makes room for so many values.
func (t *Table) growArray(size int) {
	t.meter.Charge(size * arraySlotSize)
	array := make([]Value, len(t.array), size)
	copy(array, t.array)
	t.array = array
}

// fill has the keys 1, 2, 3 … hold values. Those that are nil have a place in the array, too.
func (t *Table) fill(values []Value) {
	if len(values) > len(t.array) {
		t.growArray(len(values))
		t.array = t.array[:len(values)]
		t.pay(len(t.entries))
		for n := range t.entries {
			if i, ok := arrayIndex(t.entries[n].key); ok && i <= len(values) {
				t.entries[n].value = nil
			}
		}
	}
	copy(t.array, values)
	t.pull()
}

// insert makes an entry for a key that has none.
func (t *Table) insert(key, value Value) {
	if len(t.entries) == cap(t.entries) {
		t.rebuild()
	}
	t.entries = append(t.entries, entry{key, value})
	t.note(len(t.entries))
}

// note writes into the index where the n-th entry is.
func (t *Table) note(n int) {
	if t.index == nil {
		return
	}
	hash, mask := hashOf(t.entries[n-1].key), uint32(len(t.index)-1)
	for places := 0; t.index[hash&mask] != 0; places++ {
		if places > fewPlaces {
			t.pay(1)
		}
		hash++
	}
	t.index[hash&mask] = int32(n)
}

// rebuild leaves out the entries without a value, and makes room for as many again as are left.
func (t *Table) rebuild() {
	t.pay(len(t.entries))
	left := 0
	for n := range t.entries {
		if t.entries[n].value != nil {
			left++
		}
	}
	old := t.entries
	t.reserve(max(2, 2*left))
	for _, e := range old {
		if e.value != nil {
			t.entries = append(t.entries, e)
			t.note(len(t.entries))
		}
	}
}

// reserve gives the table room for so many entries, and takes away those that it has.
func (t *Table) reserve(size int) {
	t.meter.Charge(size * entrySize)
	t.entries, t.index = make([]entry, 0, size), nil
	if size <= fewEntries {
		return
	}
	places := 2 << bits.Len(uint(size-1)) // at least two for each, and a power of 2
	t.meter.Charge(places * indexSize)
	t.index = make([]int32, places)
}

// Len is a border of the table: the number of elements, where these have no holes. It is found in
// the array alone, as no entry follows that.
func (t *Table) Len() int {
	n := len(t.array)
	if n == 0 || t.array[n-1] != nil {
		return n
	}
	low, high := 0, n // there is a value at low, or it is 0, and none at high
	for high-low > 1 {
		if middle := (low + high) / 2; t.array[middle-1] != nil {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

// Next is the entry behind a key, the first behind nil; key is nil at the end. ok is false if the
// table does not know that key.
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
	for i := max(from-len(t.array), 0); i < len(t.entries); i++ {
		t.pay(1)
		if t.entries[i].value != nil {
			return t.entries[i].key, t.entries[i].value, true
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

// hashOf is where to begin to look for a key. Keys that have it in common are charged for what they
// cost.
func hashOf(key Value) uint32 {
	switch k := key.(type) {
	case string:
		return hashString(k)
	case float64:
		return mixed(math.Float64bits(k + 0)) // 0 and -0 are one key
	}
	return mixed(uint64(addressOf(key)))
}

// hashString reads some 32 bytes of a long string.
func hashString(s string) uint32 {
	h := uint32(len(s))
	step := len(s)>>5 + 1
	for i := len(s); i >= step; i -= step {
		h ^= h<<5 + h>>2 + uint32(s[i-1])
	}
	return h
}

// mixed has every bit of a number in the lowest bits.
func mixed(n uint64) uint32 { return uint32(n * 0x9e3779b97f4a7c15 >> 32) }
