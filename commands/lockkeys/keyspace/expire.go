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

// deadline is the Unix time in milliseconds that n means to a command.
func (u unit) deadline(n, now int64, name string) int64 {
	scale, from := int64(1), now
	if u.seconds {
		scale = 1000
	}
	if u.absolute {
		from = 0
	}
	if n > math.MaxInt64/scale || n < math.MinInt64/scale || n*scale > math.MaxInt64-from {
		refuse(syntax.InvalidExpire(name))
	}
	return n*scale + from
}

// left is TTL, PTTL, EXPIRETIME and PEXPIRETIME.
func (c call) left() Reply {
	sl := c.ask(c.words[1])
	if !sl.present {
		return Number(-2)
	}
	at := sl.expiry()
	if at == never {
		return Number(-1)
	}
	if !strings.HasSuffix(c.name, "expiretime") {
		at = max(0, at-c.now)
	}
	if !strings.HasPrefix(c.name, "p") {
		at = (at + 500) / 1000
	}
	return Number(at)
}

func (c call) persist() Reply {
	sl := c.ask(c.words[1])
	if !sl.present || sl.expiry() == never {
		return Number(0)
	}
	sl.expires, sl.kept, sl.by = never, false, c.name
	return Number(1)
}

// expireOptions are the conditions of EXPIRE.
type expireOptions struct{ nx, xx, gt, lt bool }

// parseExpire reads them, in any order and case.
func parseExpire(words []string) (o expireOptions) {
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
			refuse("ERR Unsupported option " + word)
		}
	}
	require(!o.nx || !(o.xx || o.gt || o.lt), "ERR NX and XX, GT or LT options at the same time are not compatible")
	require(!o.gt || !o.lt, "ERR GT and LT options at the same time are not compatible")
	return o
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
func (c call) expireIn() Reply {
	o := parseExpire(c.words[3:])
	n := integer(c.words[2])
	u := unit{seconds: c.name[0] != 'p', absolute: strings.HasSuffix(c.name, "at")}
	at := u.deadline(n, c.now, c.name)
	sl := c.ask(c.words[1])
	if !sl.present || o != (expireOptions{}) && !o.allows(sl.expiry(), at) {
		return Number(0)
	}
	c.expire(sl, at, c.name)
	return Number(1)
}
