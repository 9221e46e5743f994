package contents

// Hash has values by the names of fields, which keep the order in which they came.
type Hash struct {
	pairs []pair
	at    map[string]int // of the pairs
	gone  int            // pairs that are none any more
	size  int
}

type pair struct {
	field, value string
	gone         bool
}

// NewHash makes one without fields.
func NewHash() *Hash { return newHash(0) }

// newHash makes one with room for so many.
func newHash(fields int) *Hash {
	return &Hash{pairs: make([]pair, 0, fields), at: make(map[string]int, fields)}
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

// Kind is HashKind.
func (h *Hash) Kind() Kind { return HashKind }

// Len counts the fields.
func (h *Hash) Len() int {
	if h == nil {
		return 0
	}
	return len(h.at)
}

// Size is how many bytes it has for the quorum.
func (h *Hash) Size() int { return markSize + h.size }

// Encoding is listpack or hashtable.
func (h *Hash) Encoding() string {
	if h.Len() > compactEntries {
		return "hashtable"
	}
	for _, p := range h.pairs {
		if !p.gone && max(len(p.field), len(p.value)) > compactBytes {
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
		if !p.gone {
			do(p.field, p.value)
		}
	}
}

// Get is the value of a field.
func (h *Hash) Get(field string) (value string, ok bool) {
	if h == nil {
		return "", false
	}
	i, ok := h.at[field]
	if !ok {
		return "", false
	}
	return h.pairs[i].value, true
}

// Set gives a field a value, and reports whether the field is new.
func (h *Hash) Set(field, value string) (isNew bool) {
	if i, ok := h.at[field]; ok {
		h.size += partSize(value) - partSize(h.pairs[i].value)
		h.pairs[i].value = value
		return false
	}
	h.at[field] = len(h.pairs)
	h.pairs = append(h.pairs, pair{field: field, value: value})
	h.size += partSize(field) + partSize(value)
	return true
}

// Delete removes a field, and reports whether there was one.
func (h *Hash) Delete(field string) bool {
	i, ok := h.at[field]
	if !ok {
		return false
	}
	h.size -= partSize(field) + partSize(h.pairs[i].value)
	delete(h.at, field)
	h.pairs[i] = pair{gone: true}
	if h.gone++; h.gone > len(h.pairs)/2 {
		h.compact()
	}
	return true
}

// compact forgets the pairs that are none any more.
func (h *Hash) compact() {
	left := make([]pair, 0, len(h.at))
	for _, p := range h.pairs {
		if !p.gone {
			h.at[p.field] = len(left)
			left = append(left, p)
		}
	}
	h.pairs, h.gone = left, 0
}

// Fields are the names of the fields, in their order.
func (h *Hash) Fields() []string {
	all := make([]string, 0, h.Len())
	h.Each(func(field, _ string) { all = append(all, field) })
	return all
}
