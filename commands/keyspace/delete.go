package keyspace

import "redlock-proxy/commands/syntax"

// count is EXISTS and TOUCH key …: a key counts as often as it is named.
func (c call) count() (Reply, error) {
	n := int64(0)
	for _, key := range c.words[1:] {
		if c.ask(key).present {
			n++
		}
	}
	return Number(n), nil
}

func (c call) kind() (Reply, error) {
	if c.ask(c.words[1]).present {
		return Reply{Kind: Status, Str: "string"}, nil
	}
	return Reply{Kind: Status, Str: "none"}, nil
}

// del is DEL and UNLINK key ….
func (c call) del() (Reply, error) {
	n := int64(0)
	for _, key := range c.words[1:] {
		if sl := c.ask(key); sl.present {
			sl.remove()
			n++
		}
	}
	return Number(n), nil
}

func (c call) getdel() (Reply, error) {
	sl := c.ask(c.words[1])
	reply := held(sl)
	sl.remove()
	return reply, nil
}

// delex is DELEX key [IFEQ value | IFNE value]. The digests of IFDEQ and IFDNE are
// not known here.
func (c call) delex() (Reply, error) {
	switch {
	case len(c.words) == 2:
		return c.del()
	case len(c.words) != 4:
		return wrongArity(c.name), nil
	}
	like := true
	switch syntax.Lower(c.words[2]) {
	case "ifeq":
	case "ifne":
		like = false
	default:
		return Fail(syntax.ErrSyntax), nil
	}
	return c.removeIf(c.words[3], like), nil
}

func (c call) delifeq() (Reply, error) { return c.removeIf(c.words[2], true), nil }

// removeIf removes the key if it holds the value, or, if not like, another one.
func (c call) removeIf(value string, like bool) Reply {
	sl := c.ask(c.words[1])
	if !sl.present || (sl.value == value) != like {
		return Number(0)
	}
	sl.remove()
	return Number(1)
}
