package meter

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Limits bound a run. A zero is no limit.
type Limits struct {
	// Time is how long a run may take, the calls of Go functions included.
	Time time.Duration
	// Bytes is what strings, tables, closures and coroutines of a run may add up to. What is freed on the way counts as well, so it
	// also bounds what is held at once.
	Bytes int
	// Depth is how deep calls may nest, in levels of Go calls, of some 50 bytes of stack each; zero, or more than 300,000, is that.
	Depth int
	// Started is when Time began; the zero time is the beginning of the run.
	Started time.Time
	// Pace has the run share the machine with others; nil has it run on.
	Pace Pace
}

// Pace lets a run go on, and may have it wait before. An error ends the run, whatever in it is protected.
type Pace interface {
	// Grow is called once, before a run becomes larger than SmallSteps, SmallBytes or SmallDepth allow.
	Grow() error
	// Pause is called after every slice of a run that has grown.
	Pause() error
}

// What a small run may come to: in steps, each of them a call or a turn of a loop, or 16 bytes gone through; in bytes, as they count for
// Limits; and in levels of Go calls. Lock scripts take a twentieth of that.
const (
	SmallSteps = 5_000
	SmallBytes = 64 << 10
	SmallDepth = 3_000
)

// sliceChecks is the length of a slice of a large run: 10,000 steps take some 500 µs.
const sliceChecks = 10

// Reasons for the end of a run, wrapped with the limit.
var (
	ErrTime   = errors.New("script ran for longer than")
	ErrMemory = errors.New("script allocated more than")
)

// Meter counts what a run spends. A nil meter counts nothing.
type Meter struct {
	ctx      context.Context
	limits   Limits
	started  time.Time
	fuel     int // bytes until the clock is read again
	bytes    int
	depth    int // of calls in all coroutines, in levels of Go calls
	lastAddr uint32
	pace     pacing
}

// pacing is how a run keeps to its Pace.
type pacing struct {
	small  bool // the run has a Pace, and has not grown yet
	checks int  // since it began or grew
}

// stepBytes is how many bytes are gone through in the time of a step.
const stepBytes = 16

// fuelPerCheck is a compromise: reading the clock costs as much as some ten steps, and a thousand steps take some 50 µs.
const fuelPerCheck = 1000 * stepBytes

// New begins to count; the objects of the run get the numbers after lastAddress.
func New(ctx context.Context, limits Limits, lastAddress uint32) Meter {
	m := Meter{ctx: ctx, limits: limits, fuel: fuelPerCheck, lastAddr: lastAddress}
	m.pace.small = limits.Pace != nil
	if m.started = limits.Started; limits.Time > 0 && limits.Started.IsZero() {
		m.started = time.Now()
	}
	return m
}

// Step is called once per call and turn of a loop.
func (m *Meter) Step() {
	if m.fuel -= stepBytes; m.fuel < 0 {
		m.check()
	}
}

// Steps charges Go code that does as much as so many steps.
func (m *Meter) Steps(n int) { m.Work(n * stepBytes) }

// Work charges Go code that is about to go through so many bytes.
func (m *Meter) Work(n int) {
	if m.fuel -= n; m.fuel < 0 {
		m.check()
	}
}

// check ends the run if its time is over. What was charged at once may be worth several checks.
func (m *Meter) check() {
	m.pace.checks += 1 - m.fuel/fuelPerCheck
	m.fuel = fuelPerCheck
	if m.ctx.Err() != nil {
		panic(Ended{context.Cause(m.ctx)})
	}
	if m.limits.Time > 0 && time.Since(m.started) > m.limits.Time {
		panic(Ended{fmt.Errorf("%w %v", ErrTime, m.limits.Time)})
	}
	m.share()
}

// share has the run grow, or pause, when it is time.
func (m *Meter) share() {
	switch {
	case m.limits.Pace == nil:
	case m.pace.small:
		if m.pace.checks >= SmallSteps*stepBytes/fuelPerCheck {
			m.grow()
		}
	case m.pace.checks >= sliceChecks:
		m.pace.checks = 0
		m.obey(m.limits.Pace.Pause())
	}
}

// grow has a small run become a large one.
func (m *Meter) grow() {
	m.pace = pacing{}
	m.obey(m.limits.Pace.Grow())
}

// obey ends the run where its Pace says so.
func (m *Meter) obey(err error) {
	if err != nil {
		panic(Ended{err})
	}
}

// Charge counts bytes before they are allocated, and ends the run if they are too many.
func (m *Meter) Charge(n int) {
	if m == nil {
		return
	}
	if n < 0 || m.limits.Bytes > 0 && n > m.limits.Bytes-m.bytes {
		panic(Ended{fmt.Errorf("%w %d bytes", ErrMemory, m.limits.Bytes)})
	}
	if m.pace.small && m.bytes+n > SmallBytes {
		m.grow()
	}
	m.bytes += n
	m.Work(n)
}

// Text counts a string that is about to be given to Lua, and returns it.
func (m *Meter) Text(text string) string {
	m.Charge(len(text) + StringSize)
	return text
}

// StringSize is what a string is charged beside its bytes.
const StringSize = 16

// Fits reports whether calls may nest so many levels deeper.
func (m *Meter) Fits(levels int) bool { return m.depth+levels <= m.limits.Depth }

// Deepens has a small run become a large one if it is about to nest so much deeper than those may.
func (m *Meter) Deepens(levels int) {
	if m.pace.small && m.depth+levels > SmallDepth {
		m.grow()
	}
}

// Nest counts levels that a call takes, or, negative, gives back.
func (m *Meter) Nest(levels int) { m.depth += levels }

// Spent is how many bytes the run has allocated.
func (m *Meter) Spent() int { return m.bytes }

// Address gives a new object its number.
func (m *Meter) Address() uint32 {
	m.lastAddr += 16
	return m.lastAddr
}

// Ended is the panic that ends a run and that no pcall catches.
type Ended struct {
	// Err is why.
	Err error
}
