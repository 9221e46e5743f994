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
	nextArg int // index of the next argument
	packed  []byte
}

func pack(c *lua.Call) []lua.Value {
	p := packer{format: formatOf(c), nextArg: 2}
	for {
		o, ok := p.nextOption()
		if !ok {
			return c.ReturnText(string(p.packed))
		}
		p.appendZeros(p.padding(o, uint64(len(p.packed))))
		p.packOption(o)
	}
}

func (p *packer) packOption(o option) {
	switch o.letter {
	case 'b', 'B', 'h', 'H', 'l', 'L', 'T', 'i', 'I':
		p.appendInteger(p.nextNumber(), o.size)
	case 'x':
		p.appendZeros(1)
	case 'f':
		p.appendNumber(binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(p.nextNumber()))))
	case 'd':
		p.appendNumber(binary.LittleEndian.AppendUint64(nil, math.Float64bits(p.nextNumber())))
	case 'c':
		p.appendText(o.size)
	case 's':
		p.appendText(0)
		p.appendZeros(1)
	default:
		p.applyControl(o.letter)
	}
}

// nextNumber returns the next argument as a number.
func (p *packer) nextNumber() float64 {
	p.requireArg("number")
	p.nextArg++
	return p.call.WantNumber(p.nextArg - 1)
}

// requireArg raises Redis' error if no argument is left.
func (p *packer) requireArg(kind string) {
	if p.nextArg > p.call.NArgs() {
		p.call.RaiseBadArg(p.nextArg, kind+" expected, got nil")
	}
}

// appendText appends size bytes of the next argument, or all of it if size is 0.
func (p *packer) appendText(size int) {
	p.requireArg("string")
	text := p.call.WantString(p.nextArg)
	p.nextArg++
	if len(text) < size {
		p.call.RaiseBadArg(p.nextArg, "string too short") // names the next argument, as in Redis
	}
	if size > 0 {
		text = text[:size]
	}
	p.call.State().Charge(len(text))
	p.packed = append(p.packed, text...)
}

func (p *packer) appendInteger(n float64, size int) {
	bits := clib.Unsigned(n)
	if n < 0 {
		bits = uint64(clib.Truncate(n))
	}
	bytes := make([]byte, maxIntSize)
	binary.LittleEndian.PutUint64(bytes, bits)
	p.appendNumber(bytes[:size])
}

// appendNumber appends a number, given in little-endian order, in the current byte order.
func (p *packer) appendNumber(number []byte) {
	if p.bigEndian {
		slices.Reverse(number)
	}
	p.call.State().Charge(len(number))
	p.packed = append(p.packed, number...)
}

func (p *packer) appendZeros(n int) {
	p.call.State().Charge(n)
	p.packed = append(p.packed, make([]byte, n)...)
}

// size returns the size of the string that a format makes.
func size(c *lua.Call) []lua.Value {
	f := formatOf(c)
	offset := uint64(0)
	for {
		o, ok := f.nextOption()
		if !ok {
			return c.Return(float64(int64(offset)))
		}
		offset += uint64(f.padding(o, offset))
		switch {
		case o.letter == 's':
			c.RaiseBadArg(1, "option 's' has no fixed size")
		case o.letter == 'c' && o.size == 0:
			c.RaiseBadArg(1, "option 'c0' has no fixed size")
		case !clib.IsAlnum(o.letter): // ignores unknown letters, as Redis does
			f.applyControl(o.letter)
		}
		offset += uint64(o.size)
	}
}
