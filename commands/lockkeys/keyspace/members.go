package keyspace

import "redlock-proxy/commands/lockkeys/keyspace/contents"

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
