package clib

import "math"

// Arithmetic is an operation of arithmetic on two numbers: + - * / % ^.
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

// Power is x^y.
func Power(x, y float64) float64 { return SignedNaN(math.Pow(x, y), x, y) }

// Log10 is the decimal logarithm, a whole number for each power of 10.
func Log10(x float64) float64 {
	result := math.Log10(x)
	if whole := math.Round(result); math.Pow10(int(whole)) == x {
		return whole
	}
	return result
}

// SignedNaN gives a result that is NaN the sign that C's would have: of the operand that is NaN,
// else of 0/0 on this machine.
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

// quotient divides when the program runs, not when it is compiled.
func quotient(x, y float64) float64 { return x / y }
