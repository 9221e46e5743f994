package script

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// scriptWriter writes random scripts that end: they have only short loops, and no recursion. They
// raise no table without the field err as an error, because this crashes Redis 7.0.15.
type scriptWriter struct {
	*rand.Rand
	names    []string // variables in scope
	varCount int
}

func (a *scriptWriter) oneOf(texts ...string) string { return texts[a.IntN(len(texts))] }

// script returns the source of a random script.
func (a *scriptWriter) script() string {
	var b strings.Builder
	for range a.IntN(5) {
		b.WriteString(a.statement(2) + "\n")
	}
	b.WriteString("return " + a.oneOf(a.expression(3), a.expression(3), a.expressions(3), "{"+a.expressions(3)+"}"))
	return b.String()
}

func (a *scriptWriter) statement(depth int) string {
	switch a.IntN(9) {
	case 0, 1, 2:
		value := a.expression(depth)
		a.varCount++
		name := fmt.Sprintf("v%d", a.varCount)
		a.names = append(a.names, name)
		return "local " + name + " = " + value
	case 3:
		if len(a.names) > 0 {
			return a.oneOf(a.names...) + " = " + a.expression(depth)
		}
	case 4:
		return "if " + a.expression(depth) + " then " + a.block(depth) + " else " + a.block(depth) + " end"
	case 5:
		return fmt.Sprintf("for i = %d, %d do %s end", a.IntN(5), a.IntN(8), a.block(depth))
	case 6:
		return "for k, v in " + a.oneOf("pairs", "ipairs") + "({" + a.expressions(2) + "}) do " + a.block(depth) + " end"
	case 7:
		return "redis.pcall(" + a.command() + ")"
	}
	return "do " + a.block(depth) + " end"
}

func (a *scriptWriter) block(depth int) string {
	if depth == 0 {
		return ""
	}
	outer := a.names
	text := a.statement(depth-1) + " " + a.statement(depth-1)
	a.names = outer[:len(outer):len(outer)]
	return text
}

func (a *scriptWriter) command() string {
	key := a.oneOf("KEYS[1]", "KEYS[2]", `"k3"`)
	switch a.IntN(8) {
	case 0:
		return `"set", ` + key + ", " + a.expression(1)
	case 1:
		return `"set", ` + key + ", ARGV[1], " + a.oneOf(`"NX"`, `"XX"`, `"PX", 10000`, `"GET"`, `"KEEPTTL"`,
			a.expression(1))
	case 2:
		return `"del", ` + key
	case 3:
		return `"incrby", ` + key + ", " + a.expression(1)
	case 4:
		return `"pexpire", ` + key + `, "10000"`
	case 5:
		return `"mget", KEYS[1], ` + key
	case 6:
		return `"append", ` + key + ", " + a.atom()
	}
	return a.oneOf(`"get"`, `"exists"`, `"strlen"`, `"type"`, `"lpop"`, `"sort"`, `"nosuch"`) + ", " + key
}

func (a *scriptWriter) expressions(depth int) string {
	list := make([]string, a.IntN(4))
	for i := range list {
		list[i] = a.expression(depth)
	}
	if len(list) == 0 {
		return "nil"
	}
	return strings.Join(list, ", ")
}

func (a *scriptWriter) atom() string {
	if len(a.names) > 0 && a.IntN(3) == 0 {
		return a.oneOf(a.names...)
	}
	return a.oneOf("nil", "true", "false", "0", "1", "-1", "2", "3.5", "1e15", "1e-7", "2^53", "-0", `""`, `"a"`,
		`"10"`, `"0x1F"`, `" 7 "`, `"a b"`,
		"{}", "KEYS[1]", "ARGV[1]", "ARGV[2]", "ARGV[3]", "#ARGV", "KEYS", "nosuch", "(1/0)", "(0/0)", "cjson.null")
}

func (a *scriptWriter) expression(depth int) string {
	if depth == 0 {
		return a.atom()
	}
	sub := func() string { return a.expression(depth - 1) }
	switch a.IntN(16) {
	case 0, 1, 2:
		return sub() + " " + a.oneOf("+", "-", "*", "/", "%", "^", "..", "==", "~=", "<", "<=", ">", ">=", "and",
			"or") + " " + sub()
	case 3:
		return a.oneOf("not ", "-", "#") + sub()
	case 4:
		return "(" + sub() + ")"
	case 5:
		return "{" + a.expressions(depth-1) + "}"
	case 6:
		return "{" + a.oneOf("x", "y", "ok", "err", "["+a.atom()+"]") + " = " + sub() + ", " + sub() + "}"
	case 7:
		return "(" + sub() + ")" + a.oneOf(".x", "[1]", ".ok", "["+a.atom()+"]")
	case 8:
		return "redis." + a.oneOf("call", "pcall") + "(" + a.command() + ")"
	case 9:
		return a.oneOf("tostring", "tonumber", "type", "#") + "(" + sub() + ")"
	case 10:
		return "math." + a.oneOf("floor", "ceil", "abs", "sqrt", "max", "fmod") + "(" + a.expressions(depth-1) + ")"
	case 11:
		return "string." + a.oneOf("sub", "rep", "upper", "len", "byte", "find", "match", "gsub", "format",
			"reverse") + "(" + sub() + ", " + a.oneOf(`"%d"`, `"."`, "2", "1", "-1", `"%s"`, `"a"`, `"(.)"`) + ", " +
			a.oneOf("1", "2", `"x"`, sub()) + ")"
	case 12:
		return a.oneOf("cjson.encode", "cjson.decode", "redis.sha1hex", "redis.error_reply", "redis.status_reply",
			"unpack", "next") + "(" + sub() + ")"
	case 13:
		return "select(" + a.oneOf("1", "2", "-1", `"#"`, sub()) + ", " + a.expressions(depth-1) + ")"
	case 14:
		return "pcall(" + a.oneOf("tostring", "redis.call", "string.rep", "function() return "+sub()+" end",
			sub()) + ", " + sub() + ")"
	}
	return "table.concat({" + a.expressions(depth-1) + "}, " + a.oneOf(`","`, sub()) + ")"
}

// mutate returns a script with one to three parts deleted, inserted or replaced.
func mutate(random *rand.Rand, body string) string {
	pieces := []string{" ", "\n", "end", "(", ")", "{", "}", "[", "]", "=", "==", ",", ";", ".", "..", "...", ":", "\"",
		"'", "[[", "]]", "--", "--[[", "\\", "0x", "1e", "3x",
		"local", "function", "return", "if", "then", "else", "for", "in", "do", "while", "repeat", "until", "break",
		"and", "not", "nil", "x", "#", "~", "~=", "!", "\x00", "\x7f", "é"}
	for range 1 + random.IntN(3) {
		at := random.IntN(len(body) + 1)
		to := min(at+random.IntN(6), len(body))
		switch random.IntN(3) {
		case 0:
			body = body[:at] + body[to:]
		case 1:
			body = body[:at] + pieces[random.IntN(len(pieces))] + body[at:]
		default:
			body = body[:at] + pieces[random.IntN(len(pieces))] + body[to:]
		}
	}
	return body
}
