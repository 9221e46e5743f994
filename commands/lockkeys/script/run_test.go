package script

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"redlock-proxy/commands/lockkeys/keyspace"
	"redlock-proxy/internal/redistest"
)

// fixedReply returns a Call that always returns the same reply.
func fixedReply(reply keyspace.Reply) func([]string, func(int)) (keyspace.Reply, error) {
	return func([]string, func(int)) (keyspace.Reply, error) { return reply, nil }
}

func noCall([]string, func(int)) (keyspace.Reply, error) {
	return keyspace.Reply{}, errors.New("no command was expected")
}

var nilReply = keyspace.Reply{Kind: keyspace.Nil}

// TestReplyOfValue checks the rules by which a script's value becomes a reply.
func TestReplyOfValue(t *testing.T) {
	for value, want := range map[string]keyspace.Reply{
		`3`:      keyspace.IntReply(3),
		`3.99`:   keyspace.IntReply(3),
		`-3.99`:  keyspace.IntReply(-3),
		`2^53`:   keyspace.IntReply(1 << 53),
		`1e300`:  keyspace.IntReply(-1 << 63),
		`0/0`:    keyspace.IntReply(-1 << 63),
		`"text"`: keyspace.BulkReply("text"),
		`"3"`:    keyspace.BulkReply("3"),
		`true`:   keyspace.IntReply(1),
		`false`:  nilReply,
		`nil`:    nilReply,
		`type`:   nilReply,
		`{}`:     keyspace.ArrayReply(),
		`{1, "a", {2}}`: keyspace.ArrayReply(keyspace.IntReply(1), keyspace.BulkReply("a"),
			keyspace.ArrayReply(keyspace.IntReply(2))),
		`{1, nil, 3}`:              keyspace.ArrayReply(keyspace.IntReply(1)),
		`{1, false, 3}`:            keyspace.ArrayReply(keyspace.IntReply(1), nilReply, keyspace.IntReply(3)),
		`{ok = "FINE"}`:            {Kind: keyspace.Status, Str: "FINE"},
		`{err = "MY text"}`:        keyspace.ErrorReply("MY text"),
		`redis.error_reply("x")`:   keyspace.ErrorReply("ERR x"),
		`redis.error_reply("X y")`: keyspace.ErrorReply("X y"),
		`redis.status_reply("x")`:  {Kind: keyspace.Status, Str: "x"},
		`{x = 1}`:                  keyspace.ArrayReply(),
		`{double = 0.5}`:           keyspace.DoubleReply(0.5),
		`{map = {a = 1}}`: {Kind: keyspace.Map, Elems: []keyspace.Reply{keyspace.BulkReply("a"),
			keyspace.IntReply(1)}},
	} {
		if got := runInProxy(t, "return "+value, noCall); !sameReply(got, want) {
			t.Errorf("%s: %+v, want %+v", value, got, want)
		}
	}
}

// TestValueOfReply checks the rules by which a command's reply becomes a value.
func TestValueOfReply(t *testing.T) {
	show := `local show
	show = function(v)
		if type(v) ~= "table" then return type(v) .. " " .. tostring(v) end
		if v.ok then return "ok " .. v.ok elseif v.err then return "err " .. v.err end
		local all = {} for i, e in ipairs(v) do all[i] = show(e) end
		return "{" .. table.concat(all, ", ") .. "}"
	end
	return show(redis.pcall("x"))`
	for _, test := range []struct {
		reply keyspace.Reply
		want  string
	}{
		{keyspace.IntReply(7), "number 7"},
		{keyspace.IntReply(1<<62 + 1), "number 4.6116860184274e+18"},
		{keyspace.BulkReply("a"), "string a"},
		{nilReply, "boolean false"},
		{keyspace.Reply{Kind: keyspace.NilArray}, "boolean false"},
		{keyspace.OK(), "ok OK"},
		{keyspace.ErrorReply("WRONGTYPE no"), "err WRONGTYPE no"},
		{keyspace.ErrorReply("ODD"), "err ERR ODD"},
		{keyspace.ArrayReply(keyspace.IntReply(1), nilReply, keyspace.ArrayReply(keyspace.BulkReply("x"))),
			"{number 1, boolean false, {string x}}"},
	} {
		if got := runInProxy(t, show, fixedReply(test.reply)); got.Str != test.want {
			t.Errorf("%+v: %q, want %q", test.reply, got.Str, test.want)
		}
	}
}

// TestWordsOfCommand checks that commands get their words as in Redis.
func TestWordsOfCommand(t *testing.T) {
	var got []string
	runInProxy(t, `redis.call("SET", KEYS[1], 1, 1.5, -0.1, 2^53, 1e17, "a\0b", "")`,
		func(words []string, _ func(int)) (keyspace.Reply, error) {
			got = words
			return keyspace.OK(), nil
		})
	if want := []string{"SET", "k1", "1", "1.5", "-0.10000000000000001", "9007199254740992", "1e+17", "a\x00b",
		""}; !reflect.DeepEqual(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestErrorOfCall checks that an error of Call ends the run, even within pcall, and that Run
// returns it.
func TestErrorOfCall(t *testing.T) {
	errChanged := errors.New("the register changed")
	for _, body := range []string{
		`return redis.call("get", "k")`,
		`return redis.pcall("get", "k")`,
		`while true do pcall(redis.call, "get", "k") end`,
		`while true do xpcall(function() redis.call("get", "k") end, function() return 1 end) end`,
		`table.sort({1, 2, 3}, function() redis.call("get", "k") end)`,
	} {
		s, err := compile(body)
		if err != nil {
			t.Fatal(err)
		}
		calls := 0
		_, err = s.Run(t.Context(), Input{Call: func([]string, func(int)) (keyspace.Reply,
			error) {
			calls++
			return keyspace.Reply{}, errChanged
		}})
		if err != errChanged || calls != 1 {
			t.Errorf("%s: %v after %d calls", body, err, calls)
		}
	}
}

// TestLimits checks that a run at a limit ends with its error, even within pcall.
func TestLimits(t *testing.T) {
	for body, want := range map[string]string{
		`while true do end`:       "ran for longer than",
		`repeat until false`:      "ran for longer than",
		`for i = 1, 1e300 do end`: "ran for longer than",
		`while true do pcall(function() while true do end end) end`:                                                    "ran for longer than",
		`local function f() return f() end return f()`:                                                                 "ran for longer than",
		`for i in function() return 1 end do end`:                                                                      "ran for longer than",
		`return ("a"):rep(30000):find(("a-"):rep(20) .. "b")`:                                                          "ran for longer than",
		`local t = setmetatable({}, {__index = function(t, k) return k end}) while t[1] do end`:                        "ran for longer than",
		`table.insert({}, -2^31, 1)`:                                                                                   "ran for longer than",
		`return string.rep("x", 1e9)`:                                                                                  "allocated more than",
		`return string.rep(string.rep("x", 1e6), 1e6)`:                                                                 "allocated more than",
		`return {pcall(string.rep, "x", 1e9)}`:                                                                         "allocated more than",
		`local s = "x" while true do s = s .. s end`:                                                                   "allocated more than",
		`local t = {} for i = 1, 1e9 do t[i] = i end`:                                                                  "allocated more than",
		`local t = {} for i = 1, 1e9 do t["k" .. i] = i end`:                                                           "allocated more than",
		`local t = {} for i = 1, 1e9 do t[i] = {} end`:                                                                 "allocated more than",
		`local t = {} for i = 1, 1e9 do t[i] = function() return t end end`:                                            "allocated more than",
		`local t = {} for i = 1, 7000 do t[i] = i end local function f(...) return 1 + f(...) end return f(unpack(t))`: "allocated more than",
		`local s = string.rep("x", 1e6) return (s:gsub("x", s))`:                                                       "allocated more than",
		`local s = string.rep("x", 1e6) return s:gsub(".", "%0%0%0%0%0%0%0%0%0%0%0%0%0%0%0%0%0%0%0%0")`:                "allocated more than",
		`local t = {} for i = 1, 1000 do t[i] = string.rep("x", 1000) end return table.concat({table.concat(t):rep(4), table.concat(t):rep(4), table.concat(t):rep(4)})`: "allocated more than",
		`return cjson.encode({string.rep("\1", 4e6)})`:                 "allocated more than",
		`return loadstring(string.rep("x = 1 ", 1e6))`:                 "allocated more than",
		`while true do redis.call("get", "k") end`:                     "called more than 10000 commands",
		`while true do pcall(redis.call, "get", "k") end`:              "called more than 10000 commands",
		`return string.rep("x", 2e6)`:                                  "returned more than 1048576 bytes",
		`local t = {} for i = 1, 1e5 do t[i] = i end return t`:         "returned more than 1048576 bytes",
		`local t = {} for i = 1, 1e5 do t[i] = i end return {set = t}`: "returned more than 1048576 bytes",
		`local t = {} t[1] = t return t`:                               "returned tables that nest deeper than 128",
		`local t = {} t[1] = {map = {t}} return t`:                     "returned tables that nest deeper than 128",
	} {
		s, err := compile(body)
		if err != nil {
			t.Fatal(err)
		}
		limit := time.Minute
		if strings.HasPrefix(want, "ran") {
			limit = 20 * time.Millisecond
		}
		reply, err := s.Run(t.Context(), Input{Call: fixedReply(keyspace.IntReply(1)), Share: Share{Time: limit},
			Limits: Limits{Bytes: 8 << 20}})
		var limitErr *LimitError
		if !errors.As(err, &limitErr) || !strings.HasPrefix(limitErr.Error(), "ERR script "+want) ||
			!strings.HasSuffix(limitErr.Error(), " script: "+s.SHA()+".") {
			t.Errorf("%s: %+v %v, want %q", body, reply, err, want)
		}
	}
}

// TestContext checks that the end of a context ends a run, with the cause as the error.
func TestContext(t *testing.T) {
	cause := errors.New("the client disconnected")
	ctx, cancel := context.WithCancelCause(t.Context())
	s, err := compile(`while true do pcall(function() redis.pcall("ping") end) end`)
	if err != nil {
		t.Fatal(err)
	}
	call := func([]string, func(int)) (keyspace.Reply, error) { cancel(cause); return keyspace.OK(), nil }
	if _, err := s.Run(ctx, Input{Call: call, Share: Share{Time: -1}, Limits: Limits{Calls: 1 << 30}}); err != cause {
		t.Errorf("%v, want %v", err, cause)
	}
}

// TestIsolationOfRuns checks that no run sees changes of an earlier run of any script.
func TestIsolationOfRuns(t *testing.T) {
	redistest.SkipShort(t)
	probe := `local seen = {math.random(1000), tostring({}), cjson.encode(1/3), KEYS[1], #KEYS, ARGV[1], tostring(rawget(_G, "leak")), redis.setresp == nil}
		for _, library in ipairs({string, table, math, redis, cjson, bit, coroutine, struct, getmetatable("")}) do
			local names = {} for k, v in pairs(library) do names[#names + 1] = tostring(k) .. tostring(v) end
			seen[#seen + 1] = table.concat(names, " ")
		end
		local names = {} for k, v in pairs(_G) do names[#names + 1] = tostring(k) .. tostring(v) end
		seen[#seen + 1] = table.concat(names, " ")
		seen[#seen + 1] = tostring(getmetatable({}) == nil)
		return seen`
	want := runInProxy(t, probe, noCall)
	for _, body := range append(scriptsOf(t, "testdata/scripts.lua"),
		`leak = 1`, `rawset(_G, "leak", 1)`, `_G.leak = 1`, `string.leak = 1`, `rawset(string, "leak", 1)`,
		`rawset(getmetatable(""), "__index", {})`,
		`getmetatable(_G).__index = function() return 1 end`, `rawset(getmetatable(_G), "__index", {})`,
		`setmetatable(_G, {})`, `setmetatable(string, {})`,
		`table.insert(KEYS, 1, "leak")`, `KEYS[1] = "leak" ARGV[1] = "leak"`, `table.insert(string, "leak")`,
		`table.sort(redis)`, `table.remove(math)`,
		`math.randomseed(7)`, `redis.setresp(3)`, `for k in pairs(redis) do redis[k] = nil end`,
		`local f = loadstring("leak = 1") f()`, `debug.sethook()`, `loadstring("string.leak = 1")()`,
		`setmetatable(getmetatable(_G), {})`,
	) {
		runInProxy(t, body, fixedReply(keyspace.IntReply(1)))
		if got := runInProxy(t, probe, noCall); !sameReply(got, want) {
			t.Fatalf("after %q:\n%+v\nwant\n%+v", body, got, want)
		}
	}
}

func TestConcurrentRuns(t *testing.T) {
	s, err := compile(`local t = {} for i = 1, 100 do t[i] = KEYS[1] .. i end table.sort(t) return {t[1], redis.call("get", KEYS[1]), cjson.encode({KEYS[1]}), ("x"):rep(3)}`)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 8 {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			key := fmt.Sprint("k", i)
			want := keyspace.ArrayReply(keyspace.BulkReply(key+"1"), keyspace.BulkReply(key),
				keyspace.BulkReply(`["`+key+`"]`),
				keyspace.BulkReply("xxx"))
			for range 200 {
				got, err := s.Run(t.Context(), Input{Keys: []string{key}, Call: fixedReply(keyspace.BulkReply(key)),
					Share: Share{Time: -1}})
				if err != nil || !sameReply(got, want) {
					t.Fatalf("%+v %v, want %+v", got, err, want)
				}
			}
		})
	}
}

func TestReadOnly(t *testing.T) {
	redis := startRedis(t)
	redisCommands := map[string]bool{}
	for _, entry := range redis.do("COMMAND").Elems {
		redisCommands[entry.Elems[0].Str] = true
	}
	const writeRefusal = "ERR Write commands are not allowed from read-only scripts."
	for _, name := range []string{"set", "DEL", "publish", "PfCount", "delex"} {
		s, err := compile(`return redis.pcall("` + name + `", KEYS[1], "x")`)
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.Run(t.Context(), Input{Keys: testKeys, ReadOnly: true, Call: noCall})
		if err != nil || got.Str != writeRefusal {
			t.Errorf("%s: %+v %v", name, got, err)
		}
		if redisCommands[strings.ToLower(name)] {
			if redisReply := redis.do("EVAL_RO", s.Body(), "1", "k1"); !strings.HasPrefix(redisReply.Str, writeRefusal) {
				t.Errorf("%s in Redis: %+v", name, redisReply)
			}
		}
	}
}

// TestDifferencesFromRedis checks the differences from Redis 7.0, and gives the reason for each.
func TestDifferencesFromRedis(t *testing.T) {
	for _, test := range []struct{ reason, body, want string }{
		{"Redis 7.0.15 crashes", `error({})`, "ERR unknown error"},
		{"left out", `return cjson.new()`,
			"ERR user_script:1: cjson.new is not available to scripts that run in the proxy"},
		{"left out", `return coroutine.wrap(type)`,
			"ERR user_script:1: coroutine.wrap is not available to scripts that run in the proxy"},
		{"left out", `return bit.bor(1, 2)`,
			"ERR user_script:1: bit.bor is not available to scripts that run in the proxy"},
	} {
		want := test.want + " script: " + SHA(test.body) + ", on @user_script:1."
		if got := runInProxy(t, test.body, noCall); got.Str != want {
			t.Errorf("%s (%s): %+v", test.body, test.reason, got)
		}
	}
}
