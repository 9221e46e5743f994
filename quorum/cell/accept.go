package cell

import (
	"math"
	"strconv"
	"time"

	"redlock-proxy/internal/luascript"
)

// Accept puts a value into a cell that promised exactly this ballot, or in place of a mark.
type Accept struct {
	Name    string
	Attempt Attempt
	Ballot  Ballot
	// Mark, unless it is empty, is the ballot of the mark that the value replaces.
	Mark  Ballot
	Value Value
	// NextBallot, unless it is empty, is a ballot that the cell also promises.
	NextBallot Ballot
	// KeepTTL lets the value keep its expiry. Without KeepTTL the value expires after TTL.
	//
	// If BaseChange is the last change of the previous value, the cell keeps its own expiry, or
	// gets Expiry if that is later. For any other cell the proxy measured the expiry: by the
	// master's clock it is between Expiry and Expiry plus Uncertainty. Such a cell keeps its own
	// expiry within these limits, or gets the nearer limit. The value that replaces a mark gets
	// Expiry. Expiry is NoExpiry for a value without expiry.
	KeepTTL             bool
	BaseChange          Change
	Expiry, Uncertainty time.Duration
	// Shared lets a cell with BaseChange keep its remaining time plus Shift, in whole milliseconds.
	// Expiry includes Shift. For any other cell the proxy measured that the expiry is between
	// Expiry minus Uncertainty and Expiry. Such a cell keeps its own expiry within these limits, or
	// gets Expiry.
	Shared bool
	Shift  time.Duration
	// TTL is in whole milliseconds, or NoExpiry.
	TTL time.Duration
	// Deadline is the last moment, by the master's clock, at which the master may accept. After it,
	// the master may have forgotten its promise.
	Deadline time.Duration
}

var acceptScript = luascript.New(layoutLua + `local v, left = get(KEYS[1]), redis.call('pttl', KEYS[1])
local now = redis.call('time')
if not v or string.sub(v, 1, ` + luaInt(promiseHeadSize) +
	`) ~= ARGV[1] or now[1] * 1000 + math.floor(now[2] / 1000) > tonumber(ARGV[8]) then
  return {0, v, left, now[1], now[2]}
end
local base -- the last change of a cell whose value is kept
if ARGV[5] == 'keep' and tag(v) == '` + registerTag + `' then
  local ends = ` + luaInt(registerHeadSize+3) + ` + ` + luaInt(changeSize) +
	` * tonumber(string.sub(v, ` + luaInt(registerHeadSize+2) + `, ` + luaInt(registerHeadSize+3) + `))
  base = string.sub(v, math.max(ends - ` + luaInt(changeSize-1) + `, ` + luaInt(registerHeadSize+4) + `), ends)
end
local new = '` + registerTag + `' .. attempt(v) .. ARGV[3] .. ARGV[2] .. ARGV[4]
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

func (a Accept) Keys() []string { return []string{a.Name} }

func (a Accept) Writes() bool { return true }

func (a Accept) Words(withSource bool) []any {
	how, ends, shift := "px", formatTTL(a.TTL), ""
	if a.KeepTTL {
		how, ends = "keep", formatTTL(a.Expiry)
	}
	if a.Shared {
		shift = formatMillis(a.Shift)
	}
	// near is rounded up, because Expiry is rounded down.
	near := formatMillis(a.Uncertainty + time.Millisecond - 1)
	return acceptScript.Command(withSource, a.Keys(),
		a.expectedPrefix(), string(a.Ballot), string(a.nextPromise()), a.Value.payload(),
		how, ends, string(a.BaseChange), formatMillis(a.Deadline), shift, near)
}

// keptTTL returns the remaining time of a value that keeps its expiry and replaces f.
func (a Accept) keptTTL(now time.Duration, f KeyState) time.Duration {
	const noExpiry = math.MaxInt64
	earliest, current := a.Expiry, now+f.TimeLeft
	if earliest == NoExpiry {
		earliest = noExpiry
	}
	if f.TimeLeft == NoExpiry {
		current = noExpiry
	}
	ends := earliest
	switch {
	case f.Form != Register:
	case a.Shared:
		if current >= earliest-a.Uncertainty && current < earliest {
			ends = current
		}
	case f.Value.LastChange() == a.BaseChange:
		ends = max(earliest, current)
	default:
		ends = max(earliest, min(current, a.Expiry+a.Uncertainty))
	}
	if ends == noExpiry {
		return NoExpiry
	}
	return ends - now
}

// expectedPrefix returns the required beginning of the cell.
func (a Accept) expectedPrefix() string {
	if a.Mark != "" {
		return markTag + string(a.Attempt) + a.Mark.digits()
	}
	return registerTag + string(a.Attempt) + a.Ballot.digits()
}

func (a Accept) nextPromise() Ballot {
	if a.NextBallot == "" {
		return a.Ballot
	}
	return a.NextBallot
}

func (a Accept) Decode(answer any) (Answer, error) { return decode(answer, 1, true) }

func (a Accept) Apply(s *Store) Answer {
	f := s.Get(a.Name)
	answer := Answer{KeyStates: []KeyState{f}, Now: s.Now}
	promised := f.Form == Register && a.Mark == "" && f.Promised == a.Ballot
	marked := f.Form == Mark && a.Mark != "" && f.Promised == a.Mark
	if f.Attempt != a.Attempt || !promised && !marked || s.Now.Milliseconds() > a.Deadline.Milliseconds() {
		return answer
	}
	c := Cell{Form: Register, Attempt: a.Attempt, Promised: a.nextPromise(), Accepted: a.Ballot, Value: a.Value}
	left := a.TTL
	if a.KeepTTL {
		left = a.keptTTL(s.Now, f)
	}
	shared := a.KeepTTL && a.Shared && f.Form == Register && f.Value.LastChange() == a.BaseChange
	switch {
	case shared && a.Shift != 0 && f.TimeLeft != NoExpiry:
		s.Put(a.Name, c, max(f.TimeLeft+a.Shift, time.Millisecond))
	case shared, a.KeepTTL && left == f.TimeLeft:
		s.replaceKeepingTTL(a.Name, c)
	default:
		s.Put(a.Name, c, left)
	}
	answer.Applied = true
	return answer
}

func luaInt(n int) string { return strconv.Itoa(n) }
