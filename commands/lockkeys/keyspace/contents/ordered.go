package contents

import "slices"

// ordered keeps elements in order. It applies changes only when the order is needed.
type ordered[E any] struct {
	compare func(a, b E) int
	elems   []E
	pending []change[E]
}

type change[E any] struct {
	elem  E
	added bool
}

// maxPending limits the changes that are applied one by one: for more, sorting is faster.
const maxPending = 256

func (o *ordered[E]) add(e E)    { o.addChange(change[E]{e, true}) }
func (o *ordered[E]) remove(e E) { o.addChange(change[E]{e, false}) }

func (o *ordered[E]) addChange(c change[E]) {
	if len(o.pending) <= maxPending { // with more changes, all elements are sorted again
		o.pending = append(o.pending, c)
	}
}

// all returns the elements in order. unsorted returns them in any order.
func (o *ordered[E]) all(unsorted func() []E) []E {
	if len(o.pending) > maxPending {
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
