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
	// Allowance lets several runs share Time. If it is nil, the run has all of Time.
	Allowance *Allowance
	// Scheduler shares the machine with other runs. If it is nil, the run waits for no other run.
	Scheduler *Scheduler
	// ClientDisconnected reports whether the client has disconnected. A large run ends soon after
	// that. If ClientDisconnected is nil, no run ends for this reason.
	ClientDisconnected func() bool
	// Short ends the run, with ErrTooLarge, before it becomes large.
	Short bool
}

// disconnectGrace is the time that a large run may still take after its client has disconnected.
// The proxy cannot distinguish such a client from a client that has only closed its sending side,
// so both get errClientDisconnected.
const disconnectGrace = 20 * time.Millisecond

// errClientDisconnected is the error of a large run whose client has disconnected.
//
//lint:ignore ST1005 like the wording of Redis
var errClientDisconnected = errors.New("Script ended: the client closed the connection, or its sending side, before " +
	"the reply; keep it open until then...")

// Allowance counts the time that several consecutive runs have spent of their common Share.Time.
// The zero value means that no time is spent.
type Allowance struct{ spentTime time.Duration }

// The limits of a small run and of a small compilation. Lock scripts need a twentieth of these
// limits. A source of 32 KB compiles within them.
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
	j.watch.Start(ctx, j.watchdog(), s.Time, s.Allowance.spentTime)
	if err := j.takeSmallSlot(); err != nil {
		j.end()
		return nil, err
	}
	return j, nil
}

func (s *job) watchdog() *meter.Watchdog {
	if s.Scheduler == nil {
		return &meter.Watchdog{}
	}
	return &s.Scheduler.watchdog
}

func (s *job) limits(bytes int, smallLimits meter.SmallLimits) meter.Limits {
	l := meter.Limits{Bytes: bytes, Watch: &s.watch, SmallRun: smallLimits}
	if s.Scheduler != nil || s.Short {
		l.Pace = s
	}
	if s.Scheduler != nil {
		l.Depth = maxSharedDepth
	}
	return l
}

// LimitError is the error of a run or a compilation that reached a limit. The commands that the run
// has called must not take effect.
type LimitError struct {
	reply string
	// ClientDisconnected is true if the run ended because its client had disconnected.
	ClientDisconnected bool
}

// Error implements error. It returns the error reply for the client.
func (e *LimitError) Error() string { return e.reply }

// asLimitError returns a *LimitError if a run or a compilation reached a limit, else err.
func asLimitError(err error, sha string) error {
	switch {
	case errors.Is(err, ErrBusy):
		return &LimitError{reply: ErrBusy.Error()}
	case errors.Is(err, meter.ErrTime), errors.Is(err, meter.ErrMemory), errors.Is(err, errLimit),
		errors.Is(err, errKilled), errors.Is(err, errClientDisconnected):
		return &LimitError{fmt.Sprintf("ERR %v script: %s.", err, sha), errors.Is(err, errClientDisconnected)}
	}
	return err
}
