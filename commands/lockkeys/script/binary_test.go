package script

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"redlock-proxy/internal/redistest"
)

// structCalls writes random calls of struct, with valid and invalid formats, and values of all
// sizes.
type structCalls struct{ *rand.Rand }

func (p structCalls) oneOf(texts ...string) string { return texts[p.IntN(len(texts))] }

// script returns a script that makes some calls, and returns the results or the error of each call.
func (p structCalls) script() string {
	var b strings.Builder
	b.WriteString("local r = {} local function try(f, ...) local t = {pcall(f, ...)} for i = 1, 20 do local v = t[i] " +
		"if type(v) == 'number' then v = string.format('%.17g', v) end r[#r + 1] = tostring(v) end return t[2] end\n")
	for range 10 {
		fmt.Fprintf(&b, "try(function() return %s end)\n", p.call())
		fmt.Fprintf(&b, "try(%s\n", strings.Replace(strings.Replace(p.call(), "(", ", ", 1), ", )", ")", 1))
		format, values := p.matchingFormat()
		fmt.Fprintf(&b, "do local f = %q local s = try(struct.pack, f%s) try(struct.unpack, f, s) try(struct.size, f) end\n", format, values)
	}
	b.WriteString("return r")
	return b.String()
}

func (p structCalls) call() string {
	switch p.IntN(3) {
	case 0:
		return fmt.Sprintf("struct.pack(%q%s)", p.format(), p.values())
	case 1:
		return fmt.Sprintf("struct.unpack(%q, %s%s)", p.format(), p.text(),
			p.oneOf("", "", ", 2", ", 1", ", 0", ", -1", ", 9", ", nil", ", 1e300", ", 'x'"))
	}
	return fmt.Sprintf("struct.size(%q)", p.format())
}

func (p structCalls) format() string {
	var b strings.Builder
	for range p.IntN(6) {
		b.WriteString(p.oneOf("b", "B", "h", "H", "l", "L", "T", "i", "I", "f", "d", "s", "x", "c", "c0", "Bc0", "I2c0",
			"c2", "c7", " ", "<", ">", "!", "!2", "!4", "!16",
			fmt.Sprint("i", p.IntN(10)), fmt.Sprint("I", p.IntN(10)), fmt.Sprint("i", p.IntN(40)),
			fmt.Sprint("c", p.IntN(20))))
		if p.IntN(40) == 0 {
			b.WriteString(p.oneOf("z", "?", "3", "!3", "!0", "i99999999999", "c2147483647", "c2147483648",
				"!1073741824", "~", "%"))
		}
	}
	return b.String()
}

// matchingFormat returns a format, and values of the types that the format needs.
func (p structCalls) matchingFormat() (format, values string) {
	for range p.IntN(8) {
		o := p.oneOf("b", "B", "h", "H", "l", "L", "T", "i", "I", "f", "d", "s", "x", "c0", "Bc0", "c2", " ", "<", ">",
			"!", "!2", "!4", "!16", fmt.Sprint("i", p.IntN(33)), fmt.Sprint("I", p.IntN(10)))
		format += o
		switch {
		case strings.ContainsAny(o, "x <>!"):
		case o == "Bc0":
			values += ", " + p.oneOf("3, 'abc'", "0, ''", "2, 'abc'", "9, 'abc'")
		case strings.ContainsAny(o, "sc"):
			values += ", " + p.oneOf("'abc'", "'7x'", "125", p.text())
		default:
			values += ", " + p.number()
		}
	}
	return format, values
}

// values returns arguments, each after a comma.
func (p structCalls) values() string {
	var b strings.Builder
	for range p.IntN(6) {
		b.WriteString(", " + p.oneOf(p.number(), p.number(), p.text(), p.text(),
			p.oneOf("nil", "true", "{}", "'12'", "'0x10'")))
	}
	return b.String()
}

func (p structCalls) number() string {
	return p.oneOf("0", "1", "-1", "2.5", "-2.5", "0.5", "1.5", "255", "256", "-32", "2^31", "-2^31", "2^32-1",
		"2^52+1", "2^53", "2^63", "-2^63", "2^63-1024", "2^64", "2^64-2048", "1e300", "-1e300",
		"1/0", "-1/0", "0/0", "1e-320", "1e39", fmt.Sprint(p.IntN(40)), fmt.Sprint(p.NormFloat64()*1e10))
}

// text returns the source of a text, which may be longer than a buffer of C Lua.
func (p structCalls) text() string {
	bytes := make([]byte, p.IntN(24))
	for i := range bytes {
		bytes[i] = byte(p.IntN(256) * p.IntN(2))
	}
	var b strings.Builder
	for _, c := range bytes {
		fmt.Fprintf(&b, `\%03d`, c)
	}
	return p.oneOf(`"`+b.String()+`"`, `"`+b.String()+`"`, "'abc'", "''", "'7'", "('x'):rep(9000)")
}

func TestStructLikeRedis(t *testing.T) {
	redis := startRedis(t)
	for seed := range uint64(redistest.SampleCount(600)) {
		body := structCalls{rand.New(rand.NewPCG(3, seed))}.script()
		if ownReply, redisReply := runInProxy(t, body, noCall).InRESP2(), redis.eval(body, testKeys, testArgv); !sameReply(ownReply,
			redisReply) || len(ownReply.Elems) == 0 {
			for i := range min(len(ownReply.Elems), len(redisReply.Elems)) {
				if !sameReply(ownReply.Elems[i], redisReply.Elems[i]) {
					t.Fatalf("seed %d, value %d: ours %q\nredis %q\n%s", seed, i, ownReply.Elems[i].Str,
						redisReply.Elems[i].Str, body)
				}
			}
			t.Fatalf("seed %d: ours %+v\nredis %+v\n%s", seed, ownReply, redisReply, body)
		}
	}
}

// TestPackLimit checks that the input, and the limits of the run, limit the work for a
// format.
func TestPackLimit(t *testing.T) {
	for _, body := range []string{
		`return struct.pack(("d"):rep(1000), unpack(({(function() local t = {} for i = 1, 1000 do t[i] = 1 end return t end)()})[1]))`,
		`while true do struct.pack(("x"):rep(1000)) end`,
		`local s = ("x"):rep(1000) while true do struct.unpack("c1000", s) end`,
		`local f = (" "):rep(100000) while true do struct.size(f) end`,
		`local s = ("x"):rep(1000) .. "\0" while true do struct.unpack("s", s) end`,
	} {
		s, err := compile(body)
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Run(t.Context(), Input{Call: noCall, Share: Share{Time: 1 << 26}, Limits: Limits{Bytes: 1 << 20}})
		var limitErr *LimitError
		if strings.HasPrefix(body, "return") != (err == nil) || err != nil && !errors.As(err, &limitErr) {
			t.Errorf("%s: %v", body, err)
		}
	}
}

// FuzzUnpack checks that the data limits the result of unpack, for any format.
func FuzzUnpack(f *testing.F) {
	f.Add("<!4bi3c0s", "0123456789")
	f.Add("Bc0I", "\x03abc\x01\x00\x00\x00")
	f.Add("c2147483647", "")
	s, err := compile(`local t = {pcall(struct.unpack, ARGV[1], ARGV[2])}
		return {#t, (pcall(struct.size, ARGV[1])), (pcall(struct.pack, ARGV[1], unpack(t, 2)))}`)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, format, data string) {
		_, err := s.Run(t.Context(), Input{Argv: []string{format, data}, Share: Share{Time: -1}})
		var limitErr *LimitError
		if err != nil && (!errors.As(err, &limitErr) || len(format)+len(data) < 10_000) {
			t.Fatal(err)
		}
	})
}
