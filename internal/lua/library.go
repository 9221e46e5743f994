package lua

// Entry holds a name in a library and its value. Values of the types func(*Call) []Value and
// MeteredFunc become Lua functions.
type Entry struct {
	Name  string
	Value any
}

// MeteredFunc is a function that charges for its work itself. A call of any other function first
// charges for all bytes of the arguments.
type MeteredFunc func(*Call) []Value

// alias is the name of an earlier entry. Both entries are the same function, because a script can
// compare them.
type alias string

// Builder makes objects that all runs share. Its tables are frozen.
type Builder struct{ lastAddress uint32 }

// NewBuilder returns a Builder whose objects have addresses after those of the standard library.
func NewBuilder() *Builder { return &Builder{lastAddress: standardLib.lastAddress} }

func (b *Builder) newAddress() uint32 {
	b.lastAddress += 16
	return b.lastAddress
}

// Function returns a Lua function. run returns the result of Call.Return, or nil for no value. run
// must not keep the Call.
func (b *Builder) Function(run func(*Call) []Value) *Builtin {
	return &Builtin{run: run, address: b.newAddress()}
}

// value returns the Lua function for a Go function, and any other value unchanged.
func (b *Builder) value(v any) Value {
	switch run := v.(type) {
	case func(*Call) []Value:
		return b.Function(run)
	case MeteredFunc:
		f := b.Function(run)
		f.metered = true
		return f
	}
	return v
}

// Table returns a frozen table with these entries.
func (b *Builder) Table(entries ...Entry) *Table {
	t := &Table{address: b.newAddress()}
	for _, e := range entries {
		v := e.Value
		if name, ok := v.(alias); ok {
			v = t.Get(string(name))
		}
		t.set(e.Name, b.value(v))
	}
	t.frozen = true
	return t
}

// WithMeta sets the metatable of a table that is not in use yet, and returns the table.
func (b *Builder) WithMeta(t, meta *Table) *Table {
	t.meta = meta
	return t
}

// standardLib is the part of Lua's own library that scripts in Redis have. It never changes.
var standardLib = newStandardLibrary()

type standardLibrary struct {
	globals     []Entry
	stringMeta  *Table
	lastAddress uint32
}

func newStandardLibrary() (l standardLibrary) {
	b := &Builder{}
	text := b.Table(stringLibrary...)
	l.stringMeta = b.Table(Entry{"__index", text})
	l.globals = append(baseLibrary(b),
		Entry{"string", text},
		Entry{"table", b.Table(tableLibrary...)},
		Entry{"math", b.Table(mathLibrary...)},
		Entry{"_VERSION", "Lua 5.1"},
	)
	l.lastAddress = b.lastAddress
	return l
}

// StandardEntries returns the entries of Lua's own library that scripts in Redis have. It excludes
// pcall and math.random, which Redis replaces, and _G.
func StandardEntries() []Entry { return standardLib.globals }

// CopyWith returns a copy of a library with more entries, which may replace existing entries.
func (b *Builder) CopyWith(library *Table, extra ...Entry) *Table {
	var entries []Entry
	for key, value, _ := library.Next(nil); key != nil; key, value, _ = library.Next(key) {
		entries = append(entries, Entry{key.(string), value})
	}
	return b.Table(append(entries, extra...)...)
}

// NewGlobals returns a table for a run's global variables, with room for ownCount variables of the
// run. Reads of other names go to sharedGlobals.
func (s *State) NewGlobals(sharedGlobals *Table, ownCount int) *Table {
	t := s.NewTable()
	t.reserve(ownCount)
	t.fallback, t.meta = sharedGlobals, sharedGlobals.meta
	return t
}
