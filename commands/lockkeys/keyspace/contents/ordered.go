package contents

import "slices"

// orderedList keeps elements in order. It applies changes only when a caller needs the order.
type orderedList[E any] struct {
	compare        func(a, b E) int
	elems          []E
	pendingChanges []change[E]
}

type change[E any] struct {
	elem  E
	added bool
}

// maxPending limits the changes that sorted applies one by one. For more changes, sorting is
// faster.
const maxPending = 256

func (o *orderedList[E]) add(e E)    { o.addChange(change[E]{e, true}) }
func (o *orderedList[E]) remove(e E) { o.addChange(change[E]{e, false}) }

func (o *orderedList[E]) addChange(c change[E]) {
	if len(o.pendingChanges) <= maxPending { // with more changes, sorted sorts all elements again
		o.pendingChanges = append(o.pendingChanges, c)
	}
}

// sorted returns the elements in order. collect returns them in any order.
func (o *orderedList[E]) sorted(collect func() []E) []E {
	if len(o.pendingChanges) > maxPending {
		o.elems = collect()
		slices.SortFunc(o.elems, o.compare)
		o.pendingChanges = nil
	}
	for _, c := range o.pendingChanges {
		at, _ := slices.BinarySearchFunc(o.elems, c.elem, o.compare)
		if c.added {
			o.elems = slices.Insert(o.elems, at, c.elem)
		} else {
			o.elems = slices.Delete(o.elems, at, at+1)
		}
	}
	o.pendingChanges = nil
	return o.elems
}
