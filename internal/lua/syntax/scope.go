package syntax

import (
	"fmt"
	"slices"
)

// scope represents the function that the parser reads, with its visible local variables.
type scope struct {
	*Function
	outerScope    *scope
	visibleLocals []*Local
	nextSlot      int // the first free slot
	loops         int // the number of loops around the current token, within the function
	usesDots      bool
}

// The limits of C Lua, and maxLinks.
const (
	maxLocals   = 200
	maxCaptures = 60
	maxLevels   = 200
	maxLinks    = 2000 // this package's limit, because a.b.c and 1+2+3 nest in Go, and so do chains within chains
)

func (p *parser) openFunction(line int) *scope {
	s := &scope{Function: &Function{line: line, Source: p.name}, outerScope: p.scope}
	p.scope = s
	return s
}

func (p *parser) closeFunction() *Function {
	f := p.scope.Function
	if p.scope.usesDots {
		f.ArgTable = nil
	}
	p.scope = p.scope.outerScope
	return f
}

// checkLimit ends the compilation with an error if a function has n > maximum items.
func (p *parser) checkLimit(n, maximum int, items string) {
	if n <= maximum {
		return
	}
	if p.scope.outerScope == nil {
		p.fail(fmt.Sprintf("main function has more than %d %s", maximum, items), "")
	}
	p.fail(fmt.Sprintf("function at line %d has more than %d %s", p.scope.line, maximum, items), "")
}

// newLocal returns a variable, which is invisible until declare. pendingCount is the number of
// earlier variables that are not declared yet, including the three hidden variables of a for loop.
func (p *parser) newLocal(name string, pendingCount int) *Local {
	p.checkLimit(len(p.scope.visibleLocals)+pendingCount+1, maxLocals, "local variables")
	return &Local{Name: name}
}

// declare makes variables visible from the current token to the end of the block.
func (s *scope) declare(locals ...*Local) {
	for _, l := range locals {
		l.Slot = s.reserve(1)
		s.visibleLocals = append(s.visibleLocals, l)
	}
}

// reserve reserves n slots until the end of the block, and returns the first slot.
func (s *scope) reserve(n int) (slot int) {
	slot = s.nextSlot
	s.nextSlot += n
	s.Slots = max(s.Slots, s.nextSlot)
	return slot
}

// block parses a block. The variables of the block are not visible after it.
func (p *parser) block(parse func()) {
	s := p.scope
	visible, nextSlot := len(s.visibleLocals), s.nextSlot
	parse()
	s.visibleLocals, s.nextSlot = s.visibleLocals[:visible], nextSlot
}

// variable returns the variable to which a name refers at the current token.
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
	p.meter.ChargeWork(len(s.visibleLocals))
	for i := len(s.visibleLocals) - 1; i >= 0; i-- {
		if s.visibleLocals[i].Name == name {
			return s.visibleLocals[i]
		}
	}
	return nil
}

// capture returns the index, among the captures of s, of an outer function's variable, or -1.
func (p *parser) capture(s *scope, name string) int {
	if s.outerScope == nil {
		return -1
	}
	c := Capture{}
	if l := p.lookup(s.outerScope, name); l != nil {
		l.Captured = true
		c.FromLocal, c.Index = true, l.Slot
	} else if c.Index = p.capture(s.outerScope, name); c.Index < 0 {
		return -1
	}
	if i := slices.Index(s.Captures, c); i >= 0 {
		return i
	}
	if len(s.Captures) >= maxCaptures {
		current := p.scope
		p.scope = s
		p.checkLimit(len(s.Captures)+1, maxCaptures, "upvalues")
		p.scope = current
	}
	s.Captures = append(s.Captures, c)
	return len(s.Captures) - 1
}
