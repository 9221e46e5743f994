package keyspace

import (
	"fmt"
	"math"
	"strings"

	"redlock-proxy/commands/catalog/syntax"
)

func (c call) kind() (Reply, error) {
	sl := c.ask(c.words[1])
	if !sl.present {
		return Reply{Kind: Status, Str: "none"}, nil
	}
	content, failed := sl.look()
	if failed != nil {
		return *failed, nil
	}
	return Reply{Kind: Status, Str: content.Kind().String()}, nil
}

// object is OBJECT ENCODING key. What its other subcommands tell is not known of lock keys.
func (c call) object() (Reply, error) {
	switch sub := syntax.Lower(c.words[1]); {
	case sub == "freq", sub == "idletime", sub == "refcount", sub == "help":
		return Fail(fmt.Sprintf("ERR OBJECT %s is not known of lock keys; OBJECT ENCODING is", syntax.Shown(c.words[1]))), nil
	case sub != "encoding":
		return Fail(syntax.UnknownSubcommand("OBJECT", []byte(c.words[1]))), nil
	case len(c.words) != 3:
		return wrongArity("object|encoding"), nil
	}
	sl := c.ask(c.words[2])
	if !sl.present {
		return Reply{}, nil
	}
	content, failed := sl.look()
	if failed != nil {
		return *failed, nil
	}
	return Text(content.Encoding()), nil
}

// rename is RENAME and RENAMENX key newkey.
func (c call) rename() (Reply, error) {
	only := c.name == "renamenx"
	source := c.ask(c.words[1])
	if !source.present {
		return Fail(errNoKey), nil
	}
	target := c.use(c.words[2])
	switch {
	case source == target && only:
		return Number(0), nil
	case source == target:
		return OK(), nil
	case only && target.present:
		target.asked = true
		return Number(0), nil
	}
	if err := target.copyOf(source); err != nil {
		return Reply{}, err
	}
	source.remove()
	if only {
		target.asked = true
		return Number(1), nil
	}
	return OK(), nil
}

// copyOf has a key hold what another does, for as long.
func (sl *slot) copyOf(source *slot) error {
	at, err := source.expiry()
	if err != nil {
		return err
	}
	encoded := source.value()
	sl.remove()
	sl.present, sl.encoded, sl.expires, sl.by = true, encoded, at, ""
	return nil
}

// copy is COPY source destination [DB n] [REPLACE].
func (c call) copy() (Reply, error) {
	replace, elsewhere := false, false
	for options := c.words[3:]; len(options) > 0; options = options[1:] {
		switch option := syntax.Lower(options[0]); {
		case option == "replace":
			replace = true
		case option == "db" && len(options) > 1:
			if _, ok := syntax.Int(options[1]); !ok {
				return Fail(syntax.ErrNotInteger), nil
			}
			elsewhere, options = true, options[1:]
		default:
			return Fail(syntax.ErrSyntax), nil
		}
	}
	switch {
	case elsewhere:
		return Fail("ERR COPY of a lock key with DB: only within one database"), nil
	case c.words[1] == c.words[2]:
		return Fail("ERR source and destination objects are the same"), nil
	}
	source, target := c.ask(c.words[1]), c.ask(c.words[2])
	if !source.present || target.present && !replace {
		return Number(0), nil
	}
	if err := target.copyOf(source); err != nil {
		return Reply{}, err
	}
	return Number(1), nil
}

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
