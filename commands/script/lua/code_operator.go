package lua

func (g *coder) unary(e *unaryExpr) eval {
	operand, at := g.eval(e.operand), siteOf(e.operand, e.line)
	switch e.operator {
	case tkNot:
		return func(c *Call) Value { return !Truth(operand(c)) }
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

func (g *coder) binary(e *binaryExpr) eval {
	switch e.operator {
	case tkAnd:
		left, right := g.eval(e.left), g.eval(e.right)
		return func(c *Call) Value {
			if v := left(c); !Truth(v) {
				return v
			}
			return right(c)
		}
	case tkOr:
		left, right := g.eval(e.left), g.eval(e.right)
		return func(c *Call) Value {
			if v := left(c); Truth(v) {
				return v
			}
			return right(c)
		}
	case tkConcat:
		return g.concat(e)
	case tkEq, tkNe, '<', '>', tkLe, tkGe:
		holds := g.comparison(e)
		return func(c *Call) Value { return holds(c) }
	}
	return g.arithmetic(e)
}

// condition makes the code of an expression of which only the truth is wanted.
func (g *coder) condition(e expression) func(*Call) bool {
	defer g.nest()()
	switch e := e.(type) {
	case *constantExpr:
		holds := Truth(e.value)
		return func(*Call) bool { return holds }
	case *binaryExpr:
		switch e.operator {
		case tkAnd:
			left, right := g.condition(e.left), g.condition(e.right)
			return func(c *Call) bool { return left(c) && right(c) }
		case tkOr:
			left, right := g.condition(e.left), g.condition(e.right)
			return func(c *Call) bool { return left(c) || right(c) }
		case tkEq, tkNe, '<', '>', tkLe, tkGe:
			return g.comparison(e)
		}
	case *unaryExpr:
		if e.operator == tkNot {
			operand := g.condition(e.operand)
			return func(c *Call) bool { return !operand(c) }
		}
	}
	value := g.eval(e)
	return func(c *Call) bool { return Truth(value(c)) }
}

func (g *coder) comparison(e *binaryExpr) func(*Call) bool {
	defer g.nest()()
	left, right, line := g.eval(e.left), g.eval(e.right), e.line
	switch e.operator {
	case tkEq:
		return func(c *Call) bool { a := left(c); return c.thread.equal(a, right(c), line) }
	case tkNe:
		return func(c *Call) bool { a := left(c); return !c.thread.equal(a, right(c), line) }
	case '<':
		return func(c *Call) bool { a := left(c); return c.thread.less(a, right(c), line) }
	case '>':
		return func(c *Call) bool { a := left(c); return c.thread.less(right(c), a, line) }
	case tkLe:
		return func(c *Call) bool { a := left(c); return c.thread.lessOrEqual(a, right(c), line) }
	}
	return func(c *Call) bool { a := left(c); return c.thread.lessOrEqual(right(c), a, line) }
}

func (g *coder) arithmetic(e *binaryExpr) eval {
	left, right := g.eval(e.left), g.eval(e.right)
	leftAt, rightAt := siteOf(e.left, e.line), siteOf(e.right, e.line)
	operator := e.operator
	return func(c *Call) Value {
		a := left(c)
		b := right(c)
		if x, ok := a.(float64); ok {
			if y, ok := b.(float64); ok {
				return compute(operator, x, y)
			}
		}
		return c.thread.arithmetic(operator, a, b, leftAt, rightAt)
	}
}

// concat makes the code of a .. b .. c, which is one operation.
func (g *coder) concat(e *binaryExpr) eval {
	operands := []expression{e.left}
	for {
		right, ok := e.right.(*binaryExpr)
		if !ok || right.operator != tkConcat {
			break
		}
		operands = append(operands, right.left)
		e = right
	}
	operands = append(operands, e.right)
	sites := make([]*site, len(operands))
	for i, o := range operands {
		sites[i] = siteOf(o, e.line)
	}
	values := g.singles(operands)
	return func(c *Call) Value {
		t := c.thread
		base := len(t.stack)
		t.stack = values(c, t.stack)
		v := t.concat(t.stack[base:], sites)
		t.stack = t.stack[:base]
		return v
	}
}
