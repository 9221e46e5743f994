package script

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// messages writes random calls of cmsgpack.
type messages struct{ packings }

// attempts collects the results of calls, tables as they are packed and with what is in them.
const attempts = `local r = {}
local function shown(v, depth)
  if type(v) == 'number' then return string.format('%.17g', v) end
  if type(v) ~= 'table' then return tostring(v) end
  if depth > 18 then return '...' end
  local parts, unordered = {}, false
  for k, e in pairs(v) do
    parts[#parts + 1] = shown(k, depth + 1) .. '=' .. shown(e, depth + 1)
    unordered = unordered or type(k) == 'table'
  end
  if unordered then table.sort(parts) end
  return '{' .. table.concat(parts, ' ') .. '}'
end
local function try(f, ...) local t = {pcall(f, ...)} for i = 1, 8 do r[#r + 1] = shown(t[i], 0) end return t[2] end
local ring = {1} ring[2] = ring local deep = {} for i = 1, 20 do deep = {deep, k = i} end local gap = {1, 2} gap[4] = 4
local function f() end
`

func (m messages) value(depth int) string {
	if depth < 4 && m.IntN(3) == 0 {
		var parts []string
		for range m.IntN(5) {
			part := m.value(depth + 1)
			if m.IntN(3) == 0 {
				part = fmt.Sprintf("[%s] = %s", m.oneOf("'k'", "true", "2", "3", "2.5", "-1", "0", "'x'", "2^31"), part)
			}
			parts = append(parts, part)
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return m.oneOf(m.number(), m.number(), m.text(), "nil", "true", "false", "{}", "f", "cjson.null", "ring", "deep", "gap", "-33", "-128", "-129", "-32768", "-32769", "-2^31-1", "65535", "65536", "127", "128", "2^32", "0.1",
		"('y'):rep(31)", "('y'):rep(32)", "('y'):rep(256)", "('z'):rep(65536)", "{unpack({1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16})}")
}

func (m messages) script() string {
	var b strings.Builder
	b.WriteString(attempts)
	for range 10 {
		var values []string
		for range m.IntN(4) {
			values = append(values, m.value(0))
		}
		fmt.Fprintf(&b, "do local s = try(function() return cmsgpack.pack(%s) end) try(cmsgpack.unpack, s)\n", strings.Join(values, ", "))
		fmt.Fprintf(&b, "  if s then try(cmsgpack.unpack, s:sub(1, -2)) try(cmsgpack.unpack_one, s, %s) try(cmsgpack.unpack_limit, s, %s, %s) end end\n", m.offset(), m.offset(), m.offset())
		fmt.Fprintf(&b, "try(cmsgpack.unpack, %s) try(cmsgpack.unpack_limit, %s, %s)\n", m.bytes(), m.bytes(), m.offset())
		fmt.Fprintf(&b, "try(function() return cmsgpack.%s(%s) end)\n", m.oneOf("pack", "unpack", "unpack_one", "unpack_limit"), strings.Join(values, ", "))
	}
	b.WriteString("return r")
	return b.String()
}

func (m messages) offset() string {
	return m.oneOf("0", "0", "1", "1", "2", "5", "-1", "100000", "nil", "'1'", "'x'", "2^31", "2^32+1", "1.9")
}

// bytes are short messages, mostly wrong ones.
func (m messages) bytes() string {
	var b strings.Builder
	for range m.IntN(12) {
		first := []int{0x80, 0x90, 0xa0, 0xc0, 0xd0, 0xe0, 0x00}[m.IntN(7)]
		fmt.Fprintf(&b, `\%03d`, first+m.IntN(16))
		for range m.IntN(5) {
			fmt.Fprintf(&b, `\%03d`, m.IntN(4))
		}
	}
	return `"` + b.String() + `"`
}

func TestMessagePackAsInRedis(t *testing.T) {
	redis := startRedis(t)
	bodies := []string{
		`return {cmsgpack._NAME, cmsgpack._VERSION, cmsgpack._COPYRIGHT, cmsgpack._DESCRIPTION}`,
		attempts + `for n = 3990, 4010 do local t = {} for i = 1, n do t[i] = 1 end t[n] = {{2}} t[n-5] = {a={b=1}} try(function(...) local ok, e = pcall(cmsgpack.pack, ...) return ok, #e, e:sub(1, 99) end, unpack(t)) end return r`,
		attempts + `for n = 7985, 8005 do try(function() return select('#', cmsgpack.unpack(('\1'):rep(n))) end) try(function() return select('#', cmsgpack.unpack_limit(('\1'):rep(n), n)) end) end return r`,
		attempts + `for n = 3997, 4001 do for _, s in ipairs{'\145', '\129', '\129\1', '\146\1'} do local ok, e = pcall(cmsgpack.unpack, s:rep(n) .. '\1') r[#r + 1] = tostring(ok) .. (ok and '' or e) end end return r`,
		attempts + `for n = 7995, 8001 do for _, s in ipairs{'\129', '\129\1'} do local ok, e = pcall(cmsgpack.unpack, s:rep(n) .. '\1') r[#r + 1] = tostring(ok) .. (ok and '' or e) end end return r`,
	}
	for seed := range uint64(400) {
		bodies = append(bodies, messages{packings{rand.New(rand.NewPCG(5, seed))}}.script())
	}
	for n, body := range bodies {
		ours, theirs := runHere(t, body, noCall).Plain(), redis.eval(body, testKeys, testArgv)
		if same(ours, theirs) && len(ours.Elems) > 0 {
			continue
		}
		for i := range min(len(ours.Elems), len(theirs.Elems)) {
			if !same(ours.Elems[i], theirs.Elems[i]) {
				t.Fatalf("script %d, value %d: ours %.500q\nredis %.500q\n%.4000s", n, i, ours.Elems[i].Str, theirs.Elems[i].Str, body)
			}
		}
		t.Fatalf("script %d: ours %.500s\nredis %.500s\n%.4000s", n, fmt.Sprint(ours), fmt.Sprint(theirs), body)
	}
}

// A table that contains itself many times, and a message that says that it is long, are bounded by the limits of the run.
func TestMessagesAreBounded(t *testing.T) {
	for _, body := range []string{
		`local t = {} for i = 1, 10 do t[i] = t end return cmsgpack.pack(t)`,
		`local t = {} for i = 1, 10 do t["k" .. i] = t end return cmsgpack.pack(t)`,
		`local s = ("\221\0\0\0\0"):rep(1000) while true do cmsgpack.unpack(s) end`,
	} {
		s, err := Compile(body)
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Run(t.Context(), Input{Call: noCall, Limits: Limits{Bytes: 1 << 20, Time: 1 << 26}})
		if over := (*LimitError)(nil); !errors.As(err, &over) {
			t.Errorf("%s: %v", body, err)
		}
	}
}

// Whatever the message, what is unpacked is bounded by it, and can be packed and unpacked again.
func FuzzUnpackMessage(f *testing.F) {
	f.Add("\x93\x01\xa3abc\x81\xa1k\xcb\x3f\xf1\x99\x99\x99\x99\x99\x9a")
	f.Add("\xdd\xff\xff\xff\xff\x01")
	f.Add("\xdb\x00\x00\x00\x03abc\xc1")
	s, err := Compile(`local ok, v = pcall(cmsgpack.unpack, ARGV[1])
		if not ok then return v end
		local p = cmsgpack.pack(v)
		return {p, cmsgpack.pack(cmsgpack.unpack(p)), cmsgpack.unpack_one(ARGV[1]) or 0}`)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data string) {
		_, err := s.Run(t.Context(), Input{Argv: []string{data}, Limits: Limits{Time: -1}})
		var over *LimitError
		if err != nil && (!errors.As(err, &over) || len(data) < 10_000) {
			t.Fatal(err)
		}
	})
}
