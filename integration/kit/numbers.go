package kit

import (
	"os"
	"strconv"
	"testing"
	"time"

	"redlock-proxy/internal/redistest"
)

// SeedEnv names the environment variable with a seed, which repeats the random choices of a run.
const SeedEnv = "REDLOCK_SEED"

// NumberFrom returns the number in an environment variable, or preset if it is not set.
func NumberFrom(t *testing.T, name string, preset uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return preset
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// SizeFrom returns the size of a random test, like NumberFrom. With -short, the preset is divided
// by ten.
func SizeFrom(t *testing.T, name string, preset uint64) uint64 {
	t.Helper()
	return NumberFrom(t, name, uint64(redistest.SampleCount(int(preset))))
}

// ParseNumber parses an integer. An error ends the test.
func ParseNumber(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	Must(t, err)
	return n
}

// Millis returns a duration in milliseconds, as an argument of a command.
func Millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
