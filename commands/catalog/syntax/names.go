package syntax

// maxNameLength is greater than the length of any name of a command.
const maxNameLength = 32

// Names maps the names of commands, in any case, to values. It rejects most other names by their
// length and first letter. It is immutable.
type Names[V any] struct {
	byName map[string]V
	// initials holds, for each length of a name, one bit for each first letter.
	initials [maxNameLength + 1]uint32
}

// NewNames returns a map of these values, by name in lower case.
func NewNames[V any](values map[string]V) *Names[V] {
	n := &Names[V]{byName: values}
	for name := range values {
		n.initials[len(name)] |= initial(name[0])
	}
	return n
}

// initial returns the bit of a letter, which is the same for both cases.
func initial(letter byte) uint32 { return 1 << (letter & 0x1f) }

// Find returns the value of a name, or the zero value if there is no such name.
func (n *Names[V]) Find(name []byte) (value V) {
	var lowerName [maxNameLength]byte
	if len(name) == 0 || len(name) > len(lowerName) || n.initials[len(name)]&initial(name[0]) == 0 {
		return value
	}
	folded := lowerName[:copy(lowerName[:], name)]
	fold(folded)
	return n.byName[string(folded)]
}
