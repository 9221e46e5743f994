package contents

import "slices"

// ordered keeps elements in order. What changes them is only noted until the order is asked for.
type ordered[E any] struct {
	compare func(a, b E) int
	elems   []E
	pending []change[E]
}

type change[E any] struct {
	elem  E
	added bool
}

// few changes are made one by one, since elements move faster than they sort.
const few = 256

func (o *ordered[E]) add(e E)    { o.note(change[E]{e, true}) }
func (o *ordered[E]) remove(e E) { o.note(change[E]{e, false}) }

func (o *ordered[E]) note(c change[E]) {
	if len(o.pending) <= few { // else all are sorted anew
		o.pending = append(o.pending, c)
	}
}

// all are the elements in order; unsorted gives them in any.
func (o *ordered[E]) all(unsorted func() []E) []E {
	if len(o.pending) > few {
		o.elems = unsorted()
		slices.SortFunc(o.elems, o.compare)
		o.pending = nil
	}
	for _, c := range o.pending {
		at, _ := slices.BinarySearchFunc(o.elems, c.elem, o.compare)
		if c.added {
			o.elems = slices.Insert(o.elems, at, c.elem)
		} else {
			o.elems = slices.Delete(o.elems, at, at+1)
		}
	}
	o.pending = nil
	return o.elems
}
