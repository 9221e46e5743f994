package keyspace

import (
	"redlock-proxy/commands/keyspace/contents"
)

// set is the set of a command's first key; nil where the key is absent.
func (c call) members() (*slot, *contents.Set, *Reply) {
	sl := c.ask(c.words[1])
	s, failed := held[*contents.Set](sl)
	return sl, s, failed
}

func (c call) sadd() (Reply, error) {
	sl := c.use(c.words[1])
	s, failed := held[*contents.Set](sl)
	switch {
	case failed != nil:
		return *failed, nil
	case s == nil:
		s = contents.NewSet()
	}
	added := int64(0)
	for _, member := range c.words[2:] {
		if s.Add(member) {
			added++
		}
	}
	sl.edited(s)
	return Number(added), nil
}

func (c call) srem() (Reply, error) {
	sl, s, failed := c.members()
	switch {
	case failed != nil:
		return *failed, nil
	case s == nil:
		return Number(0), nil
	}
	gone := int64(0)
	for _, member := range c.words[2:] {
		if s.Delete(member) {
			gone++
		}
	}
	sl.edited(s)
	return Number(gone), nil
}

func (c call) smembers() (Reply, error) {
	_, s, failed := c.members()
	if failed != nil {
		return *failed, nil
	}
	return texts(Set, s.Members()), nil
}

func (c call) scard() (Reply, error) {
	_, s, failed := c.members()
	if failed != nil {
		return *failed, nil
	}
	return Number(int64(s.Len())), nil
}

// sismember is SISMEMBER key member, and SMISMEMBER key member ….
func (c call) sismember() (Reply, error) {
	_, s, failed := c.members()
	switch {
	case failed != nil:
		return *failed, nil
	case c.name == "sismember":
		return truth(s.Has(c.words[2])), nil
	}
	elems := make([]Reply, len(c.words)-2)
	for i, member := range c.words[2:] {
		elems[i] = truth(s.Has(member))
	}
	return List(elems...), nil
}

// smove is SMOVE source destination member.
func (c call) smove() (Reply, error) {
	source, from, failed := c.members()
	switch {
	case failed != nil:
		return *failed, nil
	case from == nil:
		return Number(0), nil
	}
	target := c.ask(c.words[2])
	to, failed := held[*contents.Set](target)
	member := c.words[3]
	switch {
	case failed != nil:
		return *failed, nil
	case source == target:
		return truth(from.Has(member)), nil
	case !from.Has(member):
		return Number(0), nil
	case to == nil:
		to = contents.NewSet()
	}
	from.Delete(member)
	source.edited(from)
	to.Add(member)
	target.edited(to)
	return Number(1), nil
}
