package structlib

import (
	"encoding/binary"
	"math"
	"slices"

	"redlock-proxy/internal/lua"
	"redlock-proxy/internal/lua/clib"
)

// Struct holds the functions of the library struct.
var Struct = []lua.Entry{
	{Name: "pack", Value: pack},
	{Name: "unpack", Value: unpack},
	{Name: "size", Value: size},
}

// packer packs the arguments after the format into a string.
type packer struct {
	format
	argument int // index of the next argument
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

// number returns the next argument as a number.
func (p *packer) number() float64 {
	p.requireArg("number")
	p.argument++
	return p.call.WantNumber(p.argument - 1)
}

// requireArg raises Redis' error if no argument is left.
func (p *packer) requireArg(kind string) {
	if p.argument > p.call.NArgs() {
		p.call.BadArg(p.argument, kind+" expected, got nil")
	}
}

// text appends size bytes of the next argument, or all of it if size is 0.
func (p *packer) text(size int) {
	p.requireArg("string")
	text := p.call.WantString(p.argument)
	p.argument++
	if len(text) < size {
		p.call.BadArg(p.argument, "string too short") // names the next argument, as in Redis
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

// bytes appends a number. The given bytes are in little-endian order.
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

// size returns the size of the string that a format makes.
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
		case !clib.IsAlnum(o.letter): // unknown letters are ignored, as in Redis
			f.control(o.letter)
		}
		at += uint64(o.size)
	}
}
