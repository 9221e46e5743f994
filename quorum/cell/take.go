package cell

import (
	"time"

	"github.com/tidwall/redcon"

	"redlock-proxy/internal/luascript"
	"redlock-proxy/internal/resp"
)

// Take creates plain cells for absent keys, all or none. For one key it is a SET NX.
type Take struct {
	Names   []string
	Attempt Attempt
	// Tokens holds one token for each key, in the order of the keys.
	Tokens []string
	// TTL is in whole milliseconds, or Endless.
	TTL time.Duration
	// Mark, unless it is empty, is unique, and lets Take put marks for Attempt instead of plain
	// cells.
	Mark Ballot
	// Fence, unless it is zero, requires exactly one key, whose fence counter must be lower. Take
	// raises the counter and takes the key, or does neither.
	Fence int64
	// BeforeRedis7 avoids SET with NX and GET, which Redis before 7 refuses.
	BeforeRedis7 bool
}

var takeScript = luascript.New(layoutLua + `local answer, free = {0}, true
for i, key in ipairs(KEYS) do
  local v = get(key)
  answer[2 * i], answer[2 * i + 1] = v, redis.call('pttl', key)
  if v then free = false end
end
if not free then return answer end
for i, key in ipairs(KEYS) do
  if ARGV[1] == '-1' then redis.call('set', key, ARGV[1 + i])
  else redis.call('set', key, ARGV[1 + i], 'px', ARGV[1]) end
end
return 1`)

var takeFencedScript = luascript.New(fenceLua + `local v, f = redis.pcall('get', KEYS[1]), fence(KEYS[2])
if v or tonumber(ARGV[3]) <= tonumber(f) then
  if type(v) == 'table' then v = '` + wrongType + `' end
  return {0, v, redis.call('pttl', KEYS[1]), f}
end
if ARGV[1] == '-1' then redis.call('set', KEYS[1], ARGV[2])
else redis.call('set', KEYS[1], ARGV[2], 'px', ARGV[1]) end
redis.call('set', KEYS[2], ARGV[3], 'px', ARGV[4])
return 1`)

func (t Take) Keys() []string { return t.Names }

func (t Take) Writes() bool { return true }

func (t Take) isSingleSET() bool { return len(t.Names) == 1 && !t.BeforeRedis7 && t.Fence == 0 }

func (t Take) Words(withSource bool) []any {
	if t.isSingleSET() {
		words := []any{"SET", t.Names[0], t.cell(0).String(), "NX", "GET"}
		if t.TTL >= 0 {
			words = append(words, "PX", formatMillis(t.TTL))
		}
		return words
	}
	if t.Fence != 0 {
		return takeFencedScript.Command(withSource, []string{t.Names[0], FenceKey(t.Names[0])},
			formatTTL(t.TTL), t.cell(0).String(), t.Fence, formatMillis(fenceTTL))
	}
	args := []any{formatTTL(t.TTL)}
	for i := range t.Names {
		args = append(args, t.cell(i).String())
	}
	return takeScript.Command(withSource, t.Names, args...)
}

func (t Take) AppendTo(b []byte, withSource bool) []byte {
	if !t.isSingleSET() || t.Mark != "" {
		return resp.AppendCommand(b, t.Words(withSource)...)
	}
	words := 5
	if t.TTL >= 0 {
		words = 7
	}
	b = redcon.AppendBulkString(redcon.AppendBulkString(redcon.AppendArray(b, words), "SET"), t.Names[0])
	b = resp.AppendHeader(b, resp.Bulk, int64(len(plainTag)+len(t.Attempt)+len(t.Tokens[0])))
	b = append(append(append(b, plainTag...), t.Attempt...), t.Tokens[0]...)
	b = append(b, "\r\n$2\r\nNX\r\n$3\r\nGET\r\n"...)
	if t.TTL >= 0 {
		b = resp.AppendNumber(redcon.AppendBulkString(b, "PX"), t.TTL.Milliseconds())
	}
	return b
}

func (t Take) cell(i int) Cell {
	if t.Mark != "" {
		return Cell{Form: Mark, Attempt: t.Attempt, Promised: t.Mark}
	}
	return Cell{Form: Plain, Attempt: t.Attempt, Value: Value{Present: true, Text: t.Tokens[i]}}
}

func formatTTL(d time.Duration) string {
	if d < 0 {
		return "-1"
	}
	return formatMillis(d)
}

func (t Take) Decode(answer any) (Answer, error) {
	switch {
	case t.Fence != 0:
		return decodeFenced(answer, 1)
	case !t.isSingleSET():
		return decode(answer, len(t.Names), false)
	}
	switch text := answer.(type) {
	case nil:
		return Answer{Applied: true}, nil
	case string:
		return Answer{KeyStates: []KeyState{{Cell: Parse(text), TimeLeft: NotReported}}}, nil
	default:
		return Answer{}, unexpectedAnswer(answer)
	}
}

func (t Take) Apply(s *Store) Answer {
	found := s.getAll(t.Names)
	refused := Answer{KeyStates: found}
	if t.Fence != 0 {
		refused.Fences = []int64{s.fence(t.Names[0])}
		if t.Fence <= refused.Fences[0] {
			return refused
		}
	}
	for _, f := range found {
		if f.Form != Absent {
			if t.isSingleSET() {
				refused.KeyStates[0].TimeLeft = NotReported
			}
			return refused
		}
	}
	if t.Fence != 0 {
		s.raiseFence(t.Names[0], t.Fence)
	}
	for i, key := range t.Names {
		s.Put(key, t.cell(i), t.TTL)
	}
	return Answer{Applied: true}
}
