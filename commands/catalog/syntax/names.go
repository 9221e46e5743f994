package syntax

// longestName is more than any name of a command has.
const longestName = 32

// Names finds what belongs to a command by its name in any case. Most names that are not there
// are told by their length and first letter. It is never changed.
type Names[V any] struct {
	byName map[string]V
	// initials has, for each length of a name, a bit for each first letter.
	initials [longestName + 1]uint32
}

// NewNames takes them by name in lower case.
func NewNames[V any](all map[string]V) *Names[V] {
	n := &Names[V]{byName: all}
	for name := range all {
		n.initials[len(name)] |= initial(name[0])
	}
	return n
}

// initial is a letter's bit, the same for both cases.
func initial(letter byte) uint32 { return 1 << (letter & 0x1f) }

// Find finds what belongs to a name; the zero value where there is no such name.
func (n *Names[V]) Find(name []byte) (found V) {
	var lower [longestName]byte
	if len(name) == 0 || len(name) > len(lower) || n.initials[len(name)]&initial(name[0]) == 0 {
		return found
	}
	folded := lower[:copy(lower[:], name)]
	fold(folded)
	return n.byName[string(folded)]
}
