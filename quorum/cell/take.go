package cell

import (
	"strconv"
	"time"

	"github.com/tidwall/redcon"

	"redlock-proxy/internal/luascript"
	"redlock-proxy/internal/resp"
)

// Take creates plain cells for absent keys, all or none. For one key without a fence it is a SET
// NX.
type Take struct {
	Names   []string
	Attempt Attempt
	// Tokens holds one token for each key, in the order of the keys.
	Tokens []string
	// TTL is in whole milliseconds, or NoExpiry.
	TTL time.Duration
	// Mark, unless it is empty, is unique, and lets Take put marks for Attempt instead of plain
	// cells.
	Mark Ballot
	// Fence, unless it is zero, must be higher than the fence counter of each key. Take raises the
	// counters and takes the keys, or does neither.
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

// takeFencedScript takes the names of the keys, then the names of their counters.
var takeFencedScript = luascript.New(fenceLua + `local n, free = #KEYS / 2, true
for i = 1, n do
  if redis.pcall('get', KEYS[i]) or tonumber(ARGV[2]) <= tonumber(fence(KEYS[n + i])) then free = false end
end
if not free then
  local answer = {0}
  for i = 1, n do
    local v = redis.pcall('get', KEYS[i])
    if type(v) == 'table' then v = '` + wrongType + `' end
    answer[2 * i], answer[2 * i + 1], answer[2 * n + 1 + i] = v, redis.call('pttl', KEYS[i]), fence(KEYS[n + i])
  end
  return answer
end
for i = 1, n do
  if ARGV[1] == '-1' then redis.call('set', KEYS[i], ARGV[3 + i])
  else redis.call('set', KEYS[i], ARGV[3 + i], 'px', ARGV[1]) end
  redis.call('set', KEYS[n + i], ARGV[2], 'px', ARGV[3])
end
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
	names, args := t.Names, []any{formatTTL(t.TTL)}
	if t.Fence != 0 {
		names, args = withFenceKeys(names), append(args, t.Fence, formatMillis(fenceTTL))
	}
	for i := range t.Names {
		args = append(args, t.cell(i).String())
	}
	if t.Fence != 0 {
		return takeFencedScript.Command(withSource, names, args...)
	}
	return takeScript.Command(withSource, names, args...)
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

func formatTTL(d time.Duration) string { return strconv.FormatInt(ttlMillis(d), 10) }

// ttlMillis returns a TTL in milliseconds, or -1 for NoExpiry.
func ttlMillis(d time.Duration) int64 {
	if d < 0 {
		return -1
	}
	return d.Milliseconds()
}

func (t Take) Decode(answer any) (Answer, error) {
	switch {
	case t.Fence != 0:
		return decodeFenced(answer, len(t.Names))
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
	refused, free := Answer{KeyStates: found}, true
	for i, f := range found {
		free = free && f.Form == Absent
		if t.Fence != 0 {
			fence := s.fence(t.Names[i])
			refused.Fences = append(refused.Fences, fence)
			free = free && t.Fence > fence
		}
	}
	if !free {
		if t.isSingleSET() {
			refused.KeyStates[0].TimeLeft = NotReported
		}
		return refused
	}
	for i, key := range t.Names {
		if t.Fence != 0 {
			s.raiseFence(key, t.Fence)
		}
		s.Put(key, t.cell(i), t.TTL)
	}
	return Answer{Applied: true}
}
