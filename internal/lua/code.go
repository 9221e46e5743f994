package lua

import (
	"redlock-proxy/internal/lua/meter"
	"redlock-proxy/internal/lua/syntax"
)

// eval is the one value of an expression.
type eval func(*Call) Value

// evalMany appends all values of an expression.
type evalMany func(c *Call, to []Value) []Value

// exec runs a statement.
type exec func(*Call) flow

// flow is how a statement ended.
type flow int

const (
	goesOn flow = iota
	broke
	returned
	tailCalled // Call.next is to be called with Call.result, and what it returns is the result
)

// Chunk is a compiled source.
type Chunk struct {
	proto  *proto
	tokens int
}

// Size is about how many bytes the chunk holds, beside its source.
func (c *Chunk) Size() int { return c.tokens * syntax.TokenSize }

// Compile makes the code of a syntax tree, and charges a meter for it, which may be nil.
func Compile(m *meter.Meter, main *syntax.Function) *Chunk {
	return &Chunk{newProto(m, main), main.Tokens}
}

// proto is a function as code.
type proto struct {
	source   string
	run      exec
	work     int // what running it is charged, without the blocks in it
	params   int
	boxed    []int // parameters that inner functions capture, by slot
	isVararg bool
	arg      *syntax.Local
	slots    int
	captures []syntax.Capture
	depth    int
}

// coder makes the code of one function.
type coder struct {
	meter          *meter.Meter
	level, deepest int
	size           int    // of the block so far: see block
	zero           *Value // constants 0 and -0 are one, as in C Lua: the first
}

func newProto(m *meter.Meter, f *syntax.Function) *proto {
	g := &coder{meter: m}
	p := &proto{
		source: f.Source, params: len(f.Params), isVararg: f.IsVararg, arg: f.NeedsArg, slots: f.Slots, captures: f.Captures,
	}
	for _, l := range f.Params {
		if l.Captured {
			p.boxed = append(p.boxed, l.Slot)
		}
	}
	p.run, p.work = g.block(f.Body)
	p.depth = callDepth + g.deepest*levelDepth
	return p
}

// Go calls per call of Lua, and per level of nesting in it.
const (
	callDepth  = 4
	levelDepth = 2
)

// nest counts a level of the tree, and a node; the result leaves it.
func (g *coder) nest() func() {
	g.meter.Work(nodeWork)
	g.size += nodeWork
	g.level++
	g.deepest = max(g.deepest, g.level)
	return func() { g.level-- }
}

// prepare makes a call ready to run p with arguments.
func (p *proto) prepare(c *Call, args []Value) {
	m := &c.thread.state.meter
	if cap(c.slots) < p.slots {
		m.Charge(p.slots * arraySlotSize)
		c.slots = make([]Value, p.slots)
	}
	c.slots = c.slots[:p.slots]
	n := copy(c.slots[:p.params], args)
	clear(c.slots[n:])
	for _, slot := range p.boxed {
		c.slots[slot] = &cell{c.slots[slot]}
	}
	if !p.isVararg {
		return
	}
	if len(args)-n > cap(c.extra) {
		m.Charge((len(args) - n) * arraySlotSize)
	}
	c.extra = append(c.extra[:0], args[n:]...)
	if p.arg != nil {
		p.setArg(c)
	}
}

// setArg makes the table arg, which functions with ... had before they had ....
func (p *proto) setArg(c *Call) {
	s := c.thread.state
	arg := s.NewTable()
	arg.fill(c.extra)
	s.Set(arg, "n", float64(len(c.extra)))
	c.set(p.arg, arg)
}

// set gives a variable its first value.
func (c *Call) set(l *syntax.Local, v Value) {
	if l.Captured {
		v = &cell{v}
	}
	c.slots[l.Slot] = v
}

// What running code costs, in bytes gone through: a block or a turn of a loop, and each node of the
// tree in it.
const (
	blockWork = 8
	nodeWork  = 2
)

// measured returns what running the code costs that an action makes, without the blocks in it:
// these are charged for when they are entered.
func (g *coder) measured(action func()) (size int) {
	outer := g.size
	g.size = blockWork
	action()
	size, g.size = g.size, outer
	return size
}

// block runs statements until one does not go on. Who enters it is charged its size, which is for
// all of them.
func (g *coder) block(statements []syntax.Statement) (run exec, size int) {
	defer g.nest()()
	code := make([]exec, len(statements))
	size = g.measured(func() {
		for i, s := range statements {
			code[i] = g.statement(s)
		}
	})
	return sequence(code), size
}

// sequence runs code until a piece of it does not go on.
func sequence(code []exec) exec {
	switch len(code) {
	case 0:
		return func(*Call) flow { return goesOn }
	case 1:
		return code[0]
	case 2:
		first, second := code[0], code[1]
		return func(c *Call) flow {
			if f := first(c); f != goesOn {
				return f
			}
			return second(c)
		}
	}
	return func(c *Call) flow {
		for _, s := range code {
			if f := s(c); f != goesOn {
				return f
			}
		}
		return goesOn
	}
}
