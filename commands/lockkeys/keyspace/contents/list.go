package contents

import "slices"

// List is a list of texts.
type List struct {
	elems []string
	size  int
}

func decodeList(s string) (Content, error) {
	l := &List{elems: make([]string, 0, countParts(s, 0))}
	for s != "" {
		elem, rest, ok := cutPart(s)
		if !ok {
			return nil, ErrUnreadable
		}
		l.elems = append(l.elems, elem)
		l.size += partSize(elem)
		s = rest
	}
	if l.Len() == 0 {
		return nil, ErrUnreadable
	}
	return l, nil
}

// Kind implements Content.
func (l *List) Kind() Kind { return ListKind }

// Len returns the number of elements.
func (l *List) Len() int { return len(l.Elems()) }

// Size implements Content.
func (l *List) Size() int { return markSize + l.size }

// Encoding implements Content: quicklist.
func (l *List) Encoding() string { return "quicklist" }

func (l *List) appendTo(b []byte) []byte {
	for _, e := range l.elems {
		b = appendPart(b, e)
	}
	return b
}

// Elems returns the elements, valid until the list changes. The caller must not change them.
func (l *List) Elems() []string {
	if l == nil {
		return nil
	}
	return l.elems
}

// Insert inserts elements before an index.
func (l *List) Insert(at int, elems ...string) {
	l.elems = slices.Insert(l.elems, at, elems...)
	for _, e := range elems {
		l.size += partSize(e)
	}
}

// Set replaces the element at an index.
func (l *List) Set(at int, elem string) {
	l.size += partSize(elem) - partSize(l.elems[at])
	l.elems[at] = elem
}

// Delete removes the elements of Elems()[from:to].
func (l *List) Delete(from, to int) {
	for _, e := range l.elems[from:to] {
		l.size -= partSize(e)
	}
	l.elems = slices.Delete(l.elems, from, to)
}

// Remove removes up to limit elements equal to elem, from the end if fromEnd is set. It returns how
// many it removed.
func (l *List) Remove(elem string, limit int, fromEnd bool) (removed int) {
	if fromEnd {
		slices.Reverse(l.elems)
		defer func() { slices.Reverse(l.elems) }()
	}
	l.elems = slices.DeleteFunc(l.elems, func(e string) bool {
		if removed == limit || e != elem {
			return false
		}
		removed++
		return true
	})
	l.size -= removed * partSize(elem)
	return removed
}
