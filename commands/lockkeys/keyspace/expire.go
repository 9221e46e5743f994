package keyspace

import (
	"math"
	"strings"

	"redlock-proxy/commands/catalog/syntax"
)

// unit describes the unit of a time in a command.
type unit struct {
	inSeconds bool // the number counts seconds, else milliseconds
	absolute  bool // the number is a Unix time, else a time from now
}

// units maps SET's options to their units. The map is read-only.
var units = map[string]unit{
	"ex":   {inSeconds: true},
	"px":   {},
	"exat": {inSeconds: true, absolute: true},
	"pxat": {absolute: true},
}

// deadline returns n in this unit as a Unix time in milliseconds.
func (u unit) deadline(n, now int64, name string) int64 {
	scale, from := int64(1), now
	if u.inSeconds {
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

// ttl implements TTL, PTTL, EXPIRETIME and PEXPIRETIME.
func (c call) ttl() Reply {
	k := c.observe(c.words[1])
	if !k.present {
		return IntReply(-2)
	}
	at := k.expiry()
	if at == noExpiry {
		return IntReply(-1)
	}
	if !strings.HasSuffix(c.name, "expiretime") {
		at = max(0, at-c.now)
	}
	if !strings.HasPrefix(c.name, "p") {
		at = (at + 500) / 1000
	}
	return IntReply(at)
}

func (c call) persist() Reply {
	k := c.observe(c.words[1])
	k.refuseHolders()
	if !k.present || k.expiry() == noExpiry {
		return IntReply(0)
	}
	k.expiresAt, k.keepsExpiry, k.expiryCommand = noExpiry, false, c.name
	return IntReply(1)
}

// expireOptions holds the conditions of EXPIRE.
type expireOptions struct{ nx, xx, gt, lt bool }

// parseExpire parses the conditions of EXPIRE, in any order, in upper or lower case.
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
			word, _, _ = strings.Cut(word, "\x00") // C prints only the text before a zero byte
			refuse("ERR Unsupported option " + word)
		}
	}
	require(!o.nx || !(o.xx || o.gt || o.lt), "ERR NX and XX, GT or LT options at the same time are not compatible")
	require(!o.gt || !o.lt, "ERR GT and LT options at the same time are not compatible")
	return o
}

// allows reports whether the expiry of a key may change from current, which may be noExpiry, to at.
func (o expireOptions) allows(current, at int64) bool {
	switch {
	case o.nx && current != noExpiry,
		o.xx && current == noExpiry,
		o.gt && (current == noExpiry || at <= current),
		o.lt && current != noExpiry && at >= current:
		return false
	}
	return true
}

// runExpire implements EXPIRE, PEXPIRE, EXPIREAT and PEXPIREAT key time [NX|XX|GT|LT …].
func (c call) runExpire() Reply {
	o := parseExpire(c.words[3:])
	n := integer(c.words[2])
	u := unit{inSeconds: c.name[0] != 'p', absolute: strings.HasSuffix(c.name, "at")}
	at := u.deadline(n, c.now, c.name)
	k := c.observe(c.words[1])
	k.refuseHolders()
	if !k.present || o != (expireOptions{}) && !o.allows(k.expiry(), at) {
		return IntReply(0)
	}
	c.expire(k, at, c.name)
	return IntReply(1)
}
