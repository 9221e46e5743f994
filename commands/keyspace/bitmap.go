package keyspace

import (
	"strings"

	"redlock-proxy/commands/keyspace/bits"
	"redlock-proxy/commands/keyspace/contents"
	"redlock-proxy/commands/syntax"
)

const (
	errBitOffset = "ERR bit offset is not an integer or out of range"
	errBit       = "ERR bit is not an integer or out of range"
)

// getbit is GETBIT key offset.
func (c call) getbit() (Reply, error) {
	offset, ok := bits.ParseOffset(c.words[2])
	if !ok {
		return Fail(errBitOffset), nil
	}
	text, failed := c.ask(c.words[1]).text()
	if failed != nil {
		return *failed, nil
	}
	return Number(bits.Get(text, offset)), nil
}

// setbit is SETBIT key offset bit.
func (c call) setbit() (Reply, error) {
	offset, ok := bits.ParseOffset(c.words[2])
	if !ok {
		return Fail(errBitOffset), nil
	}
	bit, ok := syntax.Int(c.words[3])
	if !ok || bit != 0 && bit != 1 {
		return Fail(errBit), nil
	}
	sl := c.ask(c.words[1])
	text, failed := sl.text()
	switch {
	case failed != nil:
		return *failed, nil
	case offset >= maxBits:
		return Fail(errTooLong), nil
	}
	was := bits.Get(text, offset)
	if was == bit && offset>>3 < uint64(len(text)) {
		return Number(was), nil
	}
	grown := bits.Grown(text, offset+1)
	bits.Set(grown, offset, bit == 1)
	sl.replace(contents.Text(grown))
	return Number(was), nil
}

// maxBits are as many as a value may have.
const maxBits = maxValue << 3

// bitRange are the first and last of the bits that BITCOUNT and BITPOS look at, by the words after the key, or after the bit.
func bitRange(text string, words []string) (from, to int64, failed *Reply) {
	size, per := int64(len(text)), int64(8)
	if len(words) > 3 {
		return 0, 0, new(Fail(syntax.ErrSyntax))
	}
	if len(words) == 3 {
		switch syntax.Folded([]byte(words[2])) {
		case "bit":
			size, per = size<<3, 1
		case "byte":
		default:
			return 0, 0, new(Fail(syntax.ErrSyntax))
		}
	}
	to = size - 1
	for i, place := range []*int64{&from, &to} {
		if i >= len(words) {
			break
		}
		n, ok := syntax.Int(words[i])
		if !ok {
			return 0, 0, new(Fail(syntax.ErrNotInteger))
		}
		*place = fromStart(n, size)
	}
	if to = min(to, size-1); from > to {
		return 0, -1, nil
	}
	return from * per, to*per + per - 1, nil
}

// bitcount is BITCOUNT key [start end [BYTE | BIT]].
func (c call) bitcount() (Reply, error) {
	sl := c.ask(c.words[1])
	text, failed := sl.text()
	switch {
	case failed != nil:
		return *failed, nil
	case !sl.present:
		return Number(0), nil
	case len(c.words) == 3:
		return Fail(syntax.ErrSyntax), nil
	}
	words := c.words[2:]
	if len(words) > 1 && len(words) < 4 {
		start, ok1 := syntax.Int(words[0])
		end, ok2 := syntax.Int(words[1])
		switch {
		case !ok1, !ok2:
			return Fail(syntax.ErrNotInteger), nil
		case start < 0 && end < 0 && start > end:
			return Number(0), nil
		}
	}
	from, to, failed := bitRange(text, words)
	if failed != nil {
		return *failed, nil
	}
	return Number(bits.Count(text, from, to)), nil
}

// bitpos is BITPOS key bit [start [end [BYTE | BIT]]].
func (c call) bitpos() (Reply, error) {
	bit, ok := syntax.Int(c.words[2])
	switch {
	case !ok:
		return Fail(syntax.ErrNotInteger), nil
	case bit != 0 && bit != 1:
		return Fail("ERR The bit argument must be 1 or 0."), nil
	}
	sl := c.ask(c.words[1])
	text, failed := sl.text()
	switch {
	case failed != nil:
		return *failed, nil
	case !sl.present:
		return Number(-bit), nil
	}
	if len(c.words) == 6 {
		if _, ok := syntax.Int(c.words[3]); !ok { // which Redis reads before the unit
			return Fail(syntax.ErrNotInteger), nil
		}
	}
	from, to, failed := bitRange(text, c.words[3:])
	if failed != nil {
		return *failed, nil
	}
	at := bits.Find(text, bit == 1, from, to)
	if at < 0 && bit == 0 && len(c.words) < 5 && from <= to {
		at = to + 1 // without an end, zeros follow the text
	}
	return Number(at), nil
}

// bitop is BITOP AND | OR | XOR | NOT destination key ….
func (c call) bitop() (Reply, error) {
	op, ok := bitops[syntax.Folded([]byte(c.words[1]))]
	switch {
	case !ok:
		return Fail(syntax.ErrSyntax), nil
	case op == bits.Not && len(c.words) != 4:
		return Fail("ERR BITOP NOT must be called with a single source key."), nil
	}
	size, times := 0, map[string]int{}
	for _, key := range c.words[3:] {
		text, failed := c.ask(key).text()
		if failed != nil {
			return *failed, nil
		}
		size = max(size, len(text))
		times[key]++
	}
	target := c.use(c.words[2])
	if size == 0 {
		target.remove()
		return Number(0), nil
	}
	var texts []string
	for _, key := range syntax.Distinct(c.words[3:]) {
		if op == bits.Xor && times[key]%2 == 0 {
			continue // twice the same is nothing
		}
		text, _ := c.use(key).text()
		texts = append(texts, text)
	}
	target.set(contents.Text(bits.Combine(op, size, texts...)))
	return Number(int64(size)), nil
}

// bitops is never changed.
var bitops = map[string]bits.Op{"and": bits.And, "or": bits.Or, "xor": bits.Xor, "not": bits.Not}

// fieldStep is one GET, SET or INCRBY of BITFIELD.
type fieldStep struct {
	op       string
	field    bits.Field
	offset   uint64
	value    int64
	overflow bits.Overflow
}

// overflowWays is never changed.
var overflowWays = map[string]bits.Overflow{"wrap": bits.Wraps, "sat": bits.Saturates, "fail": bits.Fails}

// parseBitfield reads what follows the key of BITFIELD.
func parseBitfield(words []string) (steps []fieldStep, failed *Reply) {
	var how bits.Overflow
	for len(words) > 0 {
		op, left := syntax.Folded([]byte(words[0])), len(words)-1
		switch {
		case op == "get" && left >= 2, (op == "set" || op == "incrby") && left >= 3:
			step, failed := parseStep(op, words)
			if failed != nil {
				return nil, failed
			}
			step.overflow = how
			steps = append(steps, step)
			words = words[3:]
			if op != "get" {
				words = words[1:]
			}
		case op == "overflow" && left >= 1:
			var known bool
			if how, known = overflowWays[syntax.Folded([]byte(words[1]))]; !known {
				return nil, new(Fail("ERR Invalid OVERFLOW type specified"))
			}
			words = words[2:]
		default:
			return nil, new(Fail(syntax.ErrSyntax))
		}
	}
	return steps, nil
}

// parseStep reads GET type offset, SET type offset value or INCRBY type offset increment.
func parseStep(op string, words []string) (step fieldStep, failed *Reply) {
	field, ok := bits.ParseField(words[1])
	if !ok {
		return step, new(Fail("ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is."))
	}
	offset, ok := field.ParseOffset(words[2])
	if !ok {
		return step, new(Fail(errBitOffset))
	}
	step = fieldStep{op: op, field: field, offset: offset}
	if op != "get" {
		if step.value, ok = syntax.Int(words[3]); !ok {
			return step, new(Fail(syntax.ErrNotInteger))
		}
	}
	return step, nil
}

// bitfield is BITFIELD and BITFIELD_RO key [GET | SET | INCRBY | OVERFLOW …] ….
func (c call) bitfield() (Reply, error) {
	steps, failed := parseBitfield(c.words[2:])
	if failed != nil {
		return *failed, nil
	}
	end, writes := uint64(0), false // of what is written
	for _, s := range steps {
		if s.op != "get" {
			end, writes = max(end, s.field.End(s.offset)), true
		}
	}
	if writes && strings.HasSuffix(c.name, "_ro") {
		return Fail("ERR BITFIELD_RO only supports the GET subcommand"), nil
	}
	sl := c.ask(c.words[1])
	before, failed := sl.text()
	switch {
	case failed != nil:
		return *failed, nil
	case end > maxBits:
		return Fail(errTooLong), nil
	case !writes:
		return carriedOut(steps, []byte(before)), nil
	}
	text := bits.Grown(before, end)
	reply := carriedOut(steps, text)
	sl.replace(contents.Text(text))
	return reply, nil
}

// carriedOut does one step after the other on a text that is long enough for all that is written.
func carriedOut(steps []fieldStep, text []byte) Reply {
	elems := make([]Reply, len(steps))
	for i, s := range steps {
		was := bits.FieldOf(text, s.field, s.offset)
		if s.op == "get" {
			elems[i] = Number(was)
			continue
		}
		value, by := s.value, int64(0)
		if s.op == "incrby" {
			value, by = was, s.value
		}
		value, ok := s.field.Sum(value, by, s.overflow)
		if !ok {
			continue // nil
		}
		s.field.Put(text, s.offset, value)
		elems[i] = Number(was)
		if s.op == "incrby" {
			elems[i] = Number(value)
		}
	}
	return List(elems...)
}
