package keyspace

import "redlock-proxy/commands/keyspace/contents"

func (c call) sadd() Reply {
	sl := c.use(c.words[1])
	s := held[*contents.Set](sl)
	if s == nil {
		s = contents.NewSet()
	}
	added := tally(c.words[2:], s.Add)
	sl.edited(s)
	return Number(added)
}

func (c call) smembers() Reply {
	_, s := c.members()
	return texts(Set, s.Members())
}

// sismember is SISMEMBER key member, and SMISMEMBER key member ….
func (c call) sismember() Reply {
	_, s := c.members()
	if c.name == "sismember" {
		return truth(s.Has(c.words[2]))
	}
	elems := make([]Reply, len(c.words)-2)
	for i, member := range c.words[2:] {
		elems[i] = truth(s.Has(member))
	}
	return List(elems...)
}

// smove is SMOVE source destination member.
func (c call) smove() Reply {
	source, from := c.members()
	if from == nil {
		return Number(0)
	}
	target := c.ask(c.words[2])
	to := held[*contents.Set](target)
	member := c.words[3]
	switch {
	case source == target:
		return truth(from.Has(member))
	case !from.Has(member):
		return Number(0)
	case to == nil:
		to = contents.NewSet()
	}
	from.Delete(member)
	source.edited(from)
	to.Add(member)
	target.edited(to)
	return Number(1)
}
