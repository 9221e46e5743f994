package contents

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"redlock-proxy/commands/catalog/syntax"
)

// Set is a set of texts.
type Set struct {
	members     map[string]struct{}
	nonIntegers int // number of members that are not integers
	order       orderedList[string]
	size        int
}

// NewSet returns a set with these members.
func NewSet(members ...string) *Set {
	s := &Set{members: make(map[string]struct{}, len(members)), order: orderedList[string]{compare: compareMembers}}
	for _, m := range members {
		s.Add(m)
	}
	return s
}

// compareMembers compares two members: numbers come first, by value, then other members by bytes.
func compareMembers(a, b string) int {
	isFirst, isSecond := isNumber(a), isNumber(b)
	switch {
	case isFirst && isSecond:
		n, _ := syntax.Int(a)
		m, _ := syntax.Int(b)
		return cmp.Compare(n, m)
	case isFirst:
		return -1
	case isSecond:
		return 1
	default:
		return strings.Compare(a, b)
	}
}

func decodeSet(encoded string) (Content, error) {
	n := countParts(encoded, 0)
	s := &Set{
		members: make(map[string]struct{}, n),
		order:   orderedList[string]{compare: compareMembers, elems: make([]string, 0, n)},
	}
	for encoded != "" {
		member, rest, ok := cutPart(encoded)
		if last := len(s.order.elems) - 1; !ok || last >= 0 && compareMembers(s.order.elems[last], member) >= 0 {
			return nil, ErrUnreadable
		}
		s.order.elems = append(s.order.elems, member) // already in order
		s.members[member] = struct{}{}
		s.adjustCounts(member, 1)
		encoded = rest
	}
	if s.Len() == 0 {
		return nil, ErrUnreadable
	}
	return s, nil
}

// Kind implements Content.
func (s *Set) Kind() Kind { return SetKind }

// Len returns the number of members.
func (s *Set) Len() int {
	if s == nil {
		return 0
	}
	return len(s.members)
}

// Size implements Content.
func (s *Set) Size() int { return markSize + s.size }

// Encoding implements Content: intset or hashtable.
func (s *Set) Encoding() string {
	if s.nonIntegers == 0 && s.Len() <= compactEntries {
		return "intset"
	}
	return "hashtable"
}

func (s *Set) appendTo(b []byte) []byte {
	for _, m := range s.Members() {
		b = appendPart(b, m)
	}
	return b
}

// Members returns the members in order, valid until the set changes. The caller must not change
// them.
func (s *Set) Members() []string {
	if s == nil {
		return nil
	}
	return s.order.sorted(func() []string { return slices.Collect(maps.Keys(s.members)) })
}

// Has reports whether the set has a member.
func (s *Set) Has(member string) bool {
	if s == nil {
		return false
	}
	_, ok := s.members[member]
	return ok
}

// Add adds a member, and reports whether it is new.
func (s *Set) Add(member string) (isNew bool) {
	if s.Has(member) {
		return false
	}
	s.members[member] = struct{}{}
	s.order.add(member)
	s.adjustCounts(member, 1)
	return true
}

// Delete removes a member, and reports whether it existed.
func (s *Set) Delete(member string) bool {
	if !s.Has(member) {
		return false
	}
	delete(s.members, member)
	s.order.remove(member)
	s.adjustCounts(member, -1)
	return true
}

func (s *Set) adjustCounts(member string, delta int) {
	s.size += delta * partSize(member)
	if !isNumber(member) {
		s.nonIntegers += delta
	}
}
