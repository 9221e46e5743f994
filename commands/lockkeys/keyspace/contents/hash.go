package contents

// Hash maps fields to values, and keeps the fields in insertion order.
type Hash struct {
	pairs        []pair
	index        map[string]int // index in pairs
	deletedCount int            // number of deleted pairs
	size         int
}

type pair struct {
	field, value string
	deleted      bool
}

// NewHash returns an empty hash.
func NewHash() *Hash { return newHash(0) }

// newHash returns an empty hash with room for some fields.
func newHash(fields int) *Hash {
	return &Hash{pairs: make([]pair, 0, fields), index: make(map[string]int, fields)}
}

func decodeHash(s string) (Content, error) {
	h := newHash(countParts(s, 0) / 2)
	for s != "" {
		field, rest, ok1 := cutPart(s)
		value, rest, ok2 := cutPart(rest)
		if !ok1 || !ok2 || !h.Set(field, value) {
			return nil, ErrUnreadable
		}
		s = rest
	}
	if h.Len() == 0 {
		return nil, ErrUnreadable
	}
	return h, nil
}

// Kind implements Content.
func (h *Hash) Kind() Kind { return HashKind }

// Len returns the number of fields.
func (h *Hash) Len() int {
	if h == nil {
		return 0
	}
	return len(h.index)
}

// Size implements Content.
func (h *Hash) Size() int { return markSize + h.size }

// Encoding implements Content: listpack or hashtable.
func (h *Hash) Encoding() string {
	if h.Len() > compactEntries {
		return "hashtable"
	}
	for _, p := range h.pairs {
		if !p.deleted && max(len(p.field), len(p.value)) > compactBytes {
			return "hashtable"
		}
	}
	return "listpack"
}

func (h *Hash) appendTo(b []byte) []byte {
	h.Each(func(field, value string) { b = appendPart(appendPart(b, field), value) })
	return b
}

// Each calls do with all fields in their order.
func (h *Hash) Each(do func(field, value string)) {
	if h == nil {
		return
	}
	for _, p := range h.pairs {
		if !p.deleted {
			do(p.field, p.value)
		}
	}
}

// Get returns the value of a field.
func (h *Hash) Get(field string) (value string, ok bool) {
	if h == nil {
		return "", false
	}
	i, ok := h.index[field]
	if !ok {
		return "", false
	}
	return h.pairs[i].value, true
}

// Set sets the value of a field, and reports whether the field is new.
func (h *Hash) Set(field, value string) (isNew bool) {
	if i, ok := h.index[field]; ok {
		h.size += partSize(value) - partSize(h.pairs[i].value)
		h.pairs[i].value = value
		return false
	}
	h.index[field] = len(h.pairs)
	h.pairs = append(h.pairs, pair{field: field, value: value})
	h.size += partSize(field) + partSize(value)
	return true
}

// Delete removes a field, and reports whether it existed.
func (h *Hash) Delete(field string) bool {
	i, ok := h.index[field]
	if !ok {
		return false
	}
	h.size -= partSize(field) + partSize(h.pairs[i].value)
	delete(h.index, field)
	h.pairs[i] = pair{deleted: true}
	if h.deletedCount++; h.deletedCount > len(h.pairs)/2 {
		h.compact()
	}
	return true
}

// compact drops the deleted pairs.
func (h *Hash) compact() {
	remaining := make([]pair, 0, len(h.index))
	for _, p := range h.pairs {
		if !p.deleted {
			h.index[p.field] = len(remaining)
			remaining = append(remaining, p)
		}
	}
	h.pairs, h.deletedCount = remaining, 0
}

// Fields returns the names of the fields, in their order.
func (h *Hash) Fields() []string {
	fields := make([]string, 0, h.Len())
	h.Each(func(field, _ string) { fields = append(fields, field) })
	return fields
}
