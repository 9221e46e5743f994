package meter

import (
	"errors"
	"fmt"
)

// Limits bound a run. A zero is no limit.
type Limits struct {
	// Bytes is what strings, tables and closures of a run may add up to. What is freed on the way
	// counts as well, so it also bounds what is held at once.
	Bytes int
	// Depth is how deep calls may nest, in levels of Go calls, of some 50 bytes of stack each;
	// zero, or more than 300,000, is that.
	Depth int
	// Watch ends the run, and bounds its time; nil: nothing does.
	Watch *Watch
	// Pace has the run share the machine with others; nil has it run on.
	Pace Pace
	// Small is what the run may come to before it is a large one, for its Pace.
	Small Small
}

// Pace lets a run go on, and may have it wait before. An error ends the run, whatever in it is
// protected.
type Pace interface {
	// Grow is called once, before a run becomes larger than Small allows, or when it has run for a
	// whole slice of time.
	Grow() error
	// Pause is called after every slice of a run that has grown, by what it was charged and by
	// time.
	Pause() error
}

// Small is what a small run may come to: in steps, each of them the cost of a call; in bytes, as
// they count for Limits; and in levels of Go calls.
type Small struct{ Steps, Bytes, Depth int }

// sliceSteps is the length of a slice of a large run: that many steps take some 500 µs.
const sliceSteps = 10_000

// Reasons for the end of a run, wrapped with the limit.
var (
	ErrTime   = errors.New("script ran for longer than")
	ErrMemory = errors.New("script allocated more than")
)

// Meter counts what a run spends. A nil meter counts nothing.
type Meter struct {
	limits   Limits
	watch    *Watch
	fuel     int // bytes until the run grows, or its slice is over
	bytes    int
	depth    int // of calls, in levels of Go calls
	lastAddr uint32
	small    bool // the run has a Pace, and has not grown yet
}

// Step is what a call costs, in bytes gone through.
const Step = 16

// New begins to count; the objects of the run get the numbers after lastAddress.
func New(limits Limits, lastAddress uint32) Meter {
	m := Meter{limits: limits, watch: limits.Watch, fuel: sliceSteps * Step, lastAddr: lastAddress, small: limits.Pace != nil}
	if m.small {
		m.fuel = limits.Small.Steps * Step
	}
	if m.watch == nil {
		m.watch = &Watch{} // which nobody raises
	}
	return m
}

// Work charges code that is about to go through so many bytes, or to do as much. It is the one
// place where a run ends, or lets others run.
func (m *Meter) Work(n int) {
	if m.fuel -= n; int64(m.fuel) < m.watch.floor.Load() {
		m.check()
	}
}

// check ends the run if its watch says so; else its slice is over.
func (m *Meter) check() {
	m.obey(m.watch.Err())
	switch {
	case m.small:
		m.grow()
	case m.limits.Pace != nil:
		m.obey(m.limits.Pace.Pause())
	}
	m.renew()
}

// grow has a small run become a large one.
func (m *Meter) grow() {
	m.small = false
	m.obey(m.limits.Pace.Grow())
	m.renew()
}

// renew begins a slice.
func (m *Meter) renew() {
	m.fuel = sliceSteps * Step
	if m.limits.Watch != nil {
		m.watch.Renew()
	}
}

// obey ends the run if there is an error.
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
	if m.small && m.bytes+n > m.limits.Small.Bytes {
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
	if m.small && m.depth+levels > m.limits.Small.Depth {
		m.grow()
	}
}

// Nest counts levels that a call takes, or, negative, gives back.
func (m *Meter) Nest(levels int) { m.depth += levels }

// Depth is how many levels calls have taken.
func (m *Meter) Depth() int { return m.depth }

// Spent is how many bytes the run has allocated.
func (m *Meter) Spent() int { return m.bytes }

// Address gives a new object its number.
func (m *Meter) Address() uint32 {
	m.lastAddr += 16
	return m.lastAddr
}

// Protect runs f, and returns its error, or what ended it.
func Protect(f func() error) (err error) {
	defer func() {
		switch problem := recover().(type) {
		case nil:
		case Ended:
			err = problem.Err
		default:
			panic(problem)
		}
	}()
	return f()
}

// Ended is the panic that ends a run and that no pcall catches.
type Ended struct {
	// Err is why.
	Err error
}
