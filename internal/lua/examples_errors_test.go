package lua

// errorExamples covers errors while a chunk runs, with their texts and positions.
var errorExamples = []example{
	// names of the value that fails
	{`local x return x.y`, `! "example:1: attempt to index local 'x' (a nil value)"`},
	{`local x return x.y.z`, `! "example:1: attempt to index local 'x' (a nil value)"`},
	{`local x = {} return x.y.z`, `! "example:1: attempt to index field 'y' (a nil value)"`},
	{`local x = {} return x.y.z.w`, `! "example:1: attempt to index field 'y' (a nil value)"`},
	{`local x = {{}} return x[1].y.z`, `! "example:1: attempt to index field 'y' (a nil value)"`},
	{`local x = {} return x[1][2]`, `! "example:1: attempt to index field '?' (a nil value)"`},
	{`local x = 1 return x[1]`, `! "example:1: attempt to index local 'x' (a number value)"`},
	{`local x x.y = 1`, `! "example:1: attempt to index local 'x' (a nil value)"`},
	{`local x = {} x.y.z = 1`, `! "example:1: attempt to index field 'y' (a nil value)"`},
	{`local x = {} x[1][2] = 3`, `! "example:1: attempt to index field '?' (a nil value)"`},
	{`local x x()`, `! "example:1: attempt to call local 'x' (a nil value)"`},
	{`local x = {} x.y()`, `! "example:1: attempt to call field 'y' (a nil value)"`},
	{`local x = {} x:y()`, `! "example:1: attempt to call method 'y' (a nil value)"`},
	{`local x = {} x.y.z()`, `! "example:1: attempt to index field 'y' (a nil value)"`},
	{`local x = {} x[1]()`, `! "example:1: attempt to call field '?' (a nil value)"`},
	{`local x = 5 local function f() return x.y end f()`, `! "example:1: attempt to index upvalue 'x' (a number value)"`},
	{`local x local function f() x() end f()`, `! "example:1: attempt to call upvalue 'x' (a nil value)"`},
	{`local x local function f() return x + 1 end f()`,
		`! "example:1: attempt to perform arithmetic on upvalue 'x' (a nil value)"`},
	{`local x = {} local function f() return x.y.z end f()`, `! "example:1: attempt to index field 'y' (a nil value)"`},
	{`return (1)()`, `! "example:1: attempt to call a number value"`},
	{`return ("x")()`, `! "example:1: attempt to call a string value"`},
	{`return ({})()`, `! "example:1: attempt to call a table value"`},
	{`return (nil).x`, `! "example:1: attempt to index a nil value"`},
	{`return (function() end).x`, `! "example:1: attempt to index a function value"`},
	{`local x = {} return -x.y`, `! "example:1: attempt to perform arithmetic on field 'y' (a nil value)"`},
	{`local x = {} return x.y + 1`, `! "example:1: attempt to perform arithmetic on field 'y' (a nil value)"`},
	{`local x = {} return 1 + x.y`, `! "example:1: attempt to perform arithmetic on field 'y' (a nil value)"`},
	{`local x = {} return x.a + x.b`, `! "example:1: attempt to perform arithmetic on field 'a' (a nil value)"`},
	{`local x = {} return x.y .. "a"`, `! "example:1: attempt to concatenate field 'y' (a nil value)"`},
	{`local x = {} return #x.y`, `! "example:1: attempt to get length of field 'y' (a nil value)"`},
	{`local x return #x`, `! "example:1: attempt to get length of local 'x' (a nil value)"`},
	{`local x return x < 1`, `! "example:1: attempt to compare nil with number"`},
	{`local x = {} return x.y < x.z`, `! "example:1: attempt to compare two nil values"`},
	{`return {} + 1`, `! "example:1: attempt to perform arithmetic on a table value"`},
	{`return 1 + {}`, `! "example:1: attempt to perform arithmetic on a table value"`},
	{`return "x" + 1`, `! "example:1: attempt to perform arithmetic on a string value"`},
	{`return #5`, `! "example:1: attempt to get length of a number value"`},
	{`return -{}`, `! "example:1: attempt to perform arithmetic on a table value"`},
	{`local a = "x" return a + 1`, `! "example:1: attempt to perform arithmetic on local 'a' (a string value)"`},
	{`local a = "x" return 1 + a`, `! "example:1: attempt to perform arithmetic on local 'a' (a string value)"`},
	{`return math.foo()`, `! "example:1: attempt to call field 'foo' (a nil value)"`},
	{`return math.foo.bar`, `! "example:1: attempt to index field 'foo' (a nil value)"`},
	{`return string:foo()`, `! "example:1: attempt to call method 'foo' (a nil value)"`},
	{`string.format(nil)`, `! "example:1: bad argument #1 to 'format' (string expected, got nil)"`},
	{`return ("x"):bad()`, `! "example:1: attempt to call method 'bad' (a nil value)"`},
	{`local function f(a) return a.b.c end f({})`, `! "example:1: attempt to index field 'b' (a nil value)"`},
	{`local function f(a) a.b.c = 1 end f({})`, `! "example:1: attempt to index field 'b' (a nil value)"`},
	{`local t = {f = 1} t.f()`, `! "example:1: attempt to call field 'f' (a number value)"`},
	{`local t = {f = 1} t:f()`, `! "example:1: attempt to call method 'f' (a number value)"`},
	{`local t = {} t["a b"]()`, `! "example:1: attempt to call field 'a b' (a nil value)"`},
	{`local t, k = {}, "k" t[k]()`, `! "example:1: attempt to call field '?' (a nil value)"`},
	{`for i = 1, 2 do local x = nil + i end`, `! "example:1: attempt to perform arithmetic on a nil value"`},
	{`for k in nil do end`, `! "example:1: attempt to call a nil value"`},
	{`for k in 5 do end`, `! "example:1: attempt to call a number value"`},
	{`for k in {} do end`, `! "example:1: attempt to call a table value"`},
	{`for k in pairs do end`, `! "example:1: bad argument #1 to '(for generator)' (table expected, got nil)"`},
	{`for i = nil, 1 do end`, `! "example:1: 'for' initial value must be a number"`},
	{`for i = 1, "x" do end`, `! "example:1: 'for' limit must be a number"`},
	{`for i = 1, 2, {} do end`, `! "example:1: 'for' step must be a number"`},
	{`local t = {} t[nil] = 1`, `! "example:1: table index is nil"`},
	{`local t = {} t[0/0] = 1`, `! "example:1: table index is NaN"`},
	{`return {} < {}`, `! "example:1: attempt to compare two table values"`},
	{`return {} < 1`, `! "example:1: attempt to compare table with number"`},
	{`return 1 < "2"`, `! "example:1: attempt to compare number with string"`},
	{`return true < false`, `! "example:1: attempt to compare two boolean values"`},
	{`return nil <= nil`, `! "example:1: attempt to compare two nil values"`},
	{`return print`, `! "example:1: Script attempted to access nonexistent global variable 'print'"`},
	{`local a = {} return a.b.c.d`, `! "example:1: attempt to index field 'b' (a nil value)"`},
	{`return _G.x.y`, `! "example:1: Script attempted to access nonexistent global variable 'x'"`},
	// lines
	{`local x
return x.y`, `! "example:2: attempt to index local 'x' (a nil value)"`},
	{`local x = 1

local y = x +
{}`, `! "example:4: attempt to perform arithmetic on a table value"`},
	{`local t = {
1,
2 + {}
}`, `! "example:3: attempt to perform arithmetic on a table value"`},
	{`local function f()
error("e")
end
f()`, `! "example:2: e"`},
	{`local function f()
error("e", 2)
end
f()`, `! "example:4: e"`},
	{`local function f()
error("e", 3)
end
local function g()
f()
end
g()`, `! "example:7: e"`},
	{`error(
"e"
)`, `! "example:1: e"`},
	{`local f = error
f
"e"`, `! "example:3: e"`},
	{`local x = {}
x
.y
.z()`, `! "example:4: attempt to index field 'y' (a nil value)"`},
	{`local x
x
(
1
)`, `! example:3: ambiguous syntax (function call x new statement) near '('`},
	{`


error({1})`, `! {1}, nil`},
	{`local a = 1
local b = a ..
{} ..
"x"`, `! "example:4: attempt to concatenate a table value"`},
	{`local x = nil
if x
>
1 then end`, `! "example:4: attempt to compare number with nil"`},
	{`for i = 1,
"x" do end`, `! "example:2: 'for' limit must be a number"`},
	{`

 for k,v in 
 3 
 do 
 return k 
 end`, `! "example:4: attempt to call a number value"`},
	{`
for k in
nil do end`, `! "example:3: attempt to call a nil value"`},
	{`string.rep(
)`, `! "example:1: bad argument #1 to 'rep' (string expected, got no value)"`},
	{`return ("x")
:rep(
{})`, `! "example:2: bad argument #1 to 'rep' (number expected, got table)"`},
	{`local t = setmetatable({}, {__add = function()
error("in add")
end})
return t + 1`, `! "example:2: in add"`},
	{`return pcall(function()

error("x") end)`, `false, "example:3: x"`},
	// levels of error
	{`local function f() error("e", 0) end f()`, `! "e"`},
	{`local function f() error("e", 1) end f()`, `! "example:1: e"`},
	{`local function f() error("e", 2) end f()`, `! "example:1: e"`},
	{`local function f() error("e", 9) end f()`, `! "e"`},
	{`error("e", -1)`, `! "e"`},
	{`error()`, `! nil`},
	{`error(nil)`, `! nil`},
	{`error(false)`, `! false`},
	{`error(5)`, `! "example:1: 5"`},
	{`error("5", 0)`, `! "5"`},
	{`error({code = 1})`, `! {["code"]=1}, nil`},
	{`error(setmetatable({}, {__tostring = function() return "t" end}))`, `! {}, nil`},
	{`return pcall(error)`, `false, nil`},
	{`return pcall(error, "e", 2)`, `false, "example:1: e"`},
	{`return pcall(error, {1})`, `false, {1}, nil`},
	{`return pcall(function() local x = y end)`,
		`false, "example:1: Script attempted to access nonexistent global variable 'y'"`},
	{`return select(2, pcall(error, setmetatable({}, {__index = {a = 1}}))).a`, `1`},
	{`local function f() return error("tail") end f()`, `! "example:1: tail"`},
	{`local function f() return error("tail", 2) end f()`, `! "example:1: tail"`},
	// assert
	{`return assert(1, "no")`, `1, "no"`},
	{`assert(false)`, `! "example:1: assertion failed!"`},
	{`assert(nil, "why")`, `! "example:1: why"`},
	{`assert(false, 5)`, `! "example:1: 5"`},
	{`assert(nil, nil)`, `! "example:1: assertion failed!"`},
	{`=select("#", assert(1, nil, 3))`, `3`},
	{`assert(pcall(error, "again"))`, `! "example:1: again"`},
	// pcall
	{`return pcall(function() return 1, nil, 3 end)`, `true, 1, nil, 3`},
	{`=select("#", pcall(function() end))`, `1`},
	{`return pcall(pcall, error, "x")`, `true, false, "x"`},
	{`return pcall(nil)`, `false, "attempt to call a nil value"`},
	{`return pcall({})`, `false, "attempt to call a table value"`},
	{`return pcall("x")`, `false, "attempt to call a string value"`},
	{`local ok, e = pcall(function() error() end) return ok, e`, `false, nil`},
	{`return pcall(string.rep)`, `false, "bad argument #1 to '?' (string expected, got no value)"`},
	{`return pcall(string.rep, "x", -1)`, `true, ""`},
	{`return pcall(pcall, pcall)`, `true, true, false, "attempt to call a boolean value"`},
	{`local n = 0 for i = 1, 300 do if not pcall(error) then n = n + 1 end end return n`, `300`},
	// xpcall
	{`return xpcall(function() return 1, 2 end, error)`, `true, 1, 2`},
	{`return xpcall(function() error("e") end, function(e) return "handled: " .. e end)`, `false, "handled: example:1: e"`},
	{`return xpcall(function() error("e") end, function(e) return 1, 2 end)`, `false, 1`},
	{`return xpcall(function() error({1}) end, function(e) return e[1] end)`, `false, 1`},
	{`return xpcall(error, function(e) return e == nil end)`, `false, true`},
	{`return xpcall(function() local x = nil + 1 end, function(e) return e end)`,
		`false, "example:1: attempt to perform arithmetic on a nil value"`},
	{`return xpcall(function(...) return select("#", ...) end, error, 1, 2)`, `true, 0`},
	{`return xpcall(5, function(e) return e end)`, `false, "attempt to call a number value"`},
	{`return xpcall(function() error("e") end, tostring)`, `false, "example:1: e"`},
	{`return xpcall(function() xpcall(error, error) error("outer") end, function(e) return e end)`,
		`false, "example:1: outer"`},
	// errors in functions that pcall or a library function calls
	{`return pcall(function() error(error) end)`, `false, function`},
	{`return pcall(setmetatable, 1)`, `false, "bad argument #1 to '?' (table expected, got number)"`},
	{`return pcall(next, {}, "no")`, `false, "invalid key to 'next'"`},
	{`return pcall(function() return {} .. "x" end)`, `false, "example:1: attempt to concatenate a table value"`},
	{`return pcall(function() for i = 1, 10 do local t = nil; t.x = i end end)`,
		`false, "example:1: attempt to index local 't' (a nil value)"`},
	{`return pcall(string.gsub, "x", "x", function() error("in gsub") end)`, `false, "example:1: in gsub"`},
	{`return pcall(table.sort, {2, 1}, function() error("in sort", 0) end)`, `false, "in sort"`},
	{`return pcall(table.foreach, {1}, function() error("in each", 0) end)`, `false, "in each"`},
	{`return pcall(load, function() error("in reader", 0) end)`, `true, nil, "in reader"`},
}
