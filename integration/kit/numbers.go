package kit

import (
	"os"
	"strconv"
	"testing"
	"time"

	"redlock-proxy/internal/redistest"
)

// SeedEnv is the environment variable that repeats the random choices of a run.
const SeedEnv = "REDLOCK_SEED"

// NumberFrom reads an environment variable; preset where it is not set.
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

// SizeFrom is NumberFrom for how much a test does at random: with -short a tenth of the preset.
func SizeFrom(t *testing.T, name string, preset uint64) uint64 {
	t.Helper()
	return NumberFrom(t, name, uint64(redistest.Sampled(int(preset))))
}

// Number reads a number in a text that the proxy wrote.
func Number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	Must(t, err)
	return n
}

// Millis is a time as commands have it, in milliseconds.
func Millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
