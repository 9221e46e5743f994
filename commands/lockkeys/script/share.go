package script

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"redlock-proxy/internal/lua/meter"
)

// Share is what a run, or the compilation of a script, has of the machine, and by what it ends.
type Share struct {
	// Time is how long it may take, its calls and its waits included; zero stands for DefaultTime,
	// a negative one for no limit.
	Time time.Duration
	// Allowance is what it and others have together of Time; nil: it has all of it.
	Allowance *Allowance
	// Pace shares the machine with others; nil: it need not be shared.
	Pace *Pace
	// Short gives it up, with ErrLong, where it is about to be no small one.
	Short bool
}

// Allowance is the time that several runs, one after another, have together. The zero value is all
// of it.
type Allowance struct{ spent time.Duration }

// What a small run and a small compilation may come to. Lock scripts take a twentieth of that; a
// source of 32 KB compiles so.
var (
	smallRun     = meter.Small{Steps: 5_000, Bytes: 64 << 10, Depth: 3_000}
	smallCompile = meter.Small{Steps: 120_000, Bytes: 2 << 20, Depth: 3_000}
)

// ErrLong is why what was to be short was given up.
var ErrLong = errors.New("this takes too long to be done at once")

// begin waits for a slot. Who gets one ends the stay.
func (s Share) begin(ctx context.Context) (*stay, error) {
	s.Time = cmp.Or(s.Time, DefaultTime)
	if s.Allowance == nil {
		s.Allowance = &Allowance{}
	}
	held := &stay{Share: s}
	held.watch.Start(ctx, held.dog(), s.Time, s.Allowance.spent)
	if err := held.enter(); err != nil {
		held.end()
		return nil, err
	}
	return held, nil
}

// dog watches the run.
func (s *stay) dog() *meter.Watchdog {
	if s.Pace == nil {
		return &meter.Watchdog{}
	}
	return &s.Pace.dog
}

// limits are those of a run.
func (s *stay) limits(bytes int, small meter.Small) meter.Limits {
	l := meter.Limits{Bytes: bytes, Watch: &s.watch, Small: small}
	if s.Pace != nil || s.Short {
		l.Pace = s
	}
	if s.Pace != nil {
		l.Depth = maxSharedDepth
	}
	return l
}

// LimitError says that a run or a compilation was stopped at one of its limits, wherever that was.
// What it had called must not count.
type LimitError struct{ reply string }

// Error is the error reply for the client.
func (e *LimitError) Error() string { return e.reply }

// limited is the *LimitError for what ended the run, or the compilation, of a script; err itself,
// if that is no limit.
func limited(err error, sha string) error {
	switch {
	case errors.Is(err, ErrBusy):
		return &LimitError{ErrBusy.Error()}
	case errors.Is(err, meter.ErrTime), errors.Is(err, meter.ErrMemory), errors.Is(err, errLimit), errors.Is(err, errKilled):
		return &LimitError{fmt.Sprintf("ERR %v script: %s.", err, sha)}
	}
	return err
}
