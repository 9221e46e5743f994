package redistest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// ErrNoFakeTime is returned when there is no libfaketime to give a server a clock of its own.
var ErrNoFakeTime = errors.New("libfaketime is not installed: apt-get install libfaketime")

// Clock is a clock that servers may have in place of the machine's (Options.Clock), and that can be
// set while they run. Their monotonic clock stays true, as it does where somebody sets the time.
type Clock struct {
	library string
	file    string // says how it differs from the machine's; read with every look at the clock
}

// NewClock returns a clock that is right, and keeps its file in dir; ErrNoFakeTime when libfaketime
// is missing.
func NewClock(dir string) (*Clock, error) {
	libraries, err := filepath.Glob("/usr/lib/*/faketime/libfaketime.so.1")
	if err != nil || len(libraries) == 0 {
		return nil, errors.Join(ErrNoFakeTime, err)
	}
	c := &Clock{library: libraries[0], file: filepath.Join(dir, "clock")}
	return c, c.Set(0)
}

// Set has it go ahead of the machine's clock by so much, at once and whole.
func (c *Clock) Set(ahead time.Duration) error { return c.write(seconds(ahead)) }

// Drift has it go so many times as fast as the machine's clock, in servers that are started from
// now on.
func (c *Clock) Drift(rate float64) error {
	return c.write("+0 x" + strconv.FormatFloat(rate, 'f', -1, 64))
}

// seconds are what libfaketime takes for an offset.
func seconds(d time.Duration) string { return fmt.Sprintf("%+.3f", d.Seconds()) }

// write replaces the file as a whole, because servers read it at any moment.
func (c *Clock) write(text string) error {
	if err := os.WriteFile(c.file+".new", []byte(text+"\n"), 0o600); err != nil {
		return err
	}
	return os.Rename(c.file+".new", c.file)
}

// environment is that of a server with this clock; nil means the environment of this process. The C
// library's malloc comes before jemalloc's: that one asks for the time while libfaketime is not
// ready yet, and both give up.
func (c *Clock) environment() []string {
	if c == nil {
		return nil
	}
	return append(os.Environ(), "LD_PRELOAD="+c.library+" libc.so.6", "FAKETIME_TIMESTAMP_FILE="+c.file, "FAKETIME_NO_CACHE=1",
		"FAKETIME_DONT_FAKE_MONOTONIC=1")
}
