package lua

import (
	"regexp"
	"strings"
	"testing"

	"redlock-proxy/internal/lua/meter"
)

// example holds a chunk, and its result or error in Redis 7.0, in the form that exampleTemplate
// returns. A source "=x" means "return x".
type example struct{ source, want string }

// examples holds all examples by area. TestExamplesAsInRedis compares them with a real
// redis-server, and prints the result of a new example.
var examples = map[string][]example{
	"arguments":      argumentExamples,
	"calls":          callExamples,
	"errors":         errorExamples,
	"format":         formatExamples,
	"load":           loadExamples,
	"math":           mathExamples,
	"metatables":     metatableExamples,
	"compile errors": compileErrorExamples,
	"numbers":        numberExamples,
	"operators":      operatorExamples,
	"patterns":       patternExamples,
	"statements":     statementExamples,
	"strings":        stringExamples,
	"syntax":         syntaxExamples,
	"tables":         tableExamples,
}

// exampleTemplate is the Lua code that runs SOURCE and returns its values as text, or ! and its
// error.
const exampleTemplate = `
local function text(v, depth)
	if type(v) == "string" then return (string.format("%q", v):gsub("\\?\n", "\\n"):gsub("\\000", "\\0")) end
	if type(v) == "number" then return string.format("%.17g", v) end
	if type(v) == "function" then return type(v) end
	if type(v) ~= "table" then return tostring(v) end
	if depth > 3 then return "{...}" end
	local parts, seen = {}, {}
	for i, item in ipairs(v) do parts[i], seen[i] = text(item, depth + 1), true end
	local named = {}
	for key, item in next, v do
		if not seen[key] then named[#named + 1] = "[" .. text(key, depth + 1) .. "]=" .. text(item, depth + 1) end
	end
	table.sort(named)
	for _, item in ipairs(named) do parts[#parts + 1] = item end
	return "{" .. table.concat(parts, ", ") .. "}"
end
local function all(ok, ...)
	local parts = {}
	for i = 1, select("#", ...) do parts[i] = text((select(i, ...)), 1) end
	return (ok and "" or "! ") .. table.concat(parts, ", ")
end
local chunk, problem = loadstring(SOURCE, "@example")
if not chunk then return "! " .. problem end
return all(pcall(chunk))`

// chunk returns the complete source of an example.
func (e example) chunk() string {
	if expression, ok := strings.CutPrefix(e.source, "="); ok {
		return "return " + expression
	}
	return e.source
}

// exampleGlobals returns the global variables of scripts in Redis. A script cannot create a global
// variable, and a read of a missing variable raises an error.
func exampleGlobals(s *State, source string) *Table {
	b := NewBuilder()
	entries := append(StandardEntries(), Entry{"pcall", redisPCall})
	missing := b.Table(Entry{"__index", func(c *Call) []Value {
		name, ok := ToString(c.Arg(2))
		if !ok {
			return c.Fail("Second argument to luaProtectedTableError must be a string or number")
		}
		return c.Fail("Script attempted to access nonexistent global variable '%s'", name)
	}})
	g := s.NewGlobals(b.WithMeta(b.Table(entries...), missing), 2)
	s.Set(g, "SOURCE", source)
	s.Set(g, "_G", g)
	g.Freeze()
	return g
}

// redisPCall implements Redis' pcall, as far as the examples need it. For an error that is a table,
// it also returns the field err.
func redisPCall(c *Call) []Value {
	if c.NArgs() == 0 {
		return c.Return(false, "attempt to call a boolean value")
	}
	results, luaErr := c.ProtectedCall(c.Arg(1), c.Args()[1:])
	if luaErr == nil {
		return c.Return(append([]Value{true}, results...)...)
	}
	if t, ok := luaErr.Value.(*Table); ok {
		return c.Return(false, t, t.Get("err"))
	}
	return c.Return(false, luaErr.Value)
}

func (e example) run(t *testing.T) string {
	t.Helper()
	chunk, err := compile(exampleTemplate, "@show")
	if err != nil {
		t.Fatal(err)
	}
	state := NewState(meter.Limits{Bytes: 64 << 20})
	value, err := state.Run(chunk, exampleGlobals(state, e.chunk()))
	if err != nil {
		t.Errorf("%s: %v", e.source, err)
	}
	text, _ := value.(string)
	return withoutAddresses(text)
}

func withoutAddresses(text string) string { return addresses.ReplaceAllString(text, "0x") }

var addresses = regexp.MustCompile(`0x[0-9a-f]{6,}`)

func TestExamples(t *testing.T) {
	for area, list := range examples {
		t.Run(area, func(t *testing.T) {
			for _, e := range list {
				if got := e.run(t); got != e.want {
					t.Errorf("%s\n got %s\nwant %s", e.source, got, e.want)
				}
			}
		})
	}
}
