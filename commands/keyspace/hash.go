package keyspace

import (
	"strconv"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/keyspace/contents"
)

// hash is the hash of a command's first key; nil where the key is absent.
func (c call) hash() (*contents.Hash, *Reply) { return held[*contents.Hash](c.ask(c.words[1])) }

// hashToEdit is hash for a command that puts something into it, made where the key is absent.
func (c call) hashToEdit() (sl *slot, h *contents.Hash, failed *Reply) {
	sl = c.use(c.words[1])
	if h, failed = held[*contents.Hash](sl); h == nil {
		h = contents.NewHash()
	}
	return sl, h, failed
}

// hset is HSET and HMSET key field value ….
func (c call) hset() (Reply, error) {
	if len(c.words)%2 == 1 {
		return wrongArity(c.name), nil
	}
	sl, h, failed := c.hashToEdit()
	if failed != nil {
		return *failed, nil
	}
	made := int64(0)
	for i := 2; i < len(c.words); i += 2 {
		if h.Set(c.words[i], c.words[i+1]) {
			made++
		}
	}
	sl.edited(h)
	if c.name == "hmset" {
		return OK(), nil
	}
	return Number(made), nil
}

func (c call) hsetnx() (Reply, error) {
	sl, h, failed := c.hashToEdit()
	if failed != nil {
		return *failed, nil
	}
	sl.asked = true
	if _, ok := h.Get(c.words[2]); ok {
		return Number(0), nil
	}
	h.Set(c.words[2], c.words[3])
	sl.edited(h)
	return Number(1), nil
}

func (c call) hget() (Reply, error) {
	h, failed := c.hash()
	if failed != nil {
		return *failed, nil
	}
	return fieldOf(h, c.words[2]), nil
}

func fieldOf(h *contents.Hash, field string) Reply {
	value, ok := h.Get(field)
	if !ok {
		return Reply{}
	}
	return Text(value)
}

func (c call) hmget() (Reply, error) {
	h, failed := c.hash()
	if failed != nil {
		return *failed, nil
	}
	elems := make([]Reply, len(c.words)-2)
	for i, field := range c.words[2:] {
		elems[i] = fieldOf(h, field)
	}
	return List(elems...), nil
}

// hgetall is HGETALL, HKEYS and HVALS key.
func (c call) hgetall() (Reply, error) {
	h, failed := c.hash()
	if failed != nil {
		return *failed, nil
	}
	all := List()
	if c.name == "hgetall" {
		all.Kind = Map
	}
	h.Each(func(field, value string) {
		if c.name != "hvals" {
			all.Elems = append(all.Elems, Text(field))
		}
		if c.name != "hkeys" {
			all.Elems = append(all.Elems, Text(value))
		}
	})
	return all, nil
}

func (c call) hdel() (Reply, error) {
	sl := c.ask(c.words[1])
	h, failed := held[*contents.Hash](sl)
	switch {
	case failed != nil:
		return *failed, nil
	case h == nil:
		return Number(0), nil
	}
	gone := int64(0)
	for _, field := range c.words[2:] {
		if h.Delete(field) {
			gone++
		}
	}
	sl.edited(h)
	return Number(gone), nil
}

func (c call) hexists() (Reply, error) {
	h, failed := c.hash()
	if failed != nil {
		return *failed, nil
	}
	_, ok := h.Get(c.words[2])
	return truth(ok), nil
}

func (c call) hlen() (Reply, error) {
	h, failed := c.hash()
	if failed != nil {
		return *failed, nil
	}
	return Number(int64(h.Len())), nil
}

func (c call) hstrlen() (Reply, error) {
	h, failed := c.hash()
	if failed != nil {
		return *failed, nil
	}
	value, _ := h.Get(c.words[2])
	return Number(int64(len(value))), nil
}

func (c call) hincrby() (Reply, error) {
	by, ok := syntax.Int(c.words[3])
	if !ok {
		return Fail(syntax.ErrNotInteger), nil
	}
	sl, h, failed := c.hashToEdit()
	if failed != nil {
		return *failed, nil
	}
	n := int64(0)
	if value, present := h.Get(c.words[2]); present {
		if n, ok = syntax.Int(value); !ok {
			return Fail("ERR hash value is not an integer"), nil
		}
	}
	if overflows(n, by) {
		return Fail(errOverflow), nil
	}
	h.Set(c.words[2], strconv.FormatInt(n+by, 10))
	sl.edited(h)
	return Number(n + by), nil
}

func (c call) hincrbyfloat() (Reply, error) {
	by, ok := contents.ParseLong(c.words[3])
	switch {
	case !ok:
		return Fail(errNotFloat), nil
	case by.IsInf():
		return Fail("ERR value is NaN or Infinity"), nil
	}
	sl, h, failed := c.hashToEdit()
	if failed != nil {
		return *failed, nil
	}
	n := contents.LongOf(0)
	if value, present := h.Get(c.words[2]); present {
		if n, ok = contents.ParseLong(value); !ok {
			return Fail("ERR hash value is not a float"), nil
		}
	}
	sum, ok := n.Add(by)
	if !ok {
		return Fail(errNotFinite), nil
	}
	h.Set(c.words[2], sum.String())
	sl.edited(h)
	return Text(sum.String()), nil
}

const (
	errNotFloat  = "ERR value is not a valid float"
	errNotFinite = "ERR increment would produce NaN or Infinity"
)
