package keyspace

import (
	"fmt"
	"slices"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/keyspace/contents"
	"redlock-proxy/commands/keyspace/order"
)

// sorting are the options of SORT and SORT_RO.
type sorting struct {
	by            order.By
	unsorted      bool // BY of what is no key
	offset, count int64
	store         string
	stores        bool
	get           []string
}

// parseSort reads them. Patterns that name other keys are refused: which ones they are is not known before the value is read.
func parseSort(words []string, readOnly bool) (s sorting) {
	s.count = -1
	for len(words) > 0 {
		left, taken := len(words)-1, 1
		switch option := syntax.Folded([]byte(words[0])); {
		case option == "asc":
			s.by.Descending = false
		case option == "desc":
			s.by.Descending = true
		case option == "alpha":
			s.by.Alpha = true
		case option == "limit" && left >= 2:
			s.offset, s.count, taken = integer(words[1]), integer(words[2]), 3
		case option == "store" && left >= 1 && !readOnly:
			s.store, s.stores, taken = words[1], true, 2
		case (option == "by" || option == "get") && left >= 1:
			if order.Key(words[1]) {
				refuse(fmt.Sprintf("ERR SORT of a lock key by or with other keys: '%s' names keys that are not known beforehand; BY nosort and GET # are possible", syntax.Shown(words[1])))
			}
			if option == "by" {
				s.unsorted = true
			} else {
				s.get = append(s.get, words[1])
			}
			taken = 2
		default:
			refuse(syntax.ErrSyntax)
		}
		words = words[taken:]
	}
	return s
}

// sort is SORT key [BY pattern] [LIMIT offset count] [GET pattern …] [ASC | DESC] [ALPHA] [STORE destination], and SORT_RO
// without STORE.
func (c call) sort() Reply {
	s := parseSort(c.words[2:], c.name == "sort_ro")
	elems, kind := c.toSort()
	sorted, err := s.sorted(elems, kind)
	if err != nil {
		return Fail(err.Error())
	}
	from, to := order.Window(len(sorted), s.offset, s.count)
	if s.stores {
		return c.storeSorted(s, sorted[from:to])
	}
	if s.isTooMuch(sorted[from:to]) {
		return Fail(fmt.Sprintf("ERR SORT of a lock key with a reply of more than %d bytes", maxChosen))
	}
	reply := List()
	for _, elem := range sorted[from:to] {
		s.each(elem, func(got string, is bool) {
			if !is {
				reply.Elems = append(reply.Elems, Reply{})
				return
			}
			reply.Elems = append(reply.Elems, Text(got))
		})
	}
	return reply
}

// toSort are the elements of the key in their own order, and what kind of value has them.
func (c call) toSort() (elems []string, kind contents.Kind) {
	sl := c.ask(c.words[1])
	if !sl.present {
		return nil, contents.ListKind
	}
	content := sl.read()
	switch content := content.(type) {
	case *contents.List:
		elems = content.Elems()
	case *contents.Set:
		elems = content.Members()
	case *contents.SortedSet:
		for _, m := range content.Members() {
			elems = append(elems, m.Member)
		}
	default:
		refuse(errWrongType)
	}
	return elems, content.Kind()
}

// sorted are the elements in the order that is asked for. A set has none of its own: it gets the one that it has in a Redis' scripts.
func (s sorting) sorted(elems []string, kind contents.Kind) ([]string, error) {
	by := s.by
	by.Whole = s.stores
	switch {
	case !s.unsorted:
		return by.Sort(elems)
	case kind == contents.SetKind:
		by.Alpha = true
		return by.Sort(elems)
	case by.Descending:
		elems = slices.Clone(elems)
		slices.Reverse(elems)
	}
	return elems, nil
}

// each yields what there is for one element: itself, or what each GET gets, which is nothing if it is not #.
func (s sorting) each(elem string, yield func(got string, is bool)) {
	if len(s.get) == 0 {
		yield(elem, true)
	}
	for _, pattern := range s.get {
		if order.Itself(pattern) {
			yield(elem, true)
		} else {
			yield("", false)
		}
	}
}

// isTooMuch is true where the same elements, again and again, make a reply too long.
func (s sorting) isTooMuch(elems []string) bool {
	const perReply = 16
	size := 0
	for _, elem := range elems {
		size += len(elem) + perReply
	}
	return len(s.get) > 1 && size > maxChosen/len(s.get)
}

// storeSorted has the destination hold them as a list.
func (c call) storeSorted(s sorting, elems []string) Reply {
	target, l := c.use(s.store), &contents.List{}
	if len(elems)*max(1, len(s.get)) > maxElements {
		return tooLarge(s.store)
	}
	var all []string
	for _, elem := range elems {
		s.each(elem, func(got string, _ bool) { all = append(all, got) })
	}
	l.Insert(0, all...)
	if l.Size() > maxValue {
		return tooLarge(s.store)
	}
	target.store(l)
	return Number(int64(len(all)))
}
