// Package internal contains the tests of packages below internal/ that are too small for a test
// binary of their own.
package internal

import (
	"errors"
	"slices"
	"testing"
	"time"

	"redlock-proxy/internal/contained"
	"redlock-proxy/internal/pacing"
	"redlock-proxy/internal/redisinfo"
)

// TestContainedPanic checks that a panic becomes an error, and that an error stays the same.
func TestContainedPanic(t *testing.T) {
	own := errors.New("own")
	if err := contained.Run(func() error { return own }); err != own {
		t.Errorf("got %v", err)
	}
	err := contained.Run(func() error { panic("boom") })
	if panicked := new(contained.PanicError); !errors.As(err, &panicked) || err.Error() != "panic: boom" {
		t.Errorf("got %v", err)
	}
}

// TestPauses checks that each pause is twice as long as the previous pause, up to MaxPause, less a
// random part of at most half.
func TestPauses(t *testing.T) {
	p := pacing.Pauses{MinPause: 2 * time.Millisecond, MaxPause: 8 * time.Millisecond, Rand: func() float64 { return 0.5 }}
	for i, want := range []time.Duration{1500, 3000, 6000, 6000} {
		if got := p.Next(); got != want*time.Microsecond {
			t.Errorf("pause %d: %v", i, got)
		}
	}
	p.Reset()
	if got := p.Next(); got != 1500*time.Microsecond {
		t.Errorf("after a reset: %v", got)
	}
}

// TestRedisInfo checks that Parse reads a whole reply, and skips lines that are not fields.
func TestRedisInfo(t *testing.T) {
	fields := redisinfo.Parse("$99\r\n# Server\r\nredis_version:7.4.1\r\nexecutable:/a:b\r\n\r\n# Keyspace\r\ndb10:keys=1,expires=1\r\ndb2:keys=3,expires=0\r\ndbsize:1\r\n\r\n")
	for name, want := range map[string]string{"redis_version": "7.4.1", "executable": "/a:b", "db2": "keys=3,expires=0",
		"# Server": "", "run_id": ""} {
		if got := fields[name]; got != want {
			t.Errorf("%s: %q, not %q", name, got, want)
		}
	}
	if got := fields.Databases(); !slices.Equal(got, []int{2, 10}) {
		t.Errorf("databases %v", got)
	}
}
