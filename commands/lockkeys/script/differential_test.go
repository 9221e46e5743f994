package script

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"redlock-proxy/commands/lockkeys/keyspace"
)

var (
	testKeys = []string{"k1", "k2"}
	testArgv = []string{"a", "10", "3.5", "", "x y"}
)

// redisPair holds two redis-servers with the same data. scriptRedis runs scripts; commandRedis runs
// the commands of scripts that this package runs.
type redisPair struct{ scriptRedis, commandRedis *redisClient }

func startPair(t testing.TB) redisPair { return redisPair{startRedis(t), startRedis(t)} }

func (p redisPair) reset() {
	for _, c := range []*redisClient{p.scriptRedis, p.commandRedis} {
		c.do("FLUSHALL")
		c.do("SCRIPT", "FLUSH", "SYNC") // SCRIPT FLUSH also resets the settings of cjson
		c.do("SET", "k1", "a")
	}
}

// run runs a script with this package and in Redis.
func (p redisPair) run(body string) (ownReply, redisReply keyspace.Reply) {
	p.reset()
	return runInProxy(p.commandRedis.t.(*testing.T), body, p.commandRedis.call).InRESP2(), p.scriptRedis.eval(body, testKeys, testArgv)
}

func runInProxy(t *testing.T, body string, call func([]string, func(int)) (keyspace.Reply, error)) keyspace.Reply {
	t.Helper()
	s, err := compile(body)
	if err != nil {
		return keyspace.ErrorReply(err.Error())
	}
	reply, err := s.Run(t.Context(), Input{Keys: testKeys, Argv: testArgv, Call: call, Share: Share{Time: -1}})
	if err != nil {
		t.Fatalf("%q: %v", body, err)
	}
	return reply
}

func TestScriptsLikeRedis(t *testing.T) {
	p := startPair(t)
	for _, body := range scriptsOf(t, "testdata/scripts.lua") {
		if ownReply, redisReply := p.run(body); !sameReply(ownReply, redisReply) {
			t.Errorf("%s\n ours %+v\nredis %+v", body, ownReply, redisReply)
		}
	}
}

func TestRandomScriptsLikeRedis(t *testing.T) {
	p := startPair(t)
	for seed := range uint64(2000) {
		body := (&scriptWriter{Rand: rand.New(rand.NewPCG(1, seed))}).script()
		if ownReply, redisReply := p.run(body); !sameReply(ownReply, redisReply) {
			t.Errorf("seed %d: %s\n ours %+v\nredis %+v", seed, body, ownReply, redisReply)
		}
	}
}

// TestCompileErrorsLikeRedis checks that each source compiles as in Redis, or gives the same error.
func TestCompileErrorsLikeRedis(t *testing.T) {
	redis := startRedis(t)
	bodies := scriptsOf(t, "testdata/scripts.lua")
	for seed := range uint64(5000) {
		random := rand.New(rand.NewPCG(2, seed))
		body := mutate(random, bodies[random.IntN(len(bodies))])
		ownReply := keyspace.BulkReply(SHA(body))
		if _, err := compile(body); err != nil {
			ownReply = keyspace.ErrorReply(err.Error())
		}
		if redisReply := redis.do("SCRIPT", "LOAD", body); !sameReply(ownReply, redisReply) {
			t.Errorf("seed %d: %q\n ours %+v\nredis %+v", seed, body, ownReply, redisReply)
		}
	}
}

// sameReply reports whether two replies are equal, except for addresses.
func sameReply(a, b keyspace.Reply) bool {
	a.Str, b.Str = address.ReplaceAllString(a.Str, "0x"), address.ReplaceAllString(b.Str, "0x")
	return a.Kind == b.Kind && a.Int == b.Int && a.Float == b.Float && a.Str == b.Str &&
		slices.EqualFunc(a.Elems, b.Elems, sameReply)
}

var address = regexp.MustCompile(`(?i)0x[0-9a-f]{6,}`)

// TestCompilerLimitsLikeRedis checks the limits of nesting and of numbers of variables.
func TestCompilerLimitsLikeRedis(t *testing.T) {
	redis := startRedis(t)
	for name, body := range map[string]func(n int) string{
		"parentheses": func(n int) string { return "return " + strings.Repeat("(", n) + "1" + strings.Repeat(")", n) },
		"tables":      func(n int) string { return "return " + strings.Repeat("{", n) + strings.Repeat("}", n) },
		"not":         func(n int) string { return "return " + strings.Repeat("not ", n) + "1" },
		"concat":      func(n int) string { return "return " + strings.Repeat("KEYS[1]..", n) + "1" },
		"power":       func(n int) string { return "return " + strings.Repeat("x^", n) + "1" },
		"blocks":      func(n int) string { return strings.Repeat("do ", n) + strings.Repeat("end ", n) },
		"functions":   func(n int) string { return strings.Repeat("local function f() ", n) + strings.Repeat("end ", n) },
		"lambdas": func(n int) string {
			return "return " + strings.Repeat("function() return ", n) + strings.Repeat("end ", n)
		},
		"ifs":        func(n int) string { return strings.Repeat("if x then ", n) + strings.Repeat("end ", n) },
		"elseifs":    func(n int) string { return "if x then " + strings.Repeat("elseif x then ", n) + "end" },
		"locals":     func(n int) string { return strings.Repeat("local a ", n) },
		"names":      func(n int) string { return "local " + strings.Repeat("a,", n) + "a" },
		"parameters": func(n int) string { return "return function(" + strings.Repeat("a,", n) + "a) end" },
		"targets":    func(n int) string { return strings.Repeat("x,", n) + "x = 1" },
		"captures": func(n int) string {
			var declarations, uses strings.Builder
			for i := range n {
				fmt.Fprintf(&declarations, "local v%d ", i)
				fmt.Fprintf(&uses, "v%d=1 ", i)
			}
			return declarations.String() + "\nreturn function() " + uses.String() + " end"
		},
		"loop variables": func(n int) string { return "for " + strings.Repeat("a,", n) + "a in x do end" },
	} {
		for _, n := range []int{1, 10, 50, 59, 60, 61, 62, 90, 99, 100, 101, 150, 180, 190, 194, 195, 196, 197, 198,
			199, 200, 201, 202, 250} {
			ownReply := keyspace.BulkReply(SHA(body(n)))
			if _, err := compile(body(n)); err != nil {
				ownReply = keyspace.ErrorReply(err.Error())
			}
			if redisReply := redis.do("SCRIPT", "LOAD", body(n)); !sameReply(ownReply, redisReply) {
				t.Errorf("%d %s:\n ours %+v\nredis %+v", n, name, ownReply, redisReply)
			}
		}
	}
}
