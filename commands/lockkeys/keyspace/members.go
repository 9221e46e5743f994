package keyspace

import "redlock-proxy/commands/lockkeys/keyspace/contents"

func (c call) sadd() Reply {
	k := c.use(c.words[1])
	s := contentOf[*contents.Set](k)
	if s == nil {
		s = contents.NewSet()
	}
	added := countWhere(c.words[2:], s.Add)
	k.setCollection(s)
	return IntReply(added)
}

func (c call) smembers() Reply {
	_, s := c.members()
	return textsReply(Set, s.Members())
}

// sismember implements SISMEMBER key member, and SMISMEMBER key member ….
func (c call) sismember() Reply {
	_, s := c.members()
	if c.name == "sismember" {
		return boolReply(s.Has(c.words[2]))
	}
	elems := make([]Reply, len(c.words)-2)
	for i, member := range c.words[2:] {
		elems[i] = boolReply(s.Has(member))
	}
	return ArrayReply(elems...)
}
