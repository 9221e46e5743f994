//go:build integration

package lockkeys

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"
)

// luaScript is a script with two keys, the values ARGV[1] and ARGV[2], and the TTL ARGV[3].
type luaScript struct {
	body, sha string
	hasTimes  bool // its reply may contain a remaining time
}

// luaScripts generates n scripts.
func luaScripts(random *rand.Rand, n int) []luaScript {
	scripts := make([]luaScript, n)
	for i := range scripts {
		w := &luaWriter{random: random}
		w.writeBlock(2, 3)
		w.writeLine("return %s", w.result())
		body := w.text.String()
		sum := sha1.Sum([]byte(body))
		scripts[i] = luaScript{body: body, sha: hex.EncodeToString(sum[:]), hasTimes: w.hasTimes}
	}
	return scripts
}

// luaWriter writes one script. The script never depends on the order of a table's fields, which
// depends on the implementation.
type luaWriter struct {
	random   *rand.Rand
	text     strings.Builder
	depth    int
	locals   int // number of visible variables v1, v2 …; each holds a text, or false
	hasTimes bool
}

func (w *luaWriter) writeLine(format string, args ...any) {
	w.text.WriteString(strings.Repeat("  ", w.depth))
	fmt.Fprintf(&w.text, format, args...)
	w.text.WriteByte('\n')
}

func (w *luaWriter) key() string { return pick(w.random, "KEYS[1]", "KEYS[1]", "KEYS[2]") }

func (w *luaWriter) value() string {
	return pick(w.random, "ARGV[1]", "ARGV[2]", "'a'", `"b"`, "'7'", "5")
}

// call returns an expression that runs a command by redis.call or redis.pcall.
func (w *luaWriter) call(function string, words ...string) string {
	words[0] = "'" + pick(w.random, words[0], strings.ToUpper(words[0])) + "'"
	return "redis." + function + "(" + strings.Join(words, ", ") + ")"
}

// writeBlock writes some statements, nested up to the given depth. Its variables are not visible
// after the block.
func (w *luaWriter) writeBlock(nesting, statements int) {
	locals := w.locals
	for range 1 + w.random.IntN(statements) {
		w.writeStatement(nesting)
	}
	w.locals = locals
}

// writeStatement writes one statement, which may declare a variable.
func (w *luaWriter) writeStatement(nesting int) {
	switch n := w.random.IntN(16); {
	case n < 3:
		w.writeLine("local v%d = %s", w.locals+1, w.call("call", "get", w.key()))
		w.locals++
	case n < 6:
		w.writeLine("%s", w.changingCommand("call"))
	case n < 10 && nesting > 0:
		w.writeBranch(nesting)
	case n == 10 && nesting > 0:
		w.writeLine("for i = 1, %d do", 1+w.random.IntN(3))
		w.writeNestedBlock(nesting)
		w.writeLine("end")
	case n == 11:
		w.writeLine("local r = redis.pcall('incr', %s) if type(r) == 'table' then return %s end", w.key(),
			pick(w.random, "r", "r.err", "{err = 'MINE ' .. r.err}", "{1, r['err']}"))
	case n == 12:
		w.writeLine("if %s then return %s end", w.condition(), w.result())
	case n == 13:
		w.writeLine("if %s then %s end", w.condition(), pick(w.random, "error('boom')", "error({err = 'MY own'})",
			"redis.call('get')", "redis.call()", "local x = nil + 1"))
	case n == 14:
		w.writeLine("redis.pcall('set', %s)", w.key())
	default:
		w.writeLine("-- nothing here")
	}
}

// changingCommand returns a command that changes a key.
func (w *luaWriter) changingCommand(function string) string {
	switch w.random.IntN(9) {
	case 0:
		return w.call(function, "set", w.key(), w.value(), "'NX'", "'PX'", "ARGV[3]")
	case 1:
		return w.call(function, "set", w.key(), w.value(), "'XX'")
	case 2:
		return w.call(function, "set", w.key(), w.value(), "'px'", "ARGV[3]")
	case 3, 4:
		return w.call(function, "del", w.key())
	case 5:
		return w.call(function, "pexpire", w.key(), "ARGV[3]")
	case 6:
		return w.call(function, "setnx", w.key(), w.value())
	case 7:
		return w.call(function, "getset", w.key(), w.value())
	default:
		return w.call(function, pick(w.random, "persist", "unlink", "getdel"), w.key())
	}
}

func (w *luaWriter) writeBranch(nesting int) {
	w.writeLine("if %s then", w.condition())
	w.writeNestedBlock(nesting)
	if w.random.IntN(2) == 0 {
		w.writeLine("else")
		w.writeNestedBlock(nesting)
	}
	w.writeLine("end")
}

func (w *luaWriter) writeNestedBlock(nesting int) {
	w.depth++
	w.writeBlock(nesting-1, 2)
	w.depth--
}

// condition returns a condition on the values of keys.
func (w *luaWriter) condition() string {
	switch w.random.IntN(8) {
	case 0, 1, 2:
		return w.call("call", "get", w.key()) + pick(w.random, " == ", " == ", " ~= ") + w.value()
	case 3:
		return w.call("call", "exists", w.key()) + " == " + pick(w.random, "0", "1")
	case 4:
		return w.call("call", "pttl", w.key()) + pick(w.random, " > 0", " == -1", " < 0", " == -2")
	case 5:
		return pick(w.random, "not ", "") + w.local()
	case 6:
		return fmt.Sprintf("%s and #%s > 1", w.local(), "tostring("+w.local()+")")
	default:
		return fmt.Sprintf("(%s) == (%s)", w.call("call", "get", "KEYS[1]"), w.call("call", "get", "KEYS[2]"))
	}
}

// local returns a variable, or another expression if there is none.
func (w *luaWriter) local() string {
	if w.locals == 0 {
		return w.call("call", "get", w.key())
	}
	return fmt.Sprintf("v%d", 1+w.random.IntN(w.locals))
}

// result returns the expression to return.
func (w *luaWriter) result() string {
	switch w.random.IntN(22) {
	case 0, 1:
		return w.changingCommand("call")
	case 2:
		return w.changingCommand("pcall")
	case 3, 4:
		return w.local()
	case 5:
		w.hasTimes = true
		return pick(w.random, w.call("call", "pttl", w.key()), "{'left', "+w.call("call", "pttl", w.key())+"}",
			w.call("call", "ttl", w.key()))
	case 6:
		return pick(w.random, "1", "0", "-1", "3.99", "-3.99", "1e15", "nil", "true", "false", "'text'", "''", "{}")
	case 7:
		return "{1, 'two', " + w.local() + ", 4}"
	case 8:
		return "{1, {2, nil, 3}, " + w.value() + ", {}}"
	case 9:
		return "redis.status_reply('FINE')"
	case 10:
		return pick(w.random, "redis.error_reply('MINE is wrong')", "redis.error_reply('-MINE is wrong')",
			"redis.error_reply('wrong')")
	case 11:
		return pick(w.random, "{ok = 'WELL'}", "{err = 'BAD'}", "{err = 'BAD thing', ok = 'WELL'}")
	case 12:
		return fmt.Sprintf("tostring(%s)", w.local())
	case 13:
		return fmt.Sprintf("tonumber(%s)", w.local())
	case 14:
		return fmt.Sprintf("cjson.encode({%s, 1, 2.5, 'x', true})", w.local())
	case 15:
		return fmt.Sprintf("cjson.encode({held = %s})", w.local())
	case 16:
		return `cjson.decode('{"a": [1, "b", null, false, 2.75]}')['a']`
	case 17:
		return fmt.Sprintf("redis.sha1hex(tostring(%s))", w.local())
	case 18:
		return fmt.Sprintf("tostring(%s == 1)", w.call("call", "del", w.key()))
	case 19:
		return fmt.Sprintf("%s .. ':' .. 10 / 4 .. ':' .. #%s", "tostring("+w.local()+")", w.stringValue())
	case 20:
		return w.call("call", pick(w.random, "strlen", "exists", "type"), w.key())
	default:
		return w.call("call", "mget", "KEYS[1]", "KEYS[2]")
	}
}

// stringValue returns a Lua expression for a string.
func (w *luaWriter) stringValue() string { return pick(w.random, "ARGV[1]", "ARGV[2]", "'some'") }
