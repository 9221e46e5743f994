package script

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"redlock-proxy/internal/lua/meter"
)

// Share limits how much of the machine a run or a compilation may use, and for how long.
type Share struct {
	// Time limits how long the run may take, including its calls and its waits. Zero means
	// DefaultTime; a negative value means no limit.
	Time time.Duration
	// Allowance is the part of Time that several runs share; nil: the run has all of it.
	Allowance *Allowance
	// Pace shares the machine with other runs; nil: it is not shared.
	Pace *Pace
	// ClientLeft reports whether the client has left: a large run ends soon after that. nil: nobody
	// knows.
	ClientLeft func() bool
	// Short ends the run, with ErrTooLarge, before it becomes large.
	Short bool
}

// leftTime is the time that a large run may still take after its client has left. A client that has
// only stopped sending cannot be distinguished from such a client, and gets the error.
const leftTime = 20 * time.Millisecond

// errClientLeft is the error of a large run whose client has left.
//
//lint:ignore ST1005 like the wording of Redis
var errClientLeft = errors.New("Script ended: the client closed the connection, or its sending side, before " +
	"the reply; keep it open until then...")

// Allowance is the time that several consecutive runs have together. The zero value is the whole
// time.
type Allowance struct{ spent time.Duration }

// The limits of a small run and of a small compilation. Lock scripts need a twentieth of them; a
// source of 32 KB compiles within them.
var (
	smallRun     = meter.SmallLimits{Steps: 5_000, Bytes: 64 << 10, Depth: 3_000}
	smallCompile = meter.SmallLimits{Steps: 120_000, Bytes: 2 << 20, Depth: 3_000}
)

// ErrTooLarge ends a run or a compilation with Share.Short that is about to become large.
var ErrTooLarge = errors.New("the script takes too long to run or compile without a wait")

// begin waits for a slot. The caller must end the job.
func (s Share) begin(ctx context.Context) (*job, error) {
	s.Time = cmp.Or(s.Time, DefaultTime)
	if s.Allowance == nil {
		s.Allowance = &Allowance{}
	}
	j := &job{Share: s}
	j.watch.Start(ctx, j.watchdog(), s.Time, s.Allowance.spent)
	if err := j.takeSmall(); err != nil {
		j.end()
		return nil, err
	}
	return j, nil
}

func (s *job) watchdog() *meter.Watchdog {
	if s.Pace == nil {
		return &meter.Watchdog{}
	}
	return &s.Pace.watchdog
}

func (s *job) limits(bytes int, small meter.SmallLimits) meter.Limits {
	l := meter.Limits{Bytes: bytes, Watch: &s.watch, Small: small}
	if s.Pace != nil || s.Short {
		l.Pace = s
	}
	if s.Pace != nil {
		l.Depth = maxSharedDepth
	}
	return l
}

// LimitError is the error of a run or a compilation that reached a limit. The commands that it has
// called must not take effect.
type LimitError struct {
	reply string
	// ClientLeft is set if the limit was that of a run whose client had left.
	ClientLeft bool
}

// Error implements error. It returns the error reply for the client.
func (e *LimitError) Error() string { return e.reply }

// asLimitError returns a *LimitError if a run or a compilation reached a limit, else err.
func asLimitError(err error, sha string) error {
	switch {
	case errors.Is(err, ErrBusy):
		return &LimitError{reply: ErrBusy.Error()}
	case errors.Is(err, meter.ErrTime), errors.Is(err, meter.ErrMemory), errors.Is(err, errLimit),
		errors.Is(err, errKilled), errors.Is(err, errClientLeft):
		return &LimitError{fmt.Sprintf("ERR %v script: %s.", err, sha), errors.Is(err, errClientLeft)}
	}
	return err
}
