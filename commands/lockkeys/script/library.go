package script

import (
	"redlock-proxy/internal/lua"
	"redlock-proxy/internal/lua/structlib"
)

// shared are the global variables of all runs. They never change.
var shared = newShared()

func newShared() *lua.Table {
	b := lua.NewBuilder()
	var entries []lua.Entry
	for _, e := range lua.Standard() {
		if e.Name == "math" {
			e.Value = b.Extended(e.Value.(*lua.Table), randomLibrary...)
		}
		entries = append(entries, e)
	}
	redis := b.Table(redisLibrary...)
	entries = append(entries,
		lua.Entry{Name: "pcall", Value: protectedCall},
		lua.Entry{Name: "redis", Value: redis},
		lua.Entry{Name: "server", Value: redis}, // as Valkey calls it
		lua.Entry{Name: "cjson", Value: b.Table(jsonLibrary...)},
		lua.Entry{Name: "bit", Value: b.Table(absent("bit", "tobit", "bnot", "band", "bor", "bxor", "lshift", "rshift", "arshift", "rol", "ror", "bswap", "tohex")...)},
		lua.Entry{Name: "coroutine", Value: b.Table(absent("coroutine", "create", "resume", "running", "status", "wrap", "yield")...)},
		lua.Entry{Name: "struct", Value: b.Table(structlib.Struct...)},
	)
	meta := b.Table(lua.Entry{Name: "__index", Value: missingGlobal})
	return b.WithMeta(b.Table(entries...), meta)
}

// missingGlobal answers for a global variable that is not there.
func missingGlobal(c *lua.Call) []lua.Value {
	name, ok := lua.ToString(c.Arg(2))
	if !ok {
		return c.Fail("Second argument to luaProtectedTableError must be a string or number")
	}
	return c.Fail("Script attempted to access nonexistent global variable '%s'", cString(name))
}

// absent are the functions of a library that is left out.
func absent(library string, names ...string) (entries []lua.Entry) {
	for _, name := range names {
		entries = append(entries, lua.Entry{Name: name, Value: func(c *lua.Call) []lua.Value {
			return c.Fail("%s.%s is not available to scripts that run in the proxy", library, name)
		}})
	}
	return entries
}

// protectedCall is pcall as Redis 7 has it: of an error that is a table it gives the field err, as
// there was only the text before.
func protectedCall(c *lua.Call) []lua.Value {
	if c.NArgs() == 0 {
		return c.Return(false, "attempt to call a boolean value") // what Redis put in the place of the function
	}
	results, failed := c.Protected(c.Arg(1), c.Args()[1:])
	if failed == nil {
		return c.Return(append([]lua.Value{true}, results...)...)
	}
	if t, ok := failed.Value.(*lua.Table); ok {
		field := t.Get("err")
		if _, ok := lua.ToString(field); ok {
			return c.Return(false, field)
		}
		return c.Return(false, t, field) // Redis leaves the field of the table
	}
	return c.Return(false, failed.Value)
}
