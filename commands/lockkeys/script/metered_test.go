package script

import (
	"errors"
	"strings"
	"testing"

	"redlock-proxy/commands/lockkeys/keyspace"
	"redlock-proxy/internal/lua"
	"redlock-proxy/internal/lua/meter"
	"redlock-proxy/internal/redistest"
)

// pauseLimit is a meter.Pace that ends a run after a number of pauses.
type pauseLimit int

func (*pauseLimit) Grow() error { return nil }

func (e *pauseLimit) Pause() error {
	if *e--; *e <= 0 {
		return errTestDone
	}
	return nil
}

// TestMeteredCalls checks that the meter charges a run for the values that its commands process.
func TestMeteredCalls(t *testing.T) {
	s, err := compile(`for i = 1, 40 do redis.call("smembers", KEYS[1]) end`)
	if err != nil {
		t.Fatal(err)
	}
	r := &run{script: s, Input: Input{
		Keys: []string{"k"}, Limits: Limits{}.withDefaults(),
		Call: func(words []string, charge func(int)) (keyspace.Reply, error) {
			charge(len(words) << 20)
			return keyspace.IntReply(1), nil
		},
	}}
	e := pauseLimit(20)
	if _, err := r.execute(lua.NewState(meter.Limits{Pace: &e, SmallRun: smallRun})); !errors.Is(err, errTestDone) {
		t.Errorf("%v after all but %d pauses", err, e)
	}
}

// pauses reports whether a script pauses at least the given number of times. ARGV holds texts of
// size bytes.
func pauses(t *testing.T, body string, size, times int) bool {
	t.Helper()
	s, err := compile(body)
	if err != nil {
		t.Fatal(err)
	}
	r := &run{script: s, Input: Input{
		Limits: Limits{}.withDefaults(),
		Argv: []string{
			strings.Repeat("1", size), strings.Repeat("a", size), strings.Repeat("a", size-1) + "b",
			"[" + strings.Repeat("b", size-3) + "a]", strings.Repeat("%0", size/2), strings.Repeat("%1", size/2),
			strings.Repeat("%a", size/2), "[" + strings.Repeat("1,", size/2) + "x", strings.Repeat("a", size),
		},
		Call: func([]string, func(int)) (keyspace.Reply, error) { return keyspace.ErrorReply("ERR unknown"), nil },
	}}
	e := pauseLimit(times)
	_, err = r.execute(lua.NewState(meter.Limits{Pace: &e, SmallRun: smallRun}))
	if err != nil && !errors.Is(err, errTestDone) {
		t.Fatalf("%.100s: %v", body, err)
	}
	return err != nil
}

// TestMeteredTextWork checks that work on a long text pauses as often as a loop with the
// same work. Some of the work ends with an error.
func TestMeteredTextWork(t *testing.T) {
	redistest.SkipShort(t)
	const times = 40
	for _, work := range []string{
		`local x = numeral + 1`, `local x = 1 - numeral`, `local x = -numeral`, `local x = numeral ^ numeral`,
		`for i = numeral, 1 do end`, `local x = word + 1`,
		`tonumber(numeral)`, `tonumber(word)`, `tonumber(numeral, 2)`, `tonumber(word, 16)`, `math.floor(numeral)`,
		`math.max(1, numeral)`, `math.floor(word)`,
		`string.format(word)`, `string.format(word .. "%d", {})`, `string.format("%d", numeral)`,
		`string.format("%q", {}, word)`, `string.format("%q", word)`,
		`string.format("%5.1s", word)`, `string.rep("x", numeral)`, `string.sub("x", numeral)`, `string.char(numeral)`,
		`error(word)`, `error(word, 0)`, `assert(false, word)`, `tostring(word)`, `loadstring(word)`, `select(word)`,
		`collectgarbage(word)`,
		`redis.call(word)`, `redis.pcall(word)`, `redis.pcall("get", word)`, `redis.error_reply(word)`,
		`redis.status_reply(word)`, `redis.sha1hex(word)`,
		`redis.log(numeral, "x")`, `redis.setresp(numeral)`, `redis.acl_check_cmd(word)`, `local x = _G[word]`,
		`string.find(word, longer, 1, true)`, `string.find(longer, "b", 1, true)`, `string.find(word, set)`,
		`string.find("x", set)`, `string.find(word, "[^a]")`,
		`string.find(word, "a-b")`, `string.find(word, "(a*)%1b")`, `string.match(word, "%f[b]")`,
		`string.match(word, "%bab")`, `string.match("x", classes)`,
		`string.gsub(word, "^b", "")`, `string.gsub("x", set, "")`, `string.gsub("x", "", whole)`,
		`string.gsub("x", "()", capture)`, `string.gmatch(word, set)()`,
		`string.lower(word)`, `string.upper(word)`, `string.reverse(word)`,
		`for j = 1, 16 do local x = word == other end`, `for j = 1, 16 do local x = word < other end`,
		`for j = 1, 16 do local x = word <= other end`,
		`table.concat({word, {}})`, `table.concat({1, 2}, word)`, `table.sort({word, longer, word .. "x"})`,
		`rawequal(word, other)`,
		`cjson.decode(json)`, `cjson.decode(word)`, `cjson.decode("-" .. numeral .. "x")`,
		`cjson.encode({word, error})`, `cjson.encode(word)`,
		`struct.pack("s", word)`, `struct.pack(word)`, `struct.pack("i", numeral)`, `struct.unpack("s", word)`,
		`struct.unpack(word, "")`,
		`struct.size(word)`,
	} {
		body := `local numeral, word, longer, set, whole, capture, classes, json, other = unpack(ARGV)
			for i = 1, 40 do pcall(function() ` + work + ` end) end`
		if !pauses(t, body, 400_000, times/2) {
			t.Errorf("%s does not pause often enough", work)
		}
	}
}

// TestMeteredTableWork checks that work on many elements of a table pauses often enough.
func TestMeteredTableWork(t *testing.T) {
	redistest.SkipShort(t)
	for _, work := range []string{
		`local t = {} for i = 1, 20000 do t[i] = i end for i = 1, 20000 do t[i] = nil end for i = 1, 200 do next(t) end`,
		`local t = {} for i = 1, 20000 do t["k" .. i] = i end for k in pairs(t) do t[k] = nil end for i = 1, 200 do next(t) end`,
		// The interpreter hashes only some bytes of a long key, so these keys have the same hash.
		`local t, key = {}, ("x"):rep(64) for i = 10, 99 do for j = 10, 99 do t[key .. i .. key .. j .. key] = i end end`,
		`local t = {} for i = 1, 20000 do t[i] = i end for i = 1, 200 do pcall(cjson.encode, {t, error}) end`,
		`local t = {} for i = 1, 20000 do t[i] = i end t[error] = 1 for i = 1, 200 do pcall(cjson.encode, t) end`,
		`local t = {} for i = 1, 7000 do t[i] = i end local function f() end for i = 1, 200 do f(unpack(t)) select("#", unpack(t)) end`,
	} {
		if !pauses(t, work, 10, 60) {
			t.Errorf("%s does not pause often enough", work)
		}
	}
}
