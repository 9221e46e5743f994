package syntax

import (
	"fmt"
	"slices"
)

// scope is a function while it is parsed: which variables its names mean.
type scope struct {
	*Function
	outer    *scope
	visible  []*Local
	free     int // slots in use
	loops    int // around this place, within the function
	usesDots bool
}

// The limits of C Lua.
const (
	maxLocals   = 200
	maxCaptures = 60
	maxLevels   = 200
	maxChain    = 2000 // ours: a.b.c and 1+2+3 nest as well
)

func (p *parser) openFunction(line int) *scope {
	s := &scope{Function: &Function{line: line, Source: p.name}, outer: p.scope}
	p.scope = s
	return s
}

func (p *parser) closeFunction() *Function {
	f := p.scope.Function
	if p.scope.usesDots {
		f.NeedsArg = nil
	}
	p.scope = p.scope.outer
	return f
}

// limit ends the compilation if a function has more of something than it may.
func (p *parser) limit(n, most int, what string) {
	if n <= most {
		return
	}
	if p.scope.outer == nil {
		p.mistake(fmt.Sprintf("main function has more than %d %s", most, what), "")
	}
	p.mistake(fmt.Sprintf("function at line %d has more than %d %s", p.scope.line, most, what), "")
}

// newLocal makes a variable that show makes visible.
func (p *parser) newLocal(name string, pending int) *Local {
	p.limit(len(p.scope.visible)+pending+1, maxLocals, "local variables")
	return &Local{Name: name}
}

// show begins the life of variables.
func (s *scope) show(locals ...*Local) {
	for _, l := range locals {
		l.Slot = s.reserve(1)
		s.visible = append(s.visible, l)
	}
}

// reserve takes slots until the end of the block.
func (s *scope) reserve(n int) (slot int) {
	slot = s.free
	s.free += n
	s.Slots = max(s.Slots, s.free)
	return slot
}

// block parses with variables of its own.
func (p *parser) block(parse func()) {
	s := p.scope
	visible, free := len(s.visible), s.free
	parse()
	s.visible, s.free = s.visible[:visible], free
}

// variable is what a name means here.
func (p *parser) variable(name string, line int) Expression {
	if l := p.lookup(p.scope, name); l != nil {
		return &LocalExpr{l}
	}
	if i := p.capture(p.scope, name); i >= 0 {
		return &CapturedExpr{i, name}
	}
	return &GlobalExpr{name, line}
}

func (p *parser) lookup(s *scope, name string) *Local {
	p.meter.Work(len(s.visible))
	for i := len(s.visible) - 1; i >= 0; i-- {
		if s.visible[i].Name == name {
			return s.visible[i]
		}
	}
	return nil
}

// capture is the index of an outer function's variable among what s captures, or -1.
func (p *parser) capture(s *scope, name string) int {
	if s.outer == nil {
		return -1
	}
	c := Capture{}
	if l := p.lookup(s.outer, name); l != nil {
		l.Captured = true
		c.FromLocal, c.Index = true, l.Slot
	} else if c.Index = p.capture(s.outer, name); c.Index < 0 {
		return -1
	}
	if i := slices.Index(s.Captures, c); i >= 0 {
		return i
	}
	if len(s.Captures) >= maxCaptures {
		saved := p.scope
		p.scope = s
		p.limit(len(s.Captures)+1, maxCaptures, "upvalues")
		p.scope = saved
	}
	s.Captures = append(s.Captures, c)
	return len(s.Captures) - 1
}
