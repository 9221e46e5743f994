package lua

import (
	"redlock-proxy/internal/lua/clib"
	"redlock-proxy/internal/lua/syntax"
)

func (g *compiler) unary(e *syntax.UnaryExpr) eval {
	operand, at := g.eval(e.Operand), siteOf(e.Operand, e.Line)
	switch e.Operator {
	case syntax.Not:
		return func(c *Call) Value { return !IsTruthy(operand(c)) }
	case '#':
		return func(c *Call) Value { return c.thread.length(operand(c), at) }
	}
	return func(c *Call) Value {
		v := operand(c)
		if n, ok := v.(float64); ok {
			return -n
		}
		return c.thread.negate(v, at)
	}
}

func (g *compiler) binary(e *syntax.BinaryExpr) eval {
	switch e.Operator {
	case syntax.And:
		left, right := g.eval(e.Left), g.eval(e.Right)
		return func(c *Call) Value {
			if v := left(c); !IsTruthy(v) {
				return v
			}
			return right(c)
		}
	case syntax.Or:
		left, right := g.eval(e.Left), g.eval(e.Right)
		return func(c *Call) Value {
			if v := left(c); IsTruthy(v) {
				return v
			}
			return right(c)
		}
	case syntax.Concat:
		return g.concat(e)
	case syntax.Eq, syntax.Ne, '<', '>', syntax.Le, syntax.Ge:
		compare := g.comparison(e)
		return func(c *Call) Value { return compare(c) }
	}
	return g.arithmetic(e)
}

// condition compiles an expression. The code returns only its truth value.
func (g *compiler) condition(e syntax.Expression) func(*Call) bool {
	defer g.nest()()
	switch e := e.(type) {
	case *syntax.ConstantExpr:
		isTrue := IsTruthy(e.Value)
		return func(*Call) bool { return isTrue }
	case *syntax.BinaryExpr:
		switch e.Operator {
		case syntax.And:
			left, right := g.condition(e.Left), g.condition(e.Right)
			return func(c *Call) bool { return left(c) && right(c) }
		case syntax.Or:
			left, right := g.condition(e.Left), g.condition(e.Right)
			return func(c *Call) bool { return left(c) || right(c) }
		case syntax.Eq, syntax.Ne, '<', '>', syntax.Le, syntax.Ge:
			return g.comparison(e)
		}
	case *syntax.UnaryExpr:
		if e.Operator == syntax.Not {
			operand := g.condition(e.Operand)
			return func(c *Call) bool { return !operand(c) }
		}
	}
	value := g.eval(e)
	return func(c *Call) bool { return IsTruthy(value(c)) }
}

func (g *compiler) comparison(e *syntax.BinaryExpr) func(*Call) bool {
	defer g.nest()()
	left, right, line := g.eval(e.Left), g.eval(e.Right), e.Line
	switch e.Operator {
	case syntax.Eq:
		return func(c *Call) bool { a := left(c); return c.thread.equal(a, right(c), line) }
	case syntax.Ne:
		return func(c *Call) bool { a := left(c); return !c.thread.equal(a, right(c), line) }
	case '<':
		return func(c *Call) bool { a := left(c); return c.thread.less(a, right(c), line) }
	case '>':
		return func(c *Call) bool { a := left(c); return c.thread.less(right(c), a, line) }
	case syntax.Le:
		return func(c *Call) bool { a := left(c); return c.thread.lessOrEqual(a, right(c), line) }
	}
	return func(c *Call) bool { a := left(c); return c.thread.lessOrEqual(right(c), a, line) }
}

func (g *compiler) arithmetic(e *syntax.BinaryExpr) eval {
	left, right := g.eval(e.Left), g.eval(e.Right)
	leftAt, rightAt := siteOf(e.Left, e.Line), siteOf(e.Right, e.Line)
	operator := e.Operator
	return func(c *Call) Value {
		a := left(c)
		b := right(c)
		if x, ok := a.(float64); ok {
			if y, ok := b.(float64); ok {
				return clib.Arithmetic(byte(operator), x, y)
			}
		}
		return c.thread.arithmetic(operator, a, b, leftAt, rightAt)
	}
}

// concat compiles a chain such as a .. b .. c, which is one operation.
func (g *compiler) concat(e *syntax.BinaryExpr) eval {
	operands := []syntax.Expression{e.Left}
	for {
		right, ok := e.Right.(*syntax.BinaryExpr)
		if !ok || right.Operator != syntax.Concat {
			break
		}
		operands = append(operands, right.Left)
		e = right
	}
	operands = append(operands, e.Right)
	sites := make([]*site, len(operands))
	for i, o := range operands {
		sites[i] = siteOf(o, e.Line)
	}
	values := g.singleValues(operands)
	return func(c *Call) Value {
		t := c.thread
		base := len(t.stack)
		t.stack = values(c, t.stack)
		v := t.concat(t.stack[base:], sites)
		t.stack = t.stack[:base]
		return v
	}
}
