package lua

// syntaxExamples holds chunks that compile.
var syntaxExamples = []example{
	{``, ``},
	{`return`, ``},
	{`return;`, ``},
	{`do end`, ``},
	{`do return 1 end`, `1`},
	{`local x; local y = 2; return x, y;`, `nil, 2`},
	{`local x local y = 1 return y`, `1`},
	{`--comment`, ``},
	{`-- comment
return 1`, `1`},
	{`--[[ long
comment ]] return 1`, `1`},
	{`--[==[ ]] ]==] return 1`, `1`},
	{`--[ not long
return 1`, `1`},
	{`---[[ not long
return 1`, `1`},
	{`return--[[c]]1`, `1`},
	{`return 1--`, `1`},
	{`return 1 --[[ a ]] + --[=[ b ]=] 2`, `3`},
	{`=1,2,3`, `1, 2, 3`},
	{`=(1), ((2)), (((3)))`, `1, 2, 3`},
	{`=[[a]]..[[b]]`, `"ab"`},
	{`=#[[a]], -1, - 1, - -1`, `1, -1, -1, 1`},
	{`=not nil, not not nil`, `true, false`},
	{`={1;2,3}`, `{1, 2, 3}`},
	{`=({x = 1}).x`, `1`},
	{`=("a"):len()`, `1`},
	{`local a = {} a.b = {} a.b.c = 1 return a.b.c, a["b"]["c"], a.b["c"]`, `1, 1, 1`},
	{`local a = {} a["x"], a.y = 1, 2 return a.x, a.y`, `1, 2`},
	{`local a, b = 1, 2 a, b = b, a return a, b`, `2, 1`},
	{`local a = {} local i = 1 i, a[i] = i + 1, 20 return i, a[1], a[2]`, `2, 20, nil`},
	{`local a = {1, 2} local i = 1 a[i], a[i + 1] = a[i + 1], a[i] return a`, `{2, 1}`},
	{`local a a = 1, 2 return a`, `1`},
	{`local a, b, c = (function() return 1, 2 end)() return a, b, c`, `1, 2, nil`},
	{`local function f() return 1 end return f{}, f"", f[[]], f()`, `1, 1, 1, 1`},
	{`local t = {f = function(s) return s end} return t.f"x", t:f() == t, t.f{1}`, `"x", true, {1}`},
	{`local s = "a" return s:rep(2):upper():lower()`, `"aa"`},
	{`local f = function() return function() return 3 end end return f()()`, `3`},
	{`local x = 1 if x == 1 then return "a" elseif x == 2 then return "b" else return "c" end`, `"a"`},
	{`local x = 2 if x == 1 then return "a" elseif x == 2 then return "b" else return "c" end`, `"b"`},
	{`local x = 3 if x == 1 then return "a" elseif x == 2 then return "b" else return "c" end`, `"c"`},
	{`local _, __, _a1 = 1, 2, 3 return _, __, _a1`, `1, 2, 3`},
	{`local A, a = 1, 2 return A, a`, `1, 2`},
	{`local type = type return type(1)`, `"number"`},
	{`local nils = nil return nils`, `nil`},
	{`local self = 1 return self`, `1`},
	{`local t = {["end"] = 1, ["and"] = 2} return t["end"], t["and"]`, `1, 2`},
	{`return 1,
2`, `1, 2`},
	{`return
1`, `1`},
	{`local x =
1
return x`, `1`},
	{`local t = {
[1]
=
2
} return t[1]`, `2`},
	{`local function f(
a,
b
) return a + b end return f(
1,
2)`, `3`},
	{`local f = function(...) return ... end return f(
1)`, `1`},
	{"\x0d\n\x0d\nreturn 1", `1`},
	{"return \"a\\\x0d\nb\"", `"a\nb"`},
	{"return [[a\x0d\nb\x0dc\n\x0dd]]", `"a\nb\nc\nd"`},
	{"\x09\x0b\x0c return 1", `1`},
	{`local a = 1 local b = a local c = b return c`, `1`},
	{`=1 ..2 .. 3`, `"123"`},
	{`=2^-3, 2^- 3`, `0.125, 0.125`},
	{`=1-1, 1 -1, 1- 1`, `0, 0, 0`},
	{`=0xA, 0Xa`, `10, 10`},
	{`=3., .3, 3e0`, `3, 0.29999999999999999, 3`},
	{`local t = {1, 2, 3, [10] = 4, x = 5, (function() return 6, 7 end)()} return t`, `{1, 2, 3, 6, 7, ["x"]=5, [10]=4}`},
	{`local t = {(function() return 1, 2 end)(), (function() return 1, 2 end)()} return t`, `{1, 1, 2}`},
	{`return (...)`, `nil`},
	{`return ({...})[1]`, `nil`},
	{`return ({n = select("#", ...)}).n`, `0`},
}
