package keyspace

import (
	"math"

	"redlock-proxy/commands/syntax"
)

const errTooLong = "ERR string exceeds maximum allowed size (proto-max-bulk-len)"

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
