package lua

import "redlock-proxy/internal/lua/meter"

// State holds one run. It is for one goroutine, and for one use.
type State struct {
	meter   meter.Meter
	globals *Table
	// stringMeta is the metatable of all strings.
	stringMeta *Table
	// Host holds the data of the host's Go functions for this run.
	Host any
	main thread
}

// NewState returns the state of a new run.
func NewState(limits meter.Limits) *State {
	s := &State{stringMeta: standardLib.stringMeta}
	if limits.Depth == 0 || limits.Depth > maxDepth {
		limits.Depth = maxDepth
	}
	s.meter = meter.New(limits, firstAddress)
	s.main.state = s
	return s
}

// firstAddress is above the addresses of the objects that all runs share.
const firstAddress = 1 << 20

// NewTable returns an empty table, and charges it to the run.
func (s *State) NewTable() *Table {
	s.meter.Charge(tableSize)
	return &Table{address: s.meter.NewAddress(), meter: &s.meter}
}

// NewArray returns a table of values, none of which is nil, and charges it to the run.
func (s *State) NewArray(values []Value) *Table {
	t := s.NewTable()
	t.fill(values)
	return t
}

// Set sets the value of a key in a table of this run, without metamethods. The key must not be nil
// or NaN.
func (s *State) Set(t *Table, key, value Value) { t.set(key, value) }

// Charge counts bytes that a Go function will allocate for Lua.
func (s *State) Charge(bytes int) { s.meter.Charge(bytes) }

// Work counts bytes that a Go function will process but not allocate.
func (s *State) Work(bytes int) { s.meter.ChargeWork(bytes) }

// Text counts a new string of the run, and returns it.
func (s *State) Text(text string) string { return s.meter.ChargeText(text) }

// Run executes a chunk with these global variables, and returns its first value. The error is an
// *Error, an error that wraps meter.ErrMemory, or the error that a Go function passed to
// Call.Abort. If a Watch or a Pace ended the run, the error is its cause, such as meter.ErrTime.
func (s *State) Run(chunk *Chunk, globals *Table) (value Value, err error) {
	s.globals = globals
	err = s.Protect(func() {
		value = firstValue(s.main.invoke(&Closure{proto: chunk.proto, env: globals}, nil, nil))
	})
	return value, err
}

// Protect runs f, which may use the run's tables, and returns the error that ended f.
func (s *State) Protect(f func()) (err error) {
	defer func() {
		if problem := recover(); problem != nil {
			err = recoveredError(problem)
		}
	}()
	f()
	return nil
}

// recoveredError returns the error of a recovered panic: a Lua error or the end of the run. It
// repeats any other panic, which is a bug.
func recoveredError(problem any) error {
	switch p := problem.(type) {
	case *Error:
		return p
	case meter.RunEnd:
		return p.Err
	}
	panic(problem)
}
