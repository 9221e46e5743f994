package lua

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// The official tests need the functions below, which scripts in Redis do not have.

// officialGlobals returns the global variables for a test file in dir.
func officialGlobals(s *State, dir string) *Table {
	t := s.NewTable()
	for _, e := range StandardEntries() {
		v := e.Value
		if library, ok := v.(*Table); ok { // the test files change libraries
			v = s.copyTable(library)
		}
		s.Set(t, e.Name, v)
	}
	b := NewBuilder()
	define := func(t *Table, name string, run func(*Call) []Value) { s.Set(t, name, b.Function(run)) }
	noResults := func(*Call) []Value { return nil }
	define(t, "print", noResults)
	define(t, "pcall", hostPCall)
	define(t, "getfenv", hostGetEnv)
	define(t, "setfenv", hostSetEnv)
	random := rand.New(rand.NewPCG(1, 2))
	mathTable := t.Get("math").(*Table)
	define(mathTable, "randomseed", noResults)
	define(mathTable, "random", func(c *Call) []Value { return hostRandom(c, random) })
	files := hostFiles{dir: dir, parts: new([]string)}
	define(t, "require", func(c *Call) []Value { return files.run(c, c.WantString(1)+".lua") })
	define(t, "dofile", files.runWritten)
	define(t, "loadfile", files.load)
	osTable, ioTable, debugTable, coroutineTable := s.NewTable(), s.NewTable(), s.NewTable(), s.NewTable()
	define(coroutineTable, "yield", noResults)
	define(osTable, "clock", func(c *Call) []Value { return c.Return(float64(time.Now().UnixMilli()) / 1000) })
	define(osTable, "setlocale", hostLocale)
	define(osTable, "tmpname", func(c *Call) []Value { return c.Return("written.lua") })
	define(osTable, "remove", func(c *Call) []Value { return c.Return(true) })
	define(ioTable, "output", noResults)
	define(ioTable, "close", noResults)
	define(ioTable, "tmpfile", hostTemporaryFile)
	define(ioTable, "write", files.write)
	stream, streamMeta := s.NewTable(), s.NewTable()
	define(streamMeta, "__gc", func(c *Call) []Value { c.WantTable(1); return nil })
	stream.meta = streamMeta
	s.Set(ioTable, "stdin", stream)
	define(debugTable, "getinfo", hostInfo)
	define(debugTable, "traceback", func(c *Call) []Value { return c.Return(describe(c.Arg(1)) + hostTrace(c)) })
	s.Set(t, "coroutine", coroutineTable)
	s.Set(t, "os", osTable)
	s.Set(t, "io", ioTable)
	s.Set(t, "debug", debugTable)
	s.Set(t, "_G", t)
	return t
}

func (s *State) copyTable(from *Table) *Table {
	t := s.NewTable()
	for key, value, _ := from.Next(nil); key != nil; key, value, _ = from.Next(key) {
		s.Set(t, key, value)
	}
	return t
}

func hostPCall(c *Call) []Value {
	results, luaErr := c.ProtectedCall(c.WantAny(1), c.Args()[1:])
	if luaErr != nil {
		return c.Return(false, luaErr.Value)
	}
	return c.Return(append([]Value{true}, results...)...)
}

// hostLocale implements os.setlocale. Only the locale C exists.
func hostLocale(c *Call) []Value {
	if name := c.OptString(1, "C"); name != "C" {
		return c.Return(nil)
	}
	return c.Return("C")
}

func hostRandom(c *Call, random *rand.Rand) []Value {
	low := 1
	switch c.NArgs() {
	case 0:
		return c.Return(random.Float64())
	case 2:
		low = c.WantInt32(1)
	}
	high := c.WantInt32(c.NArgs())
	if low > high {
		c.RaiseBadArg(c.NArgs(), "interval is empty")
	}
	return c.Return(float64(low + random.IntN(high-low+1)))
}

// hostFunction returns the function in the i-th argument. If the argument is a level, it returns
// the function and the call at that level; level 1 is the caller.
func hostFunction(c *Call, i int) (*Closure, *Call) {
	if f, ok := c.Arg(i).(*Closure); ok {
		return f, nil
	}
	if level := c.OptInt(i, 1); level >= 0 {
		if at := c.level(level); at != nil {
			return at.closure, at
		}
	}
	c.RaiseBadArg(i, "invalid level")
	return nil, nil
}

func hostGetEnv(c *Call) []Value {
	if _, ok := c.Arg(1).(*Builtin); ok || c.Arg(1) == 0.0 {
		return c.Return(c.State().globals)
	}
	if f, _ := hostFunction(c, 1); f != nil {
		return c.Return(f.env)
	}
	return c.Return(c.State().globals)
}

func hostSetEnv(c *Call) []Value {
	env := c.WantTable(2)
	if c.Arg(1) == 0.0 {
		c.State().globals = env
		return nil
	}
	c.WantAny(1)
	if c.Arg(1) == nil {
		c.raiseWrongType(1, "number")
	}
	f, _ := hostFunction(c, 1)
	f.env = env
	return c.Return(f)
}

// hostInfo implements debug.getinfo, with the fields that this interpreter knows.
func hostInfo(c *Call) []Value {
	f, at := hostFunction(c, 1)
	s := c.State()
	info := s.NewTable()
	if f != nil {
		s.Set(info, "source", f.proto.source)
	}
	if at != nil {
		s.Set(info, "currentline", float64(at.line))
		if at.site != nil {
			s.Set(info, "name", at.site.name)
		}
	}
	return c.Return(info)
}

// hostTrace returns one line for each call.
func hostTrace(c *Call) (text string) {
	for at := c; at != nil; at = at.caller {
		text += "\n\t" + at.position()
	}
	return text
}

// hostTemporaryFile returns a file that a test writes, and then reads as a whole.
func hostTemporaryFile(c *Call) []Value {
	s, b := c.State(), NewBuilder()
	var text strings.Builder
	file := s.NewTable()
	for name, run := range map[string]func(*Call) []Value{
		"seek":  func(*Call) []Value { return nil },
		"close": func(c *Call) []Value { return c.Return(true) },
		"read":  func(c *Call) []Value { return c.Return(text.String()) },
		"write": func(c *Call) []Value {
			for i := 2; i <= c.NArgs(); i++ {
				text.WriteString(c.WantString(i))
			}
			return nil
		},
	} {
		s.Set(file, name, b.Function(run))
	}
	return c.Return(file)
}

// hostFiles holds the directory of the suite, and the parts of the file that a test writes.
type hostFiles struct {
	dir   string
	parts *[]string
}

func (h hostFiles) run(c *Call, name string) []Value {
	f := h.read(c, name)
	return c.Return(c.thread.callFromGo(f)...)
}

func (h hostFiles) load(c *Call) []Value { return c.Return(h.read(c, c.WantString(1))) }

func (h hostFiles) read(c *Call, name string) Value {
	text, err := os.ReadFile(filepath.Join(h.dir, name))
	if err != nil {
		c.Fail("%v", err)
	}
	return c.load(string(text), "@"+name)[0]
}

func (h hostFiles) write(c *Call) []Value {
	for i := range c.NArgs() {
		*h.parts = append(*h.parts, c.WantString(i+1))
	}
	return nil
}

// runWritten runs the written file.
func (h hostFiles) runWritten(c *Call) []Value {
	var text []byte
	for _, part := range *h.parts {
		text = append(text, part...)
	}
	chunk := c.load(string(text), "@written.lua")
	return c.Return(c.thread.callFromGo(chunk[0])...)
}
