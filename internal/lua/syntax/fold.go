package syntax

import (
	"math"

	"redlock-proxy/internal/lua/clib"
)

// foldUnary computes a negative constant such as -2.
func foldUnary(e *UnaryExpr) Expression {
	if n, ok := numeral(e.Operand); ok && e.Operator == '-' {
		return &ConstantExpr{-n}
	}
	return e
}

// foldBinary computes a constant such as 2*3, unless it divides by zero or is NaN. It simplifies "1
// and x" to x.
func foldBinary(e *BinaryExpr) Expression {
	if c, ok := e.Left.(*ConstantExpr); ok && e.Operator == And && c.Value != nil && c.Value != false {
		return &ParenExpr{e.Right}
	}
	x, ok := numeral(e.Left)
	y, ok2 := numeral(e.Right)
	if !ok || !ok2 || !isArithmetic(e.Operator) {
		return e
	}
	if (e.Operator == '/' || e.Operator == '%') && y == 0 {
		return e
	}
	if n := clib.Arithmetic(byte(e.Operator), x, y); !math.IsNaN(n) {
		return &ConstantExpr{n}
	}
	return e
}

func numeral(e Expression) (float64, bool) {
	c, ok := e.(*ConstantExpr)
	if !ok {
		return 0, false
	}
	n, ok := c.Value.(float64)
	return n, ok
}

func isArithmetic(operator Kind) bool {
	switch operator {
	case '+', '-', '*', '/', '%', '^':
		return true
	}
	return false
}
