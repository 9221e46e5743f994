package lua

import (
	"math"
	"math/bits"

	"redlock-proxy/internal/lua/meter"
)

// Table holds an array with the values of the keys 1, 2, 3 …, and entries for all other keys. Next
// visits the array, and then the entries in the order in which they were added. A key moves from
// the entries to the array when the array has all keys before it.
type Table struct {
	array   []Value
	entries []entry
	// index is a hash table from keys to the numbers of their entries, counted from 1; 0 means a
	// free slot. It is nil if there are at most maxUnindexed entries.
	index    []int32
	meta     *Table
	fallback *Table // for reads of keys that this table does not have
	frozen   bool
	address  uint32
	meter    *meter.Meter // meter of its run; nil if all runs share the table
}

// entry holds a key and its value. If the value is nil, the key is absent, and Next skips the
// entry.
type entry struct{ key, value Value }

// charge charges for visits of slots in the array, the entries or the index.
func (t *Table) charge(slots int) {
	if t.meter != nil {
		t.meter.ChargeWork(slots * slotWork)
	}
}

const (
	// slotWork is the cost of visiting a slot, in bytes processed.
	slotWork = 8
	// unchargedProbes is the number of index slots that an operation visits without a charge.
	unchargedProbes = 4
	// keyBytesPerSlot is the number of bytes of a key whose comparison costs as much as a slot.
	keyBytesPerSlot = 256
	// maxUnindexed is the maximum number of entries without an index.
	maxUnindexed = 8
)

// The charges for a table and its slots, in bytes.
const (
	arraySlotSize = 16
	entrySize     = 32
	indexSize     = 4 // for one slot of the index
	tableSize     = 128
)

// Freeze makes every change of the table an error, in all runs.
func (t *Table) Freeze() { t.frozen = true }

// Get returns the value of a key, or nil, without metamethods.
func (t *Table) Get(key Value) Value {
	if i, ok := arrayIndex(key); ok && i <= len(t.array) {
		return t.array[i-1]
	}
	if n := t.find(key); n >= 0 {
		return t.entries[n].value
	}
	if t.fallback != nil {
		return t.fallback.Get(key)
	}
	return nil
}

// getName returns the value of a string key whose hash is known, without metamethods.
func (t *Table) getName(name Value, hash uint32) Value {
	for ; t != nil; t = t.fallback {
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

// arrayIndex converts a key that can be in the array. ok is false for other keys.
func arrayIndex(key Value) (i int, ok bool) {
	f, ok := key.(float64)
	if !ok {
		return 0, false
	}
	i = int(f)
	return i, float64(i) == f && i >= 1
}

// find returns the index of a key's entry, or -1.
func (t *Table) find(key Value) int {
	if t.index == nil {
		return t.scan(key)
	}
	return t.probe(key, hashOf(key))
}

// scan finds a key among few entries.
func (t *Table) scan(key Value) int {
	if text, ok := key.(string); ok && len(text) > keyBytesPerSlot {
		t.charge(len(t.entries) * (len(text) / keyBytesPerSlot))
	}
	for n := range t.entries {
		if t.entries[n].key == key {
			return n
		}
	}
	return -1
}

// probe finds a key by its hash in the index.
func (t *Table) probe(key Value, hash uint32) int {
	text, _ := key.(string)
	for probes := 0; ; probes++ {
		if probes > unchargedProbes || len(text) > keyBytesPerSlot {
			t.charge(1 + len(text)/keyBytesPerSlot)
		}
		n := int(t.index[hash&uint32(len(t.index)-1)]) - 1
		if n < 0 || t.entries[n].key == key {
			return n
		}
		hash++
	}
}

// set sets the value of a key, without metamethods. The key must not be nil or NaN, and the table
// must not be frozen.
func (t *Table) set(key, value Value) {
	if i, ok := arrayIndex(key); ok {
		if i <= len(t.array) {
			t.array[i-1] = value
			return
		}
		if i == len(t.array)+1 && value != nil {
			t.push(value)
			t.moveEntries()
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
	const minCapacity = 4
	if len(t.array) == cap(t.array) {
		t.growArray(max(minCapacity, 2*len(t.array)))
	}
	t.array = append(t.array, value)
}

// moveEntries moves the entries whose keys follow the array into the array.
func (t *Table) moveEntries() {
	for len(t.entries) > 0 {
		n := t.find(float64(len(t.array) + 1))
		if n < 0 || t.entries[n].value == nil {
			return
		}
		t.charge(1)
		t.push(t.entries[n].value)
		t.entries[n].value = nil
	}
}

// growArray grows the array's capacity to size values.
func (t *Table) growArray(size int) {
	t.meter.Charge(size * arraySlotSize)
	array := make([]Value, len(t.array), size)
	copy(array, t.array)
	t.array = array
}

// fill sets the values of the keys 1, 2, 3 …. The array also holds the nil values.
func (t *Table) fill(values []Value) {
	if len(values) > len(t.array) {
		t.growArray(len(values))
		t.array = t.array[:len(values)]
		t.charge(len(t.entries))
		for n := range t.entries {
			if i, ok := arrayIndex(t.entries[n].key); ok && i <= len(values) {
				t.entries[n].value = nil
			}
		}
	}
	copy(t.array, values)
	t.moveEntries()
}

// insert adds an entry for a key that has none.
func (t *Table) insert(key, value Value) {
	if len(t.entries) == cap(t.entries) {
		t.rebuild()
	}
	t.entries = append(t.entries, entry{key, value})
	t.addToIndex(len(t.entries))
}

// addToIndex adds the n-th entry to the index, counted from 1.
func (t *Table) addToIndex(n int) {
	if t.index == nil {
		return
	}
	hash, mask := hashOf(t.entries[n-1].key), uint32(len(t.index)-1)
	for probes := 0; t.index[hash&mask] != 0; probes++ {
		if probes > unchargedProbes {
			t.charge(1)
		}
		hash++
	}
	t.index[hash&mask] = int32(n)
}

// rebuild removes the entries without a value, and makes room for twice as many entries as remain.
func (t *Table) rebuild() {
	t.charge(len(t.entries))
	remaining := 0
	for n := range t.entries {
		if t.entries[n].value != nil {
			remaining++
		}
	}
	old := t.entries
	t.reserve(max(2, 2*remaining))
	for _, e := range old {
		if e.value != nil {
			t.entries = append(t.entries, e)
			t.addToIndex(len(t.entries))
		}
	}
}

// reserve removes all entries, and makes room for size entries.
func (t *Table) reserve(size int) {
	t.meter.Charge(size * entrySize)
	t.entries, t.index = make([]entry, 0, size), nil
	if size <= maxUnindexed {
		return
	}
	slots := 2 << bits.Len(uint(size-1)) // at least two for each entry, and a power of 2
	t.meter.Charge(slots * indexSize)
	t.index = make([]int32, slots)
}

// Len returns a border of the table: the number of its elements if there are no holes. Only the
// array determines the border, because no entry continues the array.
func (t *Table) Len() int {
	n := len(t.array)
	if n == 0 || t.array[n-1] != nil {
		return n
	}
	low, high := 0, n // low is 0 or has a value; high has none
	for high-low > 1 {
		if middle := (low + high) / 2; t.array[middle-1] != nil {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

// Next returns the key and value after a key, or the first key and value if key is nil. next is nil
// at the end. ok is false if neither the array nor an entry holds the key.
func (t *Table) Next(key Value) (next, value Value, ok bool) {
	from, ok := t.position(key)
	if !ok {
		if t.fallback != nil {
			return t.fallback.Next(key)
		}
		return nil, nil, false
	}
	for i := from; i < len(t.array); i++ {
		t.charge(1)
		if t.array[i] != nil {
			return float64(i + 1), t.array[i], true
		}
	}
	for i := max(from-len(t.array), 0); i < len(t.entries); i++ {
		t.charge(1)
		if t.entries[i].value != nil {
			return t.entries[i].key, t.entries[i].value, true
		}
	}
	if t.fallback != nil {
		return t.fallback.Next(nil)
	}
	return nil, nil, true
}

// position returns the number of slots up to and including a key.
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

// hashOf returns the hash of a key. A script may choose keys with equal hashes, but it is charged
// for the collisions.
func hashOf(key Value) uint32 {
	switch k := key.(type) {
	case string:
		return hashString(k)
	case float64:
		return hashBits(math.Float64bits(k + 0)) // 0 and -0 are one key
	}
	return hashBits(uint64(addressOf(key)))
}

// hashString returns the hash of a string. It reads about 32 bytes of a long string.
func hashString(s string) uint32 {
	h := uint32(len(s))
	step := len(s)>>5 + 1
	for i := len(s); i >= step; i -= step {
		h ^= h<<5 + h>>2 + uint32(s[i-1])
	}
	return h
}

// hashBits returns a hash of n, by the finalizer of MurmurHash3. Each bit of the hash depends on all
// bits of n: those of small integers as float64 are in its upper half.
func hashBits(n uint64) uint32 {
	n = (n ^ n>>33) * 0xff51afd7ed558ccd
	n = (n ^ n>>33) * 0xc4ceb9fe1a85ec53
	return uint32(n ^ n>>33)
}
