package lua

import (
	"redlock-proxy/internal/lua/meter"
	"redlock-proxy/internal/lua/syntax"
)

// eval runs a compiled expression, and returns its value.
type eval func(*Call) Value

// evalMany runs a compiled expression with any number of values, and appends the values to dst.
type evalMany func(c *Call, dst []Value) []Value

// exec runs a compiled statement.
type exec func(*Call) flow

// flow is the way in which execution continues after a statement.
type flow int

const (
	flowNext     flow = iota // with the next statement
	flowBreak                // after the loop
	flowReturn               // in the caller
	flowTailCall             // with a call of Call.tailCallee; Call.result holds the arguments
)

// Chunk holds a compiled source.
type Chunk struct {
	proto      *proto
	tokenCount int
}

// Size returns the approximate size of the chunk without its source, in bytes.
func (c *Chunk) Size() int { return c.tokenCount * syntax.TokenSize }

// Compile compiles a syntax tree, and charges the meter for the work.
func Compile(m *meter.Meter, main *syntax.Function) *Chunk {
	return &Chunk{newProto(m, main), main.TokenCount}
}

// proto holds a compiled function.
type proto struct {
	source      string
	run         exec
	work        int // the cost of running the function, without its inner blocks
	params      int
	boxedParams []int // parameters that inner functions capture, by slot
	isVararg    bool
	arg         *syntax.Local
	slots       int
	captures    []syntax.Capture
	depth       int
}

// compiler compiles one function.
type compiler struct {
	meter           *meter.Meter
	level, maxLevel int
	work            int    // the cost of the current block so far
	zero            *Value // the first constant 0 or -0, used for both, as in C Lua
}

func newProto(m *meter.Meter, f *syntax.Function) *proto {
	g := &compiler{meter: m}
	p := &proto{
		source: f.Source, params: len(f.Params), isVararg: f.IsVararg,
		arg: f.ArgTable, slots: f.Slots, captures: f.Captures,
	}
	for _, l := range f.Params {
		if l.Captured {
			p.boxedParams = append(p.boxedParams, l.Slot)
		}
	}
	p.run, p.work = g.block(f.Body)
	p.depth = callDepth + g.maxLevel*levelDepth
	return p
}

// Levels of Go calls for each Lua call, and for each level of nesting in it.
const (
	callDepth  = 4
	levelDepth = 2
)

// nest counts a level of the tree, and a node. The returned function ends the level.
func (g *compiler) nest() func() {
	g.meter.ChargeWork(nodeWork)
	g.work += nodeWork
	g.level++
	g.maxLevel = max(g.maxLevel, g.level)
	return func() { g.level-- }
}

// prepare sets up the local variables of a call of p.
func (p *proto) prepare(c *Call, args []Value) {
	m := &c.thread.state.meter
	if cap(c.slots) < p.slots {
		m.Charge(p.slots * arraySlotSize)
		c.slots = make([]Value, p.slots)
	}
	c.slots = c.slots[:p.slots]
	n := copy(c.slots[:p.params], args)
	clear(c.slots[n:])
	for _, slot := range p.boxedParams {
		c.slots[slot] = &cell{c.slots[slot]}
	}
	if !p.isVararg {
		return
	}
	if len(args)-n > cap(c.varargs) {
		m.Charge((len(args) - n) * arraySlotSize)
	}
	c.varargs = append(c.varargs[:0], args[n:]...)
	if p.arg != nil {
		p.setArg(c)
	}
}

// setArg sets the variable arg, a table with the extra arguments, as in Lua 5.0.
func (p *proto) setArg(c *Call) {
	s := c.thread.state
	arg := s.NewTable()
	arg.fill(c.varargs)
	s.Set(arg, "n", float64(len(c.varargs)))
	c.initLocal(p.arg, arg)
}

// initLocal sets the first value of a local variable.
func (c *Call) initLocal(l *syntax.Local, v Value) {
	if l.Captured {
		v = &cell{v}
	}
	c.slots[l.Slot] = v
}

// The cost of running code, in bytes processed. A run of a block, or of a loop's body, costs
// blockWork, and nodeWork for each node of the tree in it.
const (
	blockWork = 8
	nodeWork  = 2
)

// workOf returns the cost of running the code that an action compiles. It excludes inner blocks,
// which are charged when they begin.
func (g *compiler) workOf(action func()) (work int) {
	outer := g.work
	g.work = blockWork
	action()
	work, g.work = g.work, outer
	return work
}

// block compiles statements, and returns the cost of running all of them. The caller charges the
// cost when the block begins.
func (g *compiler) block(statements []syntax.Statement) (run exec, work int) {
	defer g.nest()()
	code := make([]exec, len(statements))
	work = g.workOf(func() {
		for i, s := range statements {
			code[i] = g.statement(s)
		}
	})
	return sequence(code), work
}

// sequence returns code that runs statements until a statement returns a flow other than flowNext.
func sequence(code []exec) exec {
	switch len(code) {
	case 0:
		return func(*Call) flow { return flowNext }
	case 1:
		return code[0]
	case 2:
		first, second := code[0], code[1]
		return func(c *Call) flow {
			if f := first(c); f != flowNext {
				return f
			}
			return second(c)
		}
	}
	return func(c *Call) flow {
		for _, s := range code {
			if f := s(c); f != flowNext {
				return f
			}
		}
		return flowNext
	}
}
