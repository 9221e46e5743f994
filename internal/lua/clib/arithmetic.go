package clib

import "math"

// Arithmetic returns the result of an operator, + - * / % or ^, for two numbers.
func Arithmetic(operator byte, x, y float64) float64 {
	switch operator {
	case '+':
		return x + y
	case '-':
		return x - y
	case '*':
		return x * y
	case '/':
		return x / y
	case '%':
		return x - math.Floor(x/y)*y
	}
	return Power(x, y)
}

// Power returns x^y.
func Power(x, y float64) float64 { return SignedNaN(math.Pow(x, y), x, y) }

// Log10 returns the decimal logarithm. For each power of 10 it is an integer.
func Log10(x float64) float64 {
	result := math.Log10(x)
	if whole := math.Round(result); math.Pow10(int(whole)) == x {
		return whole
	}
	return result
}

// SignedNaN returns result. A NaN gets the sign that it has in C. This is the sign of the operand
// that is NaN, or else the sign of 0/0 on this machine.
func SignedNaN(result float64, operands ...float64) float64 {
	if !math.IsNaN(result) {
		return result
	}
	for _, n := range operands {
		if math.IsNaN(n) {
			return n
		}
	}
	return quotient(0, 0)
}

// quotient returns x/y, computed at run time instead of by the Go compiler.
func quotient(x, y float64) float64 { return x / y }
