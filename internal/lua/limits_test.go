package lua

import (
	"errors"
	"strings"
	"testing"
	"time"

	"redlock-proxy/internal/lua/meter"
)

// startWatch starts the watch of a run with a time limit.
func startWatch(t *testing.T, limit time.Duration) *meter.Watch {
	w := &meter.Watch{}
	w.Start(t.Context(), &meter.Watchdog{}, limit, 0)
	t.Cleanup(func() { w.Stop() })
	return w
}

// TestLimitOfBytes checks that code that allocates ends at the limit, in any part of the language,
// even within pcall.
func TestLimitOfBytes(t *testing.T) {
	for _, source := range []string{
		`local s = "x" while true do s = s .. s end`,
		`local t = {} for i = 1, 1e9 do t[i] = i end`,
		`local t = {} for i = 1, 1e9 do t["k" .. i] = i end`,
		`local t = {} while true do t = {t} end`,
		`local t = {} for i = 1, 1e9 do t[i] = function() return i end end`,
		`return ("x"):rep(1e9)`,
		`return ("x"):rep(1000):rep(1e6)`,
		`local s = ("x"):rep(1e5) return s:gsub("x", s)`,
		`local s = ("x"):rep(1e5) return s:gsub("x", function() return s end)`,
		`local s = ("x"):rep(1e5) return s:gsub("x", "%0%0%0%0%0%0%0%0%0%0%0%0%0%0%0%0%0%0%0%0%0%0%0%0%0%0%0%0%0%0%0%0%0%0%0")`,
		`local s = ("x"):rep(1e5) while true do local u = s:upper() end`,
		`local s = ("x"):rep(1e5) while true do local u = s:reverse() end`,
		`local s = ("x"):rep(1e5) while true do local u = s:sub(2) end`,
		`while true do local s = ("%99s"):format("x") end`,
		`local s = ("x"):rep(1e5) local t = {} for i = 1, 1000 do t[i] = s end return table.concat(t)`,
		`while true do loadstring("return 1")() end`,
		`return load(function() return "x = 1 " end)`,
		`while true do pcall(function() local s = ("x"):rep(1e6) end) end`,
		`local function f(...) return {...} end while true do f(1, 2, 3, 4, 5, 6, 7, 8, 9) end`,
		`local function f(...) return arg end while true do f(1) end`,
		`while true do tostring({}) end`,
		`while true do (""):gmatch("x") string.char(65) local s = 1 .. 2 end`,
	} {
		if _, err := run(t, source, meter.Limits{Bytes: 4 << 20}, Entry{"pcall", hostPCall}); !errors.Is(err,
			meter.ErrMemory) || !strings.Contains(err.Error(), "4194304 bytes") {
			t.Errorf("%s: %v", source, err)
		}
	}
}

// TestLimitOfTime checks that code that runs long ends at the limit, or when its watch ends it,
// even inside one Go function.
func TestLimitOfTime(t *testing.T) {
	cause := errors.New("the client disconnected")
	for _, source := range []string{
		`while true do end`,
		`repeat until false`,
		`for i = 1, 1/0 do end`,
		`for i = 2, 1, 0 do end`,
		`for _ in function() return 1 end do end`,
		`local function f() return f() end f()`,
		`while true do pcall(error) end`,
		`return (("a"):rep(30) .. "b"):find(("a*"):rep(30) .. "c")`,
		`return ("a"):rep(3e5):find(".-.-.-b")`,
		`return ("("):rep(1e6):gsub("%b()", "")`,
		`return load(function() return " " end)`,
		`local t = setmetatable({}, {__index = function(t, k) return k end}) while t.x do end`,
		`local t = {} for i = 1, 1e5 do t[i] = i end while true do table.insert(t, 1, 0) table.remove(t, 1) end`,
		`local t = {} for i = 1, 3e5 do t[i] = i % 7 end table.sort(t, function(a, b) return a < b end) while true do table.maxn(t) end`,
	} {
		if _, err := run(t, source, meter.Limits{Watch: startWatch(t, 30*time.Millisecond)},
			Entry{"pcall", hostPCall}); !errors.Is(err, meter.ErrTime) {
			t.Errorf("%s: %v", source, err)
		}
		chunk, err := compile(source, "@test")
		if err != nil {
			t.Fatal(err)
		}
		watch := startWatch(t, 0)
		state := NewState(meter.Limits{Watch: watch})
		globals := exampleGlobals(state, "")
		watch.End(cause)
		if _, err := state.Run(chunk, globals); err != cause {
			t.Errorf("%s: %v, want %v", source, err, cause)
		}
	}
}

// TestLimitOfChains checks the limit of chained operators or indices, which nest in Go.
func TestLimitOfChains(t *testing.T) {
	for _, link := range []string{" + x", ".x", "[1]", "()", ":m()", " .. x", " and x", " ^ x", "{}"} {
		_, err := compile("return x"+strings.Repeat(link, 100000), "@test")
		if err == nil || !strings.HasSuffix(err.Error(), "chunk has too many syntax levels") {
			t.Errorf("%s: %.100v", link, err)
		}
	}
}

// TestLimitOfNestedChains checks that chains within chains count together, because they nest in Go
// as well. Chains side by side do not.
func TestLimitOfNestedChains(t *testing.T) {
	links := strings.Repeat(".x", 1500)
	for source, isTooDeep := range map[string]bool{
		"return (a" + links + ")" + links:                              true,
		"return a(b" + links + ")" + links:                             true,
		"return ({b" + links + "})" + links:                            true,
		"return (b" + links + " + 1)" + links:                          true,
		"return (function() return b" + links + " end)" + links:        true,
		"function a" + strings.Repeat(".x", 100000) + "() end":         true,
		"return a" + links + " + b" + links + ", c" + links:            false,
		"local a = b" + links + " local c = d" + links:                 false,
		"f(a" + links + ", b" + links + ") g(c" + links + ")":          false,
		"function a" + links + "() return b" + links + " end":          false,
		"if a" + links + " then b" + links + "() end c" + links + "()": false,
	} {
		_, err := compile(source, "@test")
		if got := err != nil && strings.HasSuffix(err.Error(), "chunk has too many syntax levels"); got != isTooDeep {
			t.Errorf("%.60s: %.100v", source, err)
		}
	}
}

// TestLimitOfPatterns checks that patterns that backtrack too deep raise errors, which pcall
// catches.
func TestLimitOfPatterns(t *testing.T) {
	value, err := run(t, `local ok, e = pcall(string.find, ("a"):rep(50000), ("a?"):rep(30000)) return e`,
		meter.Limits{}, Entry{"pcall", hostPCall})
	if text, _ := value.(string); err != nil || !strings.HasSuffix(text, "pattern too complex") {
		t.Errorf("%v %v", value, err)
	}
}

// TestMemoryReportedToScripts checks that the memory that a script sees is never zero and never
// shrinks.
func TestMemoryReportedToScripts(t *testing.T) {
	value, err := run(t, `local before, exact = gcinfo(), collectgarbage("count") local s = ("x"):rep(100000)
		return before > 0 and before == math.floor(exact) and gcinfo() - before >= 97 and gcinfo() - before < 110 and collectgarbage("step")
			and collectgarbage() == 0 and collectgarbage("stop") == 0 and collectgarbage("collect") == 0`, meter.Limits{})
	if value != true || err != nil {
		t.Errorf("%v %v", value, err)
	}
}

// growthRecorder implements Pace, and records whether its run became large.
type growthRecorder struct{ grew bool }

func (g *growthRecorder) Grow() error {
	g.grew = true
	return nil
}

func (g *growthRecorder) Pause() error { return nil }

// TestChargeForBlocks checks that the meter charges a run for all code of a block when the block
// begins, and at no other time. It covers every kind of statement.
func TestChargeForBlocks(t *testing.T) {
	for source, want := range map[string]bool{
		`BODY`:                                        true,
		`do BODY end`:                                 true,
		`if true then BODY end`:                       true,
		`if false then else BODY end`:                 true,
		`while true do BODY break end`:                true,
		`repeat BODY until true`:                      true,
		`repeat until #{CONDITION} > 0`:               true,
		`for i = 1, 1 do BODY end`:                    true,
		`for i in next, {1} do BODY end`:              true,
		`local function f() BODY end f()`:             true,
		`return (function() BODY end)()`:              true,
		`if false then BODY end`:                      false,
		`while false do BODY end`:                     false,
		`for i = 1, 0 do BODY end`:                    false,
		`for i in next, {} do if i then BODY end end`: false,
		`local function f() BODY end`:                 false,
	} {
		pace := &growthRecorder{}
		code := strings.NewReplacer("BODY", strings.Repeat("x = 1 ", 2000), "CONDITION",
			strings.Repeat("1, ", 2000)).Replace(source)
		small := meter.SmallLimits{Steps: 500, Bytes: 1 << 20, Depth: maxDepth}
		if _, err := run(t, code, meter.Limits{Pace: pace, SmallRun: small}); err != nil || pace.grew != want {
			t.Errorf("%s: large: %v, want %v; %v", source, pace.grew, want, err)
		}
	}
}
