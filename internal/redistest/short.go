package redistest

import (
	"os"
	"strconv"
	"testing"
)

// SkipShort skips a test with -short, which make test and make quick use. scripts/test searches the
// output for the text of the skip.
func SkipShort(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("left to make test-all")
	}
}

// SampleCount returns the number of random tries or cases of a test: n, or with -short a tenth of
// n, but at least 1.
func SampleCount(n int) int {
	if testing.Short() {
		return max(1, n/10)
	}
	return n
}

// ModelEnv is the environment variable in which make model passes the limit of states of each
// exploration; see StateLimit.
const ModelEnv = "REDLOCK_MODEL"

// StateLimit returns the limit of states of an exploration: the number in ModelEnv, but at least
// SampleCount(n) and at most full. Without ModelEnv it is SampleCount(n).
func StateLimit(n, full int) int {
	limit, _ := strconv.Atoi(os.Getenv(ModelEnv))
	return min(full, max(limit, SampleCount(n)))
}
