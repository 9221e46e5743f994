package script

import (
	"math/rand/v2"
	"strconv"
	"strings"
)

// adversary writes programs that do not end. Each iteration does much work that the interpreter
// might not charge for. The programs have long blocks, tables of odd shapes, builtins with long
// arguments, and metatables. A program has at most maxProgram bytes.
type adversary struct {
	*rand.Rand
	remainingBytes int // the remaining bytes for the program
}

const maxProgram = 1 << 20

func (a *adversary) oneOf(texts ...string) string { return texts[a.IntN(len(texts))] }

// program returns a program that needs a long text as ARGV[1].
func (a *adversary) program() string {
	a.remainingBytes = 1 << (8 + a.IntN(13)) // small and large programs find different bugs
	a.remainingBytes = min(a.remainingBytes, maxProgram) - 2000
	var b strings.Builder
	b.WriteString("local s, n, x, y, z = ARGV[1], 0 local t, u = {}, {}\n")
	for range a.IntN(3) {
		b.WriteString(a.tables() + "\n")
	}
	b.WriteString("local function f(...) " + a.block(2) + " return ... end\n")
	body := a.block(4)
	switch a.IntN(4) {
	case 0:
		b.WriteString("while true do " + body + " end")
	case 1:
		b.WriteString("local function g(...) pcall(function(...) " + body + " end) return g() end g()")
	default:
		b.WriteString("while true do pcall(function(...) " + body + " end) end")
	}
	if b.Len() > maxProgram {
		return "while true do end"
	}
	return b.String()
}

// tables returns statements that give the tables t or u an odd shape.
func (a *adversary) tables() string {
	return strings.ReplaceAll(a.oneOf(
		"for i = 1, N do t[i] = i end",
		"for i = 1, N do t['k' .. i] = i end for k in pairs(t) do t[k] = nil end for i = 1, N / 2 do t[i] = i end for i = 0, 32 do t[2 ^ i] = i end",
		"for i = 1, N do t[i] = i end for i = 1, N do t[i] = nil end",
		"for i = 1, N / 64 do u[('x'):rep(64) .. i .. ('x'):rep(300)] = i end",
		"for i = 1, 90 do t = setmetatable({}, {__index = t, __newindex = u}) end",
		"for i = 1, 90 do t = setmetatable({}, {__index = function(_, k) return k end, __call = tostring, __concat = function(p) return p end}) end",
		"for i = 1, N % 8000 do u[i] = s end",
		"for i = 1, N do u[i] = i * 7919 % 1009 end",
		"setmetatable(u, {__lt = function() return true end, __eq = rawequal, __add = function(p) return p end, __tostring = function() return s end})",
		"for i = 1, N % 500 do u = {u} end",
	), "N", strconv.Itoa(1<<a.IntN(16)))
}

// block returns some statements, or one statement many times.
func (a *adversary) block(depth int) string {
	statement := a.statement(depth) + " "
	if maxRepeats := a.remainingBytes / len(statement); maxRepeats > 1 && a.IntN(3) > 0 {
		n := 1 + a.IntN(maxRepeats)
		a.remainingBytes -= n * len(statement)
		return strings.Repeat(statement, n)
	}
	a.remainingBytes -= len(statement)
	return statement + a.statement(depth)
}

func (a *adversary) statement(depth int) string {
	if depth > 0 {
		switch a.IntN(12) {
		case 0:
			return "for i = 1, " + a.oneOf("2", "1e9", "n", "#t") + " do " + a.block(depth-1) + " end"
		case 1:
			return "if " + a.expression(2) + " then " + a.block(depth-1) + " else " + a.block(depth-1) + " end"
		case 2:
			return "for k, v in " + a.oneOf("pairs(t)", "pairs(u)", "ipairs(t)", "next, u", "s:gmatch('.')",
				"string.gmatch(s, '()')") + " do x = k " + a.block(depth-1) + " end"
		case 3:
			return "pcall(function(...) " + a.block(depth-1) + " end)"
		case 4:
			return "repeat " + a.block(depth-1) + " until " + a.expression(2)
		}
	}
	switch a.IntN(8) {
	case 0:
		return a.oneOf("x", "y", "z") + ", n = " + a.expression(2) + ", " + a.expression(1)
	case 1:
		return a.oneOf("t", "u") + "[" + a.expression(1) + "] = " + a.expression(2)
	case 2:
		return "f(" + a.arguments() + ")"
	case 3:
		return "x = {" + a.arguments() + "}"
	case 4:
		return "if " + a.expression(1) + " then end"
	}
	return a.oneOf("x", "y") + " = " + a.builtin()
}

func (a *adversary) arguments() string {
	list := make([]string, a.IntN(4))
	for i := range list {
		list[i] = a.atom()
	}
	return strings.Join(append(list, a.oneOf("nil", "s", "unpack(u)", "unpack(t)", "x", "...")), ", ")
}

func (a *adversary) atom() string {
	return a.oneOf("s", "t", "u", "x", "y", "z", "n", "1", "2", "-1", "1e9", "2^31", "0/0", "nil", "true", "''", "'a'",
		"'%d'", "f", "{}", "#t", "#u", "s .. 'b'", "t.x", "u.y", "t[n]", "ARGV")
}

func (a *adversary) expression(depth int) string {
	if depth == 0 {
		return a.atom()
	}
	switch a.IntN(6) {
	case 0:
		return a.atom()
	case 1:
		return "(" + a.expression(depth-1) + " " + a.oneOf("+", "..", "==", "<", "<=", "and", "or", "%", "^") + " " +
			a.expression(depth-1) + ")"
	case 2:
		return a.oneOf("#", "-", "not ") + "(" + a.expression(depth-1) + ")"
	case 3:
		return "(" + a.expression(depth-1) + ")" + a.oneOf(".x", "[1]", "[s]", ":upper()", "()")
	}
	return a.builtin()
}

// builtin returns a call of a library function.
func (a *adversary) builtin() string {
	text, pattern := a.oneOf("s", "s", "x", "tostring(t)", "('a'):rep(1e5)", "''"),
		a.oneOf(`""`, `"a"`, `".-.-b"`, `"a*a*b"`, `"%f[b]"`, `"%bab"`, `"()"`, `"[^b]*$"`, `"(a*)%1b"`, "s", `"^b"`)
	table, index := a.oneOf("t", "u", "x", "{s, s, s}", "{}"), a.oneOf("1", "-1", "n", "1e9", "2^31", "-2^31", "#t", "nil")
	return a.oneOf(
		"string.rep("+text+", "+index+")", "string.find("+text+", "+pattern+", "+index+")",
		"string.find("+text+", "+pattern+", 1, true)", "string.match("+text+", "+pattern+")",
		"string.gsub("+text+", "+pattern+", "+a.oneOf(`""`, `"%0%0"`, "f", "t", "tostring")+")",
		"string.gmatch("+text+", "+pattern+")()", "string.format("+a.oneOf(`"%q"`, `"%99.99f"`, `"%s%s%s"`,
			"s")+", "+a.arguments()+")",
		"string.byte("+text+", 1, "+index+")", "string.char("+index+")", "string.reverse("+text+")",
		"string.upper("+text+")", "string.sub("+text+", "+index+")", "string.len("+text+")",
		"table.insert("+table+", "+index+")", "table.insert("+table+", "+index+", s)",
		"table.remove("+table+", "+index+")", "table.concat("+table+", "+text+")",
		"table.sort("+table+a.oneOf("", ", f", ", function(p, q) return tostring(p) < tostring(q) end")+")",
		"table.maxn("+table+")", "table.getn("+table+")", "table.foreach("+table+", f)", "unpack("+table+", "+index+")",
		"select("+index+", "+a.arguments()+")", "tostring("+table+")", "tonumber("+text+", "+a.oneOf("10", "16", "2")+")",
		"loadstring("+text+")", "loadstring('return ' .. ("+text+"))", "load(function() return "+text+" end)",
		"setmetatable("+table+", "+a.oneOf("t", "u", "{__index = t}", "{__newindex = u}")+")",
		"rawset("+table+", "+index+", s)", "rawget("+table+", "+index+")",
		"next("+table+", "+index+")", "pcall("+a.oneOf("f", "error", "string.rep", "unpack")+", "+a.arguments()+")",
		"xpcall(f, error)", "cjson.encode("+table+")", "cjson.decode("+text+")", "struct.pack('s', "+text+")",
		"struct.pack("+text+", "+index+")",
		"struct.unpack('s', "+text+")", "redis.sha1hex("+text+")", "redis.pcall('get', "+text+")",
		"redis.error_reply("+text+")", "collectgarbage('count')", "math.max("+a.arguments()+")", "rawequal("+text+", s)",
	)
}
