package script

import (
	"redlock-proxy/internal/lua"
	"redlock-proxy/internal/lua/structlib"
)

// baseGlobals holds the global variables of all runs. The table is read-only.
var baseGlobals = newBaseGlobals()

func newBaseGlobals() *lua.Table {
	b := lua.NewBuilder()
	var entries []lua.Entry
	for _, e := range lua.StandardEntries() {
		if e.Name == "math" {
			e.Value = b.CopyWith(e.Value.(*lua.Table), randomLibrary...)
		}
		entries = append(entries, e)
	}
	redis := b.Table(redisLibrary...)
	entries = append(entries,
		lua.Entry{Name: "pcall", Value: protectedCall},
		lua.Entry{Name: "redis", Value: redis},
		lua.Entry{Name: "server", Value: redis}, // Valkey's name for redis
		lua.Entry{Name: "cjson", Value: b.Table(jsonLibrary...)},
		lua.Entry{Name: "bit", Value: b.Table(unavailableFunctions("bit", "tobit", "bnot", "band", "bor", "bxor",
			"lshift", "rshift", "arshift", "rol", "ror", "bswap", "tohex")...)},
		lua.Entry{Name: "coroutine", Value: b.Table(unavailableFunctions("coroutine",
			"create", "resume", "running", "status", "wrap", "yield")...)},
		lua.Entry{Name: "struct", Value: b.Table(structlib.Struct...)},
	)
	meta := b.Table(lua.Entry{Name: "__index", Value: missingGlobal})
	return b.WithMeta(b.Table(entries...), meta)
}

// missingGlobal raises the error for a global variable that does not exist.
func missingGlobal(c *lua.Call) []lua.Value {
	name, ok := lua.ToString(c.Arg(2))
	if !ok {
		return c.Fail("Second argument to luaProtectedTableError must be a string or number")
	}
	return c.Fail("Script attempted to access nonexistent global variable '%s'", cString(name))
}

// unavailableFunctions returns functions of a library that only raise an error.
func unavailableFunctions(library string, names ...string) (entries []lua.Entry) {
	for _, name := range names {
		entries = append(entries, lua.Entry{Name: name, Value: func(c *lua.Call) []lua.Value {
			return c.Fail("%s.%s is not available to scripts that run in the proxy", library, name)
		}})
	}
	return entries
}

// protectedCall implements pcall as in Redis 7. For an error that is a table, it returns the field
// err, because older versions had only the text.
func protectedCall(c *lua.Call) []lua.Value {
	if c.NArgs() == 0 {
		return c.Return(false, "attempt to call a boolean value") // Redis then calls a boolean
	}
	results, luaErr := c.ProtectedCall(c.Arg(1), c.Args()[1:])
	if luaErr == nil {
		return c.Return(append([]lua.Value{true}, results...)...)
	}
	if t, ok := luaErr.Value.(*lua.Table); ok {
		field := t.Get("err")
		if _, ok := lua.ToString(field); ok {
			return c.Return(false, field)
		}
		return c.Return(false, t, field) // Redis also returns the field
	}
	return c.Return(false, luaErr.Value)
}
