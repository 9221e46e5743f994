package redistest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// ErrNoFakeTime means that libfaketime, which gives a server a clock of its own, is not installed.
var ErrNoFakeTime = errors.New("libfaketime is not installed; run apt-get install libfaketime")

// Clock gives servers a wall clock in place of the machine's clock; see Options.Clock. A test can
// set the clock while the servers run, as an operator sets the time. A Clock does not change the
// monotonic clock of the servers.
type Clock struct {
	library string
	file    string // path of the file with the offset from the machine's clock
}

// NewClock returns a clock that shows the machine's time, and keeps its file in dir. The error is
// ErrNoFakeTime if libfaketime is missing.
func NewClock(dir string) (*Clock, error) {
	libraries, err := filepath.Glob("/usr/lib/*/faketime/libfaketime.so.1")
	if err != nil || len(libraries) == 0 {
		return nil, errors.Join(ErrNoFakeTime, err)
	}
	c := &Clock{library: libraries[0], file: filepath.Join(dir, "clock")}
	return c, c.Set(0)
}

// Set immediately puts the clock ahead of the machine's clock, or behind it if offset is negative.
func (c *Clock) Set(offset time.Duration) error { return c.write(formatOffset(offset)) }

// Drift makes the clock run at rate times the speed of the machine's clock, in servers that start
// after the call.
func (c *Clock) Drift(rate float64) error {
	return c.write("+0 x" + strconv.FormatFloat(rate, 'f', -1, 64))
}

// formatOffset returns d in libfaketime's format of offsets.
func formatOffset(d time.Duration) string { return fmt.Sprintf("%+.3f", d.Seconds()) }

// write replaces the file atomically, because servers read it at any time.
func (c *Clock) write(text string) error {
	if err := os.WriteFile(c.file+".new", []byte(text+"\n"), 0o600); err != nil {
		return err
	}
	return os.Rename(c.file+".new", c.file)
}

// environment returns the environment of a server with this clock; nil means the environment of
// this process. The environment loads the C library's malloc before jemalloc's. jemalloc would
// request the time before libfaketime is ready, and then both would fail.
func (c *Clock) environment() []string {
	if c == nil {
		return nil
	}
	return append(os.Environ(), "LD_PRELOAD="+c.library+" libc.so.6",
		"FAKETIME_TIMESTAMP_FILE="+c.file, "FAKETIME_NO_CACHE=1", "FAKETIME_DONT_FAKE_MONOTONIC=1")
}
