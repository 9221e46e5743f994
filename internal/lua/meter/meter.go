package meter

import (
	"errors"
	"fmt"
)

// Limits holds the limits of a run. Zero means no limit, except for Depth.
type Limits struct {
	// Bytes limits the total size of all strings, tables and closures that a run makes, in bytes.
	// It includes freed objects, and so also limits the memory in use.
	Bytes int
	// Depth is the maximum nesting of calls, in levels of Go calls of about 50 bytes of stack each.
	// Zero, or more than 300,000, means 300,000.
	Depth int
	// Watch ends the run, and limits its time. nil means no limit.
	Watch *Watch
	// Pace makes the run share the machine with other runs. nil means that the run never pauses.
	Pace Pace
	// SmallRun holds the limits below which the run counts as small for its Pace.
	SmallRun SmallLimits
}

// Pace decides when a run continues, and can make it wait. An error ends the run, and pcall does
// not catch it.
type Pace interface {
	// Grow runs once, before a run exceeds SmallRun or after its first time slice.
	Grow() error
	// Pause runs after every slice of a large run. Work or time ends a slice.
	Pause() error
}

// SmallLimits holds the limits of a small run. A step is the cost of a call. Bytes counts like
// Limits.Bytes. Depth is in levels of Go calls.
type SmallLimits struct{ Steps, Bytes, Depth int }

// sliceSteps is the length of a slice of a large run, about 500 µs.
const sliceSteps = 10_000

// The errors of runs that reach a limit. An error that wraps one of them adds the limit to the
// text.
var (
	ErrTime   = errors.New("script ran for longer than")
	ErrMemory = errors.New("script allocated more than")
)

// Meter counts the memory and the work of a run. Charge and ChargeText accept a nil meter.
type Meter struct {
	limits   Limits
	watch    *Watch
	fuel     int // work until the run grows or its slice ends, in bytes processed
	bytes    int // allocated so far
	depth    int // nesting of calls, in levels of Go calls
	lastAddr uint32
	isSmall  bool // the run has a Pace, and has not grown yet
}

// Step is the cost of a call, in bytes processed.
const Step = 16

// New returns the meter of a new run. The run's objects get the addresses after lastAddress.
func New(limits Limits, lastAddress uint32) Meter {
	m := Meter{
		limits: limits, watch: limits.Watch, fuel: sliceSteps * Step,
		lastAddr: lastAddress, isSmall: limits.Pace != nil,
	}
	if m.isSmall {
		m.fuel = limits.SmallRun.Steps * Step
	}
	if m.watch == nil {
		m.watch = &Watch{} // never ends the run
	}
	return m
}

// ChargeWork charges the meter for n bytes that the caller is going to process, or for as much
// other work. A run pauses, or ends because of its Watch, only in ChargeWork.
func (m *Meter) ChargeWork(n int) {
	if m.fuel -= n; int64(m.fuel) < m.watch.minFuel.Load() {
		m.check()
	}
}

// check ends the run if the watch has a cause to end it. Otherwise check turns a small run into a
// large run, or ends the slice of a large run.
func (m *Meter) check() {
	m.endOnError(m.watch.Err())
	switch {
	case m.isSmall:
		m.grow()
	case m.limits.Pace != nil:
		m.endOnError(m.limits.Pace.Pause())
	}
	m.beginSlice()
}

// grow turns a small run into a large run.
func (m *Meter) grow() {
	m.isSmall = false
	m.endOnError(m.limits.Pace.Grow())
	m.beginSlice()
}

// beginSlice begins a new slice.
func (m *Meter) beginSlice() {
	m.fuel = sliceSteps * Step
	if m.limits.Watch != nil {
		m.watch.BeginSlice()
	}
}

// endOnError ends the run if err is not nil.
func (m *Meter) endOnError(err error) {
	if err != nil {
		panic(RunEnd{err})
	}
}

// Charge counts n bytes that the caller is going to allocate. It ends the run if the total exceeds
// the limit.
func (m *Meter) Charge(n int) {
	if m == nil {
		return
	}
	if n < 0 || m.limits.Bytes > 0 && n > m.limits.Bytes-m.bytes {
		panic(RunEnd{fmt.Errorf("%w %d bytes", ErrMemory, m.limits.Bytes)})
	}
	if m.isSmall && m.bytes+n > m.limits.SmallRun.Bytes {
		m.grow()
	}
	m.bytes += n
	m.ChargeWork(n)
}

// ChargeText counts a new string of the run, and returns it.
func (m *Meter) ChargeText(text string) string {
	m.Charge(len(text) + StringSize)
	return text
}

// StringSize is the charge for each string in addition to its bytes.
const StringSize = 16

// AllowsDepth reports whether calls may nest deeper by the given number of levels.
func (m *Meter) AllowsDepth(levels int) bool { return m.depth+levels <= m.limits.Depth }

// GrowForDepth turns a small run into a large run if additional levels of nesting would exceed
// SmallRun.
func (m *Meter) GrowForDepth(levels int) {
	if m.isSmall && m.depth+levels > m.limits.SmallRun.Depth {
		m.grow()
	}
}

// AddDepth adds levels of nesting when a call begins. When the call ends, a negative number removes
// the levels.
func (m *Meter) AddDepth(levels int) { m.depth += levels }

// Depth returns the nesting of the current call.
func (m *Meter) Depth() int { return m.depth }

// AllocatedBytes returns the number of bytes that the run has allocated.
func (m *Meter) AllocatedBytes() int { return m.bytes }

// NewAddress returns the address for a new object.
func (m *Meter) NewAddress() uint32 {
	m.lastAddr += 16
	return m.lastAddr
}

// Protect runs f, and returns its error, or the error of the RunEnd that ended it.
func Protect(f func() error) (err error) {
	defer func() {
		switch problem := recover().(type) {
		case nil:
		case RunEnd:
			err = problem.Err
		default:
			panic(problem)
		}
	}()
	return f()
}

// RunEnd is the panic that ends a run. pcall does not catch it.
type RunEnd struct {
	// Err is the reason.
	Err error
}
