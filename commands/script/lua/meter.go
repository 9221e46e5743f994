package lua

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
}

// Reasons for the end of a run, wrapped with the limit.
var (
	ErrTime   = errors.New("script ran for longer than")
	ErrMemory = errors.New("script allocated more than")
)

// meter counts what a run spends. A nil meter counts nothing.
type meter struct {
	ctx      context.Context
	limits   Limits
	started  time.Time
	fuel     int // steps until the clock is read again
	bytes    int
	depth    int // of calls in all coroutines, in levels of Go calls
	lastAddr uint32
}

// fuelPerCheck is a compromise: reading the clock costs as much as some ten steps, and a thousand steps take some 50 µs.
const fuelPerCheck = 1000

// step is called once per call and turn of a loop.
func (m *meter) step() {
	if m.fuel--; m.fuel < 0 {
		m.check()
	}
}

// work charges Go code that goes through so many bytes or values.
func (m *meter) work(n int) {
	if m.fuel -= n >> 4; m.fuel < 0 {
		m.check()
	}
}

// check ends the run if its time is over.
func (m *meter) check() {
	m.fuel = fuelPerCheck
	if m.ctx.Err() != nil {
		panic(aborted{context.Cause(m.ctx)})
	}
	if m.limits.Time > 0 && time.Since(m.started) > m.limits.Time {
		panic(aborted{fmt.Errorf("%w %v", ErrTime, m.limits.Time)})
	}
}

// charge counts bytes before they are allocated, and ends the run if they are too many.
func (m *meter) charge(n int) {
	if m == nil {
		return
	}
	if n < 0 || m.limits.Bytes > 0 && n > m.limits.Bytes-m.bytes {
		panic(aborted{fmt.Errorf("%w %d bytes", ErrMemory, m.limits.Bytes)})
	}
	m.bytes += n
	m.work(n)
}

// address gives a new object its number.
func (m *meter) address() uint32 {
	m.lastAddr += 16
	return m.lastAddr
}

// aborted is the panic that ends a run and that no pcall catches.
type aborted struct{ err error }
