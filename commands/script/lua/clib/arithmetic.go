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

// Power is x^y. Whole results that a number holds exactly are multiplied out, which is faster.
func Power(x, y float64) float64 {
	const largestExact = 1 << 53
	if y == math.Trunc(y) && y >= 0 && y <= 64 && x == math.Trunc(x) {
		result := 1.0
		for range int(y) {
			result *= x
		}
		if math.Abs(result) <= largestExact {
			return result
		}
	}
	return SignedNaN(pow(x, y), x, y)
}

// SignedNaN gives a result that is NaN the sign that C's would have: of the operand that is NaN, else of 0/0 on this machine.
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
