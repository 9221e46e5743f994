package cell

import (
	"strconv"
	"time"

	"redlock-proxy/internal/luascript"
)

// Accept puts a value into a cell in register form that promised exactly this ballot, or in the place of a mark.
type Accept struct {
	Name    string
	Attempt Attempt
	Ballot  Ballot
	// Mark, unless it is empty, is that of the very mark in whose place the value is put.
	Mark  Ballot
	Value Value
	// Next, unless it is empty, is promised at once.
	Next Ballot
	// Keep has the value end at Until by the master's clock (Endless: never). A cell whose value the change Base led to ends no earlier
	// than before, and one whose end is up to Near after Until keeps its own: Until is measured, and no better than that. Without Keep
	// the value stays for TTL.
	Keep        bool
	Base        Change
	Until, Near time.Duration
	// Shared has a cell of Base keep the remaining time that it has, with Shift added, in whole milliseconds; Until has it already.
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
local ends = now[1] * 1000 + math.floor(now[2] / 1000) + left
if base and ARGV[9] == '' and left >= 0 and ARGV[6] ~= '-1' and ends >= tonumber(ARGV[6]) and ends <= ARGV[6] + ARGV[10] then base = ARGV[7] end
local new = '` + registerMark + `' .. attempt(v) .. ARGV[3] .. ARGV[2] .. ARGV[4]
if base == ARGV[7] then
  redis.call('set', KEYS[1], new, 'keepttl')
  if left < 0 or ARGV[9] == '0' then
  elseif ARGV[9] ~= '' then redis.call('pexpire', KEYS[1], math.max(left + tonumber(ARGV[9]), 1))
  elseif ARGV[6] == '-1' then redis.call('persist', KEYS[1])
  elseif tonumber(ARGV[6]) > ends then redis.call('pexpireat', KEYS[1], ARGV[6]) end
elseif ARGV[6] == '-1' then redis.call('set', KEYS[1], new)
elseif ARGV[5] == 'keep' then redis.call('set', KEYS[1], new) redis.call('pexpireat', KEYS[1], ARGV[6])
else redis.call('set', KEYS[1], new, 'px', ARGV[6]) end
return {1, v, left, now[1], now[2]}`)

// Keys is of Op.
func (a Accept) Keys() []string { return []string{a.Name} }

// Writes is of Op.
func (a Accept) Writes() bool { return true }

// Words is of Op.
func (a Accept) Words(whole bool) []any {
	how, time, shift := "px", pttl(a.TTL), ""
	if a.Keep {
		how, time = "keep", pttl(a.Until)
	}
	if a.Shared {
		shift = millis(a.Shift)
	}
	return acceptScript.Call(whole, a.Keys(), a.expected(), string(a.Ballot), string(a.promise()), a.Value.payload(), how, time, string(a.Base), millis(a.Deadline), shift, millis(a.Near))
}

// isNear reports whether the end of a cell with so much left cannot be told from Until.
func (a Accept) isNear(now, left time.Duration) bool {
	return !a.Shared && left >= 0 && a.Until != Endless && now+left >= a.Until && now+left <= a.Until+a.Near
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
	based := f.Form == Register && (f.Value.Last() == a.Base || a.isNear(s.Now, f.Left))
	switch {
	case a.Keep && based && a.Shared && a.Shift != 0 && f.Left != Endless:
		s.Put(a.Name, c, max(f.Left+a.Shift, time.Millisecond))
	case a.Keep && based && (a.Shared || f.Left == Endless || a.Until != Endless && a.Until <= s.Now+f.Left):
		s.keep(a.Name, c)
	case a.Keep && a.Until == Endless, !a.Keep && a.TTL == Endless:
		s.Put(a.Name, c, Endless)
	case a.Keep:
		s.Put(a.Name, c, a.Until-s.Now)
	default:
		s.Put(a.Name, c, a.TTL)
	}
	answer.Did = true
	return answer
}

// lua is a number in a script's text.
func lua(n int) string { return strconv.Itoa(n) }
