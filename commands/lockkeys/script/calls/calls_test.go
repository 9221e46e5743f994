package calls

import (
	"fmt"
	"runtime/debug"
	"strings"
	"testing"

	"redlock-proxy/internal/lua/meter"
	"redlock-proxy/internal/lua/syntax"
)

// formatKeyShapes formats the possible shapes of the key in the first call: of its second word.
func formatKeyShapes(c Calls) string {
	if len(c.Sites) == 0 {
		return fmt.Sprint("none ", c.Hidden)
	}
	var texts []string
	words := c.Sites[0].Rest
	if len(c.Sites[0].Args) > 1 {
		words = c.Sites[0].Args[1]
	}
	for _, shape := range words {
		text := ""
		for _, part := range shape {
			text += [...]string{"?", part.Text, fmt.Sprintf("KEYS%d", part.Index), "KEYS*",
				fmt.Sprintf("ARGV%d", part.Index), "ARGV*"}[part.Kind]
		}
		texts = append(texts, text)
	}
	if c.Hidden {
		texts = append(texts, "hidden")
	}
	return strings.Join(texts, " ")
}

// find finds the calls in a source.
func find(source string) (Calls, error) {
	m := meter.New(meter.Limits{}, 0)
	main, err := syntax.Parse(&m, source, "@x")
	if err != nil {
		return Calls{}, err
	}
	return Find(&m, main), nil
}

func TestFindCalls(t *testing.T) {
	for source, want := range map[string]string{
		"redis.call('get', KEYS[1])":                                           "KEYS1",
		"redis.pcall('get', 'a' .. ARGV[2] .. 7)":                              "aARGV27",
		"local k = KEYS[1] or ARGV[1] redis.call('get', k)":                    "KEYS1 ARGV1",
		"local k = 'a' k = 'b' redis.call('get', k)":                           "a b",
		"local redis = redis local c = redis.call local a = ARGV c('x', a[1])": "ARGV1",
		"for _, k in ipairs(KEYS) do redis.call('del', k) end":                 "KEYS*",
		"redis.call('del', unpack(ARGV))":                                      "ARGV*",
		"redis.call('del', tostring(ARGV[#ARGV]))":                             "ARGV*",
		"server.call('get', x.y)":                                              "?",
		"local function f(k) redis.call('get', k) end f('a')":                  "?",
		"local function f(k) redis.call('get', 'a' .. k) end":                  "a?",
		"(redis).call('get', KEYS[1])":                                         "KEYS1",
		"local f = x and (redis).call or g f('get', KEYS[1])":                  "KEYS1 hidden",
		"local f = f or g f('get', KEYS[1])":                                   "none false",
		"return 1":                                                             "none false", "pcall(redis.call, 'get', 'a')": "none true",
		"local r = {redis} return r": "none true", "return _G.redis": "none true",
		"loadstring('redis.' .. 'call()')()": "none true", "redis[ARGV[1]]('get', KEYS[1])": "KEYS1 hidden",
		"KEYS[1] = 'x' redis.call('get', KEYS[1])":                                                                  "KEYS1 hidden",
		"setmetatable({}, {__index = redis}).call('get', 'x')":                                                      "none true",
		"table.insert(KEYS, 'x') redis.call('get', KEYS[1])":                                                        "KEYS1 hidden",
		"redis.call('get', (KEYS[1])) -- redis.call('get', 'no')":                                                   "KEYS1",
		"redis.register_function('f', function(keys, args) redis.call('get', keys[1] .. args[2]) end)":              "KEYS1ARGV2",
		"local function f(k, a) redis.call('get', k[1]) end redis.register_function{function_name='f', callback=f}": "KEYS1",
		"local function g(k) redis.call('get', k[1]) end redis.register_function('f', function(keys) g({'x'}) end)": "?",
	} {
		calls, err := find(source)
		if got := formatKeyShapes(calls); err != nil || got != want {
			t.Errorf("%s\n got %q, %v\nwant %q", source, got, err, want)
		}
	}
}

// TestLiteralsInCode checks that Find returns the literals in code that a script compiles, also in
// nested code. A literal that is not code counts as itself.
func TestLiteralsInCode(t *testing.T) {
	for source, want := range map[string]string{
		`return loadstring("return redis.call('set', 'k', 1)")()`:        `["return redis.call('set', 'k', 1)" "set" "k"]`,
		`local l = _G["load" .. "string"] l([[l("f('k')")]])`:            `["load" "string" "l(\"f('k')\")" "f('k')" "k"]`,
		`return redis.call('set', KEYS[1], "redis.call('set', 'k', 1)")`: `["set" "redis.call('set', 'k', 1)"]`,
		`return loadstring("'")`:                                         `["'"]`,
	} {
		calls, err := find(source)
		if got := fmt.Sprintf("%q", calls.Literals); err != nil || got != want {
			t.Errorf("%s\n got %s, %v\nwant %s", source, got, err, want)
		}
	}
	deep := "'k'"
	for i := range 200 {
		deep = "f[" + strings.Repeat("=", i) + "[" + deep + "]" + strings.Repeat("=", i) + "]"
	}
	if calls, err := find("load(" + deep + ")"); err != nil || len(calls.Literals) == 0 || len(calls.Literals) > 200 {
		t.Errorf("%d literals, %v", len(calls.Literals), err)
	}
}

// TestFindCallsLimit checks that Find gives up on a source that needs too much work. Without a
// limit, the first source would take longer than any test may. The last one has a variable whose
// value is found through 50,000 others, and needs little stack.
func TestFindCallsLimit(t *testing.T) {
	defer debug.SetMaxStack(debug.SetMaxStack(4 << 20)) // more ends the program
	var chain strings.Builder
	for i := range 150 {
		fmt.Fprintf(&chain, "local v%d = v%d .. v%d\n", i, i+1, i+1)
	}
	many := strings.Repeat("x = y y = x redis.call('get', x .. y)\n", 5000)
	var variables strings.Builder // each the value of the one before
	for i := range 50000 {
		fmt.Fprintf(&variables, "v%d = v%d or x\n", i, i+1)
	}
	for _, source := range []string{chain.String() + "redis.call('get', v0)", many, variables.String() + "v0('get', 'k') redis.call('get', 'k')"} {
		calls, err := find(source)
		if err != nil {
			t.Error(err)
		}
		if len(calls.Sites) == 0 && !calls.Hidden {
			t.Error("no call is seen, and none is hidden")
		}
	}
}
