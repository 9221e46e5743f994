package lua

// Entry is a name in a library and what it stands for: a value, or a func(*Call) []Value or
// Metered, which becomes a function of Lua.
type Entry struct {
	Name  string
	Value any
}

// Metered is a function that charges for what it does with its arguments. Any other is charged for
// all their bytes before it runs.
type Metered func(*Call) []Value

// alias stands for an entry before it that has a second name: both are the same function, as a
// script can compare them.
type alias string

// Builder makes objects that all runs share. Its tables are frozen.
type Builder struct{ last uint32 }

// NewBuilder makes a Builder whose objects differ from those of the standard library.
func NewBuilder() *Builder { return &Builder{last: standard.lastAddress} }

func (b *Builder) address() uint32 {
	b.last += 16
	return b.last
}

// Function makes a function of Lua. run returns what Call.Return gives, or nil for no value, and
// keeps nothing of the Call.
func (b *Builder) Function(run func(*Call) []Value) *Builtin {
	return &Builtin{run: run, address: b.address()}
}

// value is a value, or the function of Lua for one of Go.
func (b *Builder) value(v any) Value {
	switch run := v.(type) {
	case func(*Call) []Value:
		return b.Function(run)
	case Metered:
		f := b.Function(run)
		f.metered = true
		return f
	}
	return v
}

// Table makes a frozen table.
func (b *Builder) Table(entries ...Entry) *Table {
	t := &Table{address: b.address()}
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

// WithMeta gives a table that is not yet in use a metatable.
func (b *Builder) WithMeta(t, meta *Table) *Table {
	t.meta = meta
	return t
}

// standard is the part of Lua's own library that scripts in Redis have. It never changes.
var standard = newStandard()

type standardLibrary struct {
	globals     []Entry
	stringMeta  *Table
	lastAddress uint32
}

func newStandard() (l standardLibrary) {
	b := &Builder{}
	text := b.Table(stringLibrary...)
	l.stringMeta = b.Table(Entry{"__index", text})
	l.globals = append(baseLibrary(b),
		Entry{"string", text},
		Entry{"table", b.Table(tableLibrary...)},
		Entry{"math", b.Table(mathLibrary...)},
		Entry{"_VERSION", "Lua 5.1"},
	)
	l.lastAddress = b.last
	return l
}

// Standard are the names of Lua's own library that scripts in Redis have, but for pcall and
// math.random, which Redis makes its own, and _G.
func Standard() []Entry { return standard.globals }

// Extended is a library with more names, or with others for names that it has.
func (b *Builder) Extended(library *Table, more ...Entry) *Table {
	var entries []Entry
	for key, value, _ := library.Next(nil); key != nil; key, value, _ = library.Next(key) {
		entries = append(entries, Entry{key.(string), value})
	}
	return b.Table(append(entries, more...)...)
}

// NewGlobals makes a table with room for so many global variables of a run's own; what is in shared
// can be read in it.
func (s *State) NewGlobals(shared *Table, own int) *Table {
	t := s.NewTable()
	t.reserve(own)
	t.under, t.meta = shared, shared.meta
	return t
}
