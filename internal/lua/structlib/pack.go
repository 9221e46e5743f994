package structlib

import (
	"encoding/binary"
	"math"
	"slices"

	"redlock-proxy/internal/lua"
	"redlock-proxy/internal/lua/clib"
)

// Struct is the library struct.
var Struct = []lua.Entry{
	{Name: "pack", Value: pack},
	{Name: "unpack", Value: unpack},
	{Name: "size", Value: size},
}

// packer makes a string of the arguments after the format.
type packer struct {
	format
	argument int // the next one
	packed   []byte
}

func pack(c *lua.Call) []lua.Value {
	p := packer{format: formatOf(c), argument: 2}
	for {
		o, ok := p.next()
		if !ok {
			return c.ReturnText(string(p.packed))
		}
		p.zeros(p.padding(o, uint64(len(p.packed))))
		p.option(o)
	}
}

func (p *packer) option(o option) {
	switch o.letter {
	case 'b', 'B', 'h', 'H', 'l', 'L', 'T', 'i', 'I':
		p.integer(p.number(), o.size)
	case 'x':
		p.zeros(1)
	case 'f':
		p.bytes(binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(p.number()))))
	case 'd':
		p.bytes(binary.LittleEndian.AppendUint64(nil, math.Float64bits(p.number())))
	case 'c':
		p.text(o.size)
	case 's':
		p.text(0)
		p.zeros(1)
	default:
		p.control(o.letter)
	}
}

// number is the next argument as one.
func (p *packer) number() float64 {
	p.mustHave("number")
	p.argument++
	return p.call.WantNumber(p.argument - 1)
}

// mustHave fails, in Redis' words, where there is no argument left.
func (p *packer) mustHave(kind string) {
	if p.argument > p.call.NArgs() {
		p.call.BadArg(p.argument, kind+" expected, got nil")
	}
}

// text appends so many bytes of the next argument; 0 is all of it.
func (p *packer) text(size int) {
	p.mustHave("string")
	text := p.call.WantString(p.argument)
	p.argument++
	if len(text) < size {
		p.call.BadArg(p.argument, "string too short") // of the argument after it, in Redis as well
	}
	if size > 0 {
		text = text[:size]
	}
	p.call.State().Charge(len(text))
	p.packed = append(p.packed, text...)
}

func (p *packer) integer(n float64, size int) {
	bits := clib.Unsigned(n)
	if n < 0 {
		bits = uint64(clib.Truncate(n))
	}
	whole := make([]byte, maxIntSize)
	binary.LittleEndian.PutUint64(whole, bits)
	p.bytes(whole[:size])
}

// bytes appends a number that is given with its lowest byte first.
func (p *packer) bytes(number []byte) {
	if p.bigEndian {
		slices.Reverse(number)
	}
	p.call.State().Charge(len(number))
	p.packed = append(p.packed, number...)
}

func (p *packer) zeros(n int) {
	p.call.State().Charge(n)
	p.packed = append(p.packed, make([]byte, n)...)
}

// size is how long what a format packs is.
func size(c *lua.Call) []lua.Value {
	f := formatOf(c)
	at := uint64(0)
	for {
		o, ok := f.next()
		if !ok {
			return c.Return(float64(int64(at)))
		}
		at += uint64(f.padding(o, at))
		switch {
		case o.letter == 's':
			c.BadArg(1, "option 's' has no fixed size")
		case o.letter == 'c' && o.size == 0:
			c.BadArg(1, "option 'c0' has no fixed size")
		case !clib.IsAlnum(o.letter): // a letter that is no option counts for nothing, in Redis as well
			f.control(o.letter)
		}
		at += uint64(o.size)
	}
}
