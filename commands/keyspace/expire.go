package keyspace

import (
	"math"
	"strings"

	"redlock-proxy/commands/catalog/syntax"
)

// unit is how a command gives a time.
type unit struct {
	seconds  bool // else milliseconds
	absolute bool // Unix time, else from now
}

// units are those of SET's options. It is never changed.
var units = map[string]unit{
	"ex":   {seconds: true},
	"px":   {},
	"exat": {seconds: true, absolute: true},
	"pxat": {absolute: true},
}

// deadline is the Unix time in milliseconds that n means. ok is false where it
// overflows.
func (u unit) deadline(n, now int64) (at int64, ok bool) {
	if u.seconds {
		if n > math.MaxInt64/1000 || n < math.MinInt64/1000 {
			return 0, false
		}
		n *= 1000
	}
	if u.absolute {
		return n, true
	}
	if n > math.MaxInt64-now {
		return 0, false
	}
	return n + now, true
}

// invalidExpire is the error for a time that command name cannot take.
func invalidExpire(name string) Reply { return Fail(syntax.InvalidExpire(name)) }

// left is TTL, PTTL, EXPIRETIME and PEXPIRETIME.
func (c call) left() (Reply, error) {
	sl := c.ask(c.words[1])
	if !sl.present {
		return Number(-2), nil
	}
	at, err := sl.expiry()
	switch {
	case err != nil:
		return Reply{}, err
	case at == never:
		return Number(-1), nil
	}
	if !strings.HasSuffix(c.name, "expiretime") {
		at = max(0, at-c.now)
	}
	if !strings.HasPrefix(c.name, "p") {
		at = (at + 500) / 1000
	}
	return Number(at), nil
}

func (c call) persist() (Reply, error) {
	sl := c.ask(c.words[1])
	if !sl.present {
		return Number(0), nil
	}
	at, err := sl.expiry()
	switch {
	case err != nil:
		return Reply{}, err
	case at == never:
		return Number(0), nil
	}
	sl.expires, sl.kept, sl.by = never, false, c.name
	return Number(1), nil
}

// expireOptions are the conditions of EXPIRE.
type expireOptions struct{ nx, xx, gt, lt bool }

// parseExpire reads them, in any order and case. failed is the error reply.
func parseExpire(words []string) (o expireOptions, failed *Reply) {
	for _, word := range words {
		switch syntax.Lower(word) {
		case "nx":
			o.nx = true
		case "xx":
			o.xx = true
		case "gt":
			o.gt = true
		case "lt":
			o.lt = true
		default:
			word, _, _ = strings.Cut(word, "\x00") // as C shows it
			return o, new(Fail("ERR Unsupported option " + word))
		}
	}
	switch {
	case o.nx && (o.xx || o.gt || o.lt):
		return o, new(Fail("ERR NX and XX, GT or LT options at the same time are not compatible"))
	case o.gt && o.lt:
		return o, new(Fail("ERR GT and LT options at the same time are not compatible"))
	}
	return o, nil
}

// allows reports whether an expiry, or never, may become at.
func (o expireOptions) allows(current, at int64) bool {
	switch {
	case o.nx && current != never,
		o.xx && current == never,
		o.gt && (current == never || at <= current),
		o.lt && current != never && at >= current:
		return false
	}
	return true
}

// expireIn is EXPIRE, PEXPIRE, EXPIREAT and PEXPIREAT key time [NX|XX|GT|LT …].
func (c call) expireIn() (Reply, error) {
	o, failed := parseExpire(c.words[3:])
	if failed != nil {
		return *failed, nil
	}
	n, ok := syntax.Int(c.words[2])
	if !ok {
		return Fail(syntax.ErrNotInteger), nil
	}
	u := unit{seconds: c.name[0] != 'p', absolute: strings.HasSuffix(c.name, "at")}
	at, ok := u.deadline(n, c.now)
	if !ok {
		return invalidExpire(c.name), nil
	}
	sl := c.ask(c.words[1])
	if !sl.present {
		return Number(0), nil
	}
	if o != (expireOptions{}) {
		current, err := sl.expiry()
		switch {
		case err != nil:
			return Reply{}, err
		case !o.allows(current, at):
			return Number(0), nil
		}
	}
	c.expire(sl, at, c.name)
	return Number(1), nil
}
