package lua

import "redlock-proxy/internal/lua/meter"

// State is one run. It belongs to one goroutine and is used once.
type State struct {
	meter   meter.Meter
	globals *Table
	// strings is the metatable of all strings.
	strings *Table
	// Host is what the Go functions of the host find their run by.
	Host any
	main thread
}

// NewState prepares a run.
func NewState(limits meter.Limits) *State {
	s := &State{strings: standard.stringMeta}
	if limits.Depth == 0 || limits.Depth > maxDepth {
		limits.Depth = maxDepth
	}
	s.meter = meter.New(limits, firstAddress)
	s.main.state = s
	return s
}

// firstAddress leaves room for the objects that runs share.
const firstAddress = 1 << 20

// NewTable makes an empty table that is charged to the run.
func (s *State) NewTable() *Table {
	s.meter.Charge(tableSize)
	return &Table{address: s.meter.Address(), meter: &s.meter}
}

// NewArray makes a table of values, none of them nil, charged to the run.
func (s *State) NewArray(values []Value) *Table {
	t := s.NewTable()
	t.fill(values)
	return t
}

// Set gives a key of a table of this run its value, without metamethods. The key is not nil and not
// NaN.
func (s *State) Set(t *Table, key, value Value) { t.set(key, value) }

// Charge counts bytes that a Go function is about to allocate for Lua.
func (s *State) Charge(bytes int) { s.meter.Charge(bytes) }

// Work counts bytes that a Go function is about to go through and does not allocate.
func (s *State) Work(bytes int) { s.meter.Work(bytes) }

// Text counts a string that is about to be given to Lua, and returns it.
func (s *State) Text(text string) string { return s.meter.Text(text) }

// Run executes a chunk with these global variables, and returns its first value. The error is an
// *Error, ErrMemory, what its Watch was ended with, such as ErrTime, or what a Go function ended
// the run with (Call.Abort).
func (s *State) Run(chunk *Chunk, globals *Table) (value Value, err error) {
	s.globals = globals
	err = s.Protect(func() {
		value = first(s.main.invoke(&Closure{proto: chunk.proto, env: globals}, nil, nil))
	})
	return value, err
}

// Protect runs f, which may use the run's tables, and returns the error that ended it.
func (s *State) Protect(f func()) (err error) {
	defer func() {
		if problem := recover(); problem != nil {
			err = failure(problem)
		}
	}()
	f()
	return nil
}

// failure is a recovered panic as an error. What is neither an error of Lua nor the end of a run is
// a mistake of ours.
func failure(problem any) error {
	switch p := problem.(type) {
	case *Error:
		return p
	case meter.Ended:
		return p.Err
	}
	panic(problem)
}
