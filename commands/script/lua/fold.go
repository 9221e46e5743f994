package lua

import "math"

// foldUnary computes -2 when it is compiled.
func foldUnary(e *unaryExpr) expression {
	if n, ok := numeral(e.operand); ok && e.operator == '-' {
		return &constantExpr{-n}
	}
	return e
}

// foldBinary computes 2*3 when it is compiled, but not what would be NaN, and leaves out the first half of 1 and x.
func foldBinary(e *binaryExpr) expression {
	if c, ok := e.left.(*constantExpr); ok && e.operator == tkAnd && Truth(c.value) {
		return &parenExpr{e.right}
	}
	x, ok := numeral(e.left)
	y, ok2 := numeral(e.right)
	if _, arithmetic := events[e.operator]; !ok || !ok2 || !arithmetic {
		return e
	}
	if (e.operator == '/' || e.operator == '%') && y == 0 {
		return e
	}
	if n := compute(e.operator, x, y); !math.IsNaN(n) {
		return &constantExpr{n}
	}
	return e
}

func numeral(e expression) (float64, bool) {
	c, ok := e.(*constantExpr)
	if !ok {
		return 0, false
	}
	n, ok := c.value.(float64)
	return n, ok
}
