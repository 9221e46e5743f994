package cell

import (
	"math"
	"strconv"
	"time"

	"redlock-proxy/internal/luascript"
)

// Accept puts a value into a cell in register form that promised exactly this ballot, or in the
// place of a mark.
type Accept struct {
	Name    string
	Attempt Attempt
	Ballot  Ballot
	// Mark, unless it is empty, is that of the very mark in whose place the value is put.
	Mark  Ballot
	Value Value
	// Next, unless it is empty, is promised at once.
	Next Ballot
	// Keep has the value keep its end. On the masters where the change Base led to the value
	// before, that is the cell's own, or Until if that is later. On others it was measured: by the
	// master's clock it is at Until (Endless: never), or up to Near after that. There the cell's
	// own end counts as far as it is within this time. Without Keep the value stays for TTL.
	Keep        bool
	Base        Change
	Until, Near time.Duration
	// Shared has a cell of Base keep the remaining time that it has, with Shift added, in whole
	// milliseconds; Until has it already. Elsewhere the end was measured to be at Until or up to
	// Near before that, and is Until unless the cell's own is within this time.
	Shared bool
	Shift  time.Duration
	// TTL is in whole milliseconds, or Endless.
	TTL time.Duration
	// Deadline is the last moment, by the master's clock, at which it may be done. What
	// comes later may rely on the promise of a master that has forgotten it since.
	Deadline time.Duration
}

var acceptScript = luascript.New(layoutLua + `local v, left = get(KEYS[1]), redis.call('pttl', KEYS[1])
local now = redis.call('time')
if not v or string.sub(v, 1, ` + lua(promiseHead) + `) ~= ARGV[1] or now[1] * 1000 + math.floor(now[2] / 1000) > tonumber(ARGV[8]) then
  return {0, v, left, now[1], now[2]}
end
local base -- the last change of a cell whose value is kept
if ARGV[5] == 'keep' and mark(v) == '` + registerMark + `' then
  local ends = ` + lua(registerHead+3) + ` + ` + lua(changeSize) + ` * tonumber(string.sub(v, ` + lua(registerHead+2) + `, ` + lua(registerHead+3) + `))
  base = string.sub(v, math.max(ends - ` + lua(changeSize-1) + `, ` + lua(registerHead+4) + `), ends)
end
local new = '` + registerMark + `' .. attempt(v) .. ARGV[3] .. ARGV[2] .. ARGV[4]
local own, ends = math.huge, math.huge
if left >= 0 then own = now[1] * 1000 + math.floor(now[2] / 1000) + left end
if ARGV[6] ~= '-1' then ends = tonumber(ARGV[6]) end
if base and ARGV[9] ~= '' then
  if own >= ends - ARGV[10] and own < ends then ends = own end
elseif base then ends = math.max(ends, base == ARGV[7] and own or math.min(own, ends + ARGV[10])) end
if ARGV[5] ~= 'keep' and ends < math.huge then redis.call('set', KEYS[1], new, 'px', ARGV[6])
elseif ARGV[9] ~= '' and base == ARGV[7] then
  redis.call('set', KEYS[1], new, 'keepttl')
  if left >= 0 and ARGV[9] ~= '0' then redis.call('pexpire', KEYS[1], math.max(left + tonumber(ARGV[9]), 1)) end
elseif ends == own then redis.call('set', KEYS[1], new, 'keepttl')
else
  redis.call('set', KEYS[1], new)
  if ends < math.huge then redis.call('pexpireat', KEYS[1], string.format('%.0f', ends)) end
end
return {1, v, left, now[1], now[2]}`)

// Keys is of Op.
func (a Accept) Keys() []string { return []string{a.Name} }

// Writes is of Op.
func (a Accept) Writes() bool { return true }

// Words is of Op.
func (a Accept) Words(whole bool) []any {
	how, ends, shift := "px", pttl(a.TTL), ""
	if a.Keep {
		how, ends = "keep", pttl(a.Until)
	}
	if a.Shared {
		shift = millis(a.Shift)
	}
	near := millis(a.Near + time.Millisecond - 1) // up, as Until is rounded down
	return acceptScript.Call(whole, a.Keys(), a.expected(), string(a.Ballot), string(a.promise()), a.Value.payload(), how, ends, string(a.Base), millis(a.Deadline), shift, near)
}

// kept is the time that is left in the place of f to a value whose end is kept.
func (a Accept) kept(now time.Duration, f Found) time.Duration {
	const never = math.MaxInt64
	least, own := a.Until, now+f.Left
	if least == Endless {
		least = never
	}
	if f.Left == Endless {
		own = never
	}
	ends := least
	switch {
	case f.Form != Register:
	case a.Shared:
		if own >= least-a.Near && own < least {
			ends = own
		}
	case f.Value.Last() == a.Base:
		ends = max(least, own)
	default:
		ends = max(least, min(own, a.Until+a.Near))
	}
	if ends == never {
		return Endless
	}
	return ends - now
}

// expected is how the cell must begin.
func (a Accept) expected() string {
	if a.Mark != "" {
		return placeMark + string(a.Attempt) + a.Mark.wire()
	}
	return registerMark + string(a.Attempt) + a.Ballot.wire()
}

// promise is what the cell has promised afterwards.
func (a Accept) promise() Ballot {
	if a.Next == "" {
		return a.Ballot
	}
	return a.Next
}

// Decode is of Op.
func (a Accept) Decode(answer any) (Answer, error) { return decode(answer, 1, true) }

// Apply is of Op.
func (a Accept) Apply(s *Store) Answer {
	f := s.Look(a.Name)
	answer := Answer{Found: []Found{f}, Now: s.Now}
	promised := f.Form == Register && a.Mark == "" && f.Promised == a.Ballot
	marked := f.Form == Mark && a.Mark != "" && f.Promised == a.Mark
	if f.Attempt != a.Attempt || !promised && !marked || s.Now.Milliseconds() > a.Deadline.Milliseconds() {
		return answer
	}
	c := Cell{Form: Register, Attempt: a.Attempt, Promised: a.promise(), Accepted: a.Ballot, Value: a.Value}
	left := a.TTL
	if a.Keep {
		left = a.kept(s.Now, f)
	}
	shared := a.Keep && a.Shared && f.Form == Register && f.Value.Last() == a.Base
	switch {
	case shared && a.Shift != 0 && f.Left != Endless:
		s.Put(a.Name, c, max(f.Left+a.Shift, time.Millisecond))
	case shared, a.Keep && left == f.Left:
		s.keep(a.Name, c)
	default:
		s.Put(a.Name, c, left)
	}
	answer.Did = true
	return answer
}

// lua is a number in a script's text.
func lua(n int) string { return strconv.Itoa(n) }
