package redistest

import "testing"

// SkipShort leaves a test to make test-all: with -short, as make test and make quick run the tests,
// it is skipped. scripts/test finds these words in what was skipped.
func SkipShort(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("left to make test-all")
	}
}

// Sampled is how often something is tried at random, or how much of something is explored: with
// -short a tenth of n.
func Sampled(n int) int {
	if testing.Short() {
		return max(1, n/10)
	}
	return n
}
