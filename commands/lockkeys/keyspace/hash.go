package keyspace

import (
	"strconv"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/lockkeys/keyspace/contents"
)

// hashCommands returns the commands on hashes.
func hashCommands() []tableEntry {
	return []tableEntry{
		{"hset", call.hset, "2.0.0", "Sets fields of a hash in a lock key."},
		{"hmset", call.hset, "2.0.0", "Sets fields of a hash in a lock key."},
		{"hsetnx", call.hsetnx, "2.0.0", "Sets a field of a hash in a lock key if it has no such field."},
		{"hget", call.hget, "2.0.0", "Returns a field of a hash in a lock key."},
		{"hmget", call.hmget, "2.0.0", "Returns fields of a hash in a lock key."},
		{"hgetall", call.hgetall, "2.0.0", "Returns all fields and values of a hash in a lock key."},
		{"hkeys", call.hgetall, "2.0.0", "Returns the names of the fields of a hash in a lock key."},
		{"hvals", call.hgetall, "2.0.0", "Returns the values of a hash in a lock key."},
		{"hdel", removeElements[*contents.Hash], "2.0.0", "Removes fields of a hash, and the key with the last field."},
		{"hexists", call.hexists, "2.0.0", "Returns whether a hash in a lock key has a field."},
		{"hlen", length[*contents.Hash], "2.0.0", "Counts the fields of a hash in a lock key."},
		{"hstrlen", call.hstrlen, "3.2.0", "Returns the length of a value of a hash in a lock key."},
		{"hincrby", call.hincrby, "2.0.0", "Adds to the number in a field of a hash in a lock key."},
		{"hincrbyfloat", call.hincrbyfloat, "2.6.0", "Adds a fraction to a number in a hash in a lock key."},
		{"hgetdel", call.hgetdel, "8.0.0", "Removes fields of a hash, and the key with the last one, and returns them."},
		{"hgetex", call.hgetex, "8.0.0", "Returns fields of a hash in a lock key."},
		{"hsetex", call.hsetex, "8.0.0", "Sets fields of a hash, optionally only if none or all of them exist."},
		{"hscan", call.scan, "2.8.0", "Returns all matching fields of a hash in a lock key."},
	}
}

// hashToEdit returns the hash to which a command adds fields. If the key is absent, the hash is
// new.
func (c call) hashToEdit() (k *keyState, h *contents.Hash) {
	k = c.use(c.words[1])
	if h = contentOf[*contents.Hash](k); h == nil {
		h = contents.NewHash()
	}
	return k, h
}

// hset implements HSET and HMSET key field value ….
func (c call) hset() Reply {
	if len(c.words)%2 == 1 {
		return wrongArity(c.name)
	}
	k, h := c.hashToEdit()
	added := int64(0)
	for i := 2; i < len(c.words); i += 2 {
		if h.Set(c.words[i], c.words[i+1]) {
			added++
		}
	}
	k.setCollection(h)
	if c.name == "hmset" {
		return OK()
	}
	return IntReply(added)
}

func (c call) hsetnx() Reply {
	k, h := c.hashToEdit()
	k.replyDependsOn = true
	if _, ok := h.Get(c.words[2]); ok {
		return IntReply(0)
	}
	h.Set(c.words[2], c.words[3])
	k.setCollection(h)
	return IntReply(1)
}

func (c call) hget() Reply {
	_, h := c.hash()
	return fieldOf(h, c.words[2])
}

func fieldOf(h *contents.Hash, field string) Reply {
	value, ok := h.Get(field)
	if !ok {
		return Reply{}
	}
	return BulkReply(value)
}

func fieldsOf(h *contents.Hash, fields []string) Reply {
	elems := make([]Reply, len(fields))
	for i, field := range fields {
		elems[i] = fieldOf(h, field)
	}
	return ArrayReply(elems...)
}

func (c call) hmget() Reply {
	_, h := c.hash()
	return fieldsOf(h, c.words[2:])
}

// hgetall implements HGETALL, HKEYS and HVALS key.
func (c call) hgetall() Reply {
	_, h := c.hash()
	reply := ArrayReply()
	if c.name == "hgetall" {
		reply.Kind = Map
	}
	h.Each(func(field, value string) {
		if c.name != "hvals" {
			reply.Elems = append(reply.Elems, BulkReply(field))
		}
		if c.name != "hkeys" {
			reply.Elems = append(reply.Elems, BulkReply(value))
		}
	})
	return reply
}

func (c call) hexists() Reply {
	_, h := c.hash()
	_, ok := h.Get(c.words[2])
	return boolReply(ok)
}

func (c call) hstrlen() Reply {
	_, h := c.hash()
	value, _ := h.Get(c.words[2])
	return IntReply(int64(len(value)))
}

func (c call) hincrby() Reply {
	by := integer(c.words[3])
	k, h := c.hashToEdit()
	n := int64(0)
	if value, present := h.Get(c.words[2]); present {
		var ok bool
		n, ok = syntax.Int(value)
		require(ok, "ERR hash value is not an integer")
	}
	n = addChecked(n, by)
	h.Set(c.words[2], strconv.FormatInt(n, 10))
	k.setCollection(h)
	return IntReply(n)
}

func (c call) hincrbyfloat() Reply {
	by, ok := contents.ParseLongDouble(c.words[3])
	require(ok, errNotFloat)
	require(!by.IsInf(), "ERR value is NaN or Infinity")
	k, h := c.hashToEdit()
	n := contents.NewLongDouble(0)
	if value, present := h.Get(c.words[2]); present {
		n, ok = contents.ParseLongDouble(value)
		require(ok, "ERR hash value is not a float")
	}
	sum, ok := n.Add(by)
	require(ok, errNotFinite)
	h.Set(c.words[2], sum.String())
	k.setCollection(h)
	return BulkReply(sum.String())
}

const (
	errNotFloat  = "ERR value is not a valid float"
	errNotFinite = "ERR increment would produce NaN or Infinity"
)
