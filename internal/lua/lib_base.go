package lua

import (
	"strings"

	"redlock-proxy/internal/lua/clib"
	"redlock-proxy/internal/lua/syntax"
)

func baseLibrary(b *Builder) []Entry {
	next := b.Function(baseNext) // differs from the global function next, as in C Lua
	step := b.Function(ipairsStep)
	entries := []Entry{
		{"next", baseNext},
		{"pairs", func(c *Call) []Value { return c.Return(next, c.WantTable(1), nil) }},
		{"ipairs", func(c *Call) []Value { return c.Return(step, c.WantTable(1), 0.0) }},
		{"assert", baseAssert},
		{"collectgarbage", baseCollect},
		{"error", baseError},
		{"gcinfo", func(c *Call) []Value { return c.Return(float64(c.State().memory() >> 10)) }},
		{"getmetatable", baseGetMeta},
		{"load", baseLoad},
		{"loadstring", baseLoadString},
		{"rawequal", func(c *Call) []Value { return c.Return(c.WantAny(1) == c.WantAny(2)) }},
		{"rawget", func(c *Call) []Value { return c.Return(c.WantTable(1).Get(c.WantAny(2))) }},
		{"rawset", baseRawSet},
		{"select", MeteredFunc(baseSelect)},
		{"setmetatable", baseSetMeta},
		{"tonumber", baseToNumber},
		{"tostring", baseToString},
		{"type", MeteredFunc(func(c *Call) []Value { return c.Return(TypeName(c.WantAny(1))) })},
		{"unpack", baseUnpack},
		{"xpcall", baseXPCall},
	}
	for i, e := range entries {
		entries[i].Value = b.value(e.Value)
	}
	return entries
}

func baseNext(c *Call) []Value {
	key, value, ok := c.WantTable(1).Next(c.Arg(2))
	if !ok {
		return c.Raise("invalid key to 'next'")
	}
	if key == nil {
		return c.Return(nil)
	}
	return c.Return(key, value)
}

func ipairsStep(c *Call) []Value {
	t := c.WantTable(1)
	i := c.WantInt32(2) + 1
	v := t.getInt(i)
	if v == nil {
		return nil
	}
	return c.Return(float64(i), v)
}

func baseAssert(c *Call) []Value {
	if !IsTruthy(c.WantAny(1)) {
		return c.Fail("%s", c.OptString(2, "assertion failed!"))
	}
	return c.Return(c.slots...)
}

func baseCollect(c *Call) []Value {
	option := c.OptString(1, "collect")
	switch option {
	case "count", "step", "collect", "stop", "restart", "setpause", "setstepmul":
		c.OptInt(2, 0)
	default:
		c.RaiseBadArg(1, "invalid option '"+option+"'")
	}
	switch option {
	case "count":
		return c.Return(float64(c.State().memory()) / 1024)
	case "step":
		return c.Return(true)
	}
	return c.Return(0.0)
}

// libraryBytes is the memory of Redis' Lua before a script allocates any, in bytes. Most of it
// belongs to the libraries.
const libraryBytes = 33 << 10

// memory returns the memory in use, in bytes, as scripts see it. It never shrinks, because the
// meter does not subtract freed memory.
func (s *State) memory() int { return libraryBytes + s.meter.AllocatedBytes() }

func baseError(c *Call) []Value {
	level := c.OptInt(2, 1)
	v := c.Arg(1)
	if s, ok := ToString(v); ok && level > 0 {
		v = c.State().Text(c.level(level).position() + s)
	}
	return c.Raise(v)
}

func baseGetMeta(c *Call) []Value {
	meta := c.thread.metatable(c.WantAny(1))
	if meta == nil {
		return c.Return(nil)
	}
	if protected := meta.Get("__metatable"); protected != nil {
		return c.Return(protected)
	}
	return c.Return(meta)
}

func baseSetMeta(c *Call) []Value {
	t := c.WantTable(1)
	meta, ok := c.Arg(2).(*Table)
	if !ok && (c.NArgs() < 2 || c.Arg(2) != nil) {
		c.RaiseBadArg(2, "nil or table expected")
	}
	if t.meta != nil && t.meta.Get("__metatable") != nil {
		return c.Fail("cannot change a protected metatable")
	}
	if t.frozen {
		c.raiseReadonly()
	}
	t.meta = meta
	return c.Return(t)
}

func baseRawSet(c *Call) []Value {
	t, key, value := c.WantTable(1), c.WantAny(2), c.WantAny(3)
	c.rawSet(t, key, value)
	return c.Return(t)
}

func baseSelect(c *Call) []Value {
	n := c.NArgs()
	c.State().Work(n * argumentWork)
	if s, ok := c.Arg(1).(string); ok && strings.HasPrefix(s, "#") {
		return c.Return(float64(n - 1))
	}
	i := c.WantInt32(1)
	if i < 0 {
		i += n
	}
	if i < 1 {
		c.RaiseBadArg(1, "index out of range")
	}
	return c.Return(c.slots[min(i, n):]...)
}

func baseToNumber(c *Call) []Value {
	base := c.optInt32(2, 10)
	if base == 10 {
		if n, ok := c.State().Number(c.WantAny(1)); ok {
			return c.Return(n)
		}
		return c.Return(nil)
	}
	s := c.WantString(1)
	if base < 2 || base > 36 {
		c.RaiseBadArg(2, "base out of range")
	}
	c.State().Work(len(s) * digitWork)
	if n, ok := clib.ParseInteger(s, base); ok {
		return c.Return(n)
	}
	return c.Return(nil)
}

func baseToString(c *Call) []Value {
	v := c.WantAny(1)
	if handler := c.thread.metamethod(v, "__tostring"); handler != nil {
		return c.Return(firstValue(c.thread.callFromGo(handler, v)))
	}
	return c.ReturnText(describe(v))
}

// maxResults is the maximum number of values on C Lua's stack.
const maxResults = 8000

func baseUnpack(c *Call) []Value {
	t := c.WantTable(1)
	from := c.optInt32(2, 1)
	var to int
	if c.Arg(3) == nil {
		to = t.Len()
	} else {
		to = c.WantInt32(3)
	}
	if from > to {
		return nil
	}
	n := to - from + 1
	if n+c.NArgs() > maxResults {
		return c.Fail("too many results to unpack")
	}
	c.State().meter.ChargeWork(n << 4)
	results := c.thread.results[:0]
	for i := from; i <= to; i++ {
		results = append(results, t.getInt(i))
	}
	c.thread.results = results
	return results
}

func baseXPCall(c *Call) []Value {
	f, handler := c.Arg(1), c.WantAny(2)
	results, luaErr := c.thread.protectedCall(f, nil)
	if luaErr == nil {
		return c.Return(append([]Value{true}, results...)...)
	}
	// The handler also handles its own errors, until the limit of nested calls.
	for range maxGoCalls {
		results, handlerErr := c.thread.protectedCall(handler, []Value{luaErr.Value})
		if handlerErr == nil {
			return c.Return(false, firstValue(results))
		}
		luaErr = handlerErr
	}
	return c.Return(false, "error in error handling")
}

// ProtectedCall calls a value, and returns the error that the call raises.
func (c *Call) ProtectedCall(f Value, args []Value) ([]Value, *Error) {
	return c.thread.protectedCall(f, args)
}

func baseLoadString(c *Call) []Value {
	source := c.WantString(1)
	return c.load(source, c.OptString(2, source))
}

func baseLoad(c *Call) []Value {
	reader := c.wantFunction(1)
	name := c.OptString(2, "=(load)")
	var luaErr *Error
	nextPiece := func() string {
		var piece string
		if piece, luaErr = c.readPiece(reader); luaErr != nil {
			panic(&syntax.CompileError{Text: luaErr.Error()})
		}
		return piece
	}
	main, err := syntax.ParsePieces(&c.State().meter, nextPiece, name)
	results := c.loadResults(main, err)
	if luaErr != nil {
		return c.Return(nil, luaErr.Value)
	}
	return results
}

// readPiece calls the reader of load for the next piece of the source.
func (c *Call) readPiece(reader Value) (string, *Error) {
	results, luaErr := c.thread.protectedCall(reader, nil)
	if luaErr != nil {
		return "", luaErr
	}
	piece := firstValue(results)
	text, ok := ToString(piece)
	if piece != nil && !ok {
		return "", &Error{Value: c.caller.position() + "reader function must return a string"}
	}
	c.State().meter.Charge(len(text))
	return text, nil
}

func (c *Call) load(source, name string) []Value {
	main, err := syntax.Parse(&c.State().meter, source, name)
	return c.loadResults(main, err)
}

// loadResults returns the results of load and loadstring.
func (c *Call) loadResults(main *syntax.Function, err error) []Value {
	s := c.State()
	if err != nil {
		return c.Return(nil, s.Text(err.Error()))
	}
	return c.Return(&Closure{proto: newProto(&s.meter, main), env: s.globals, address: s.meter.NewAddress()})
}

func (c *Call) optInt32(i, fallback int) int {
	if c.Arg(i) == nil {
		return fallback
	}
	return c.WantInt32(i)
}
