package cell

import (
	"time"

	"redlock-proxy/internal/luascript"
)

// Extend raises the remaining time of a cell that holds a token, and never shortens it. It has no
// effect if a ballot may be under way (see Cell.Settled). So a granted extension lasts: the
// majority that extended shares a master with each later prepare. Either that master extended
// before its promise, and reports the new expiry, or it refused to extend. Extend also extends a
// blocking copy of the incarnation, but does not report it as extended.
type Extend struct {
	Name  string
	Token string
	// Attempt is the incarnation.
	Attempt Attempt
	// TTL is in whole milliseconds, or NoExpiry.
	TTL time.Duration
}

// extendLua defines extend, which extends one cell. It returns 1 if the cell holds the token and
// was extended, or else 0, and the previous content and PTTL of the cell.
var extendLua = layoutLua + `local function extend(key, mine, incarnation, ttl)
  local v, left = get(key), redis.call('pttl', key)
  local held = v and attempt(v) == incarnation and (tag(v) == '` + blockingTag + `' or token(v) == mine)
  if held and tag(v) == '` + registerTag + `' and promised(v) ~= accepted(v) then held = false end
  if not held then return 0, v, left end
  if left >= 0 and ttl < 0 then redis.call('persist', key)
  elseif left >= 0 and left < ttl then redis.call('pexpire', key, ttl) end
  return tag(v) == '` + blockingTag + `' and 0 or 1, v, left
end
`

var extendScript = luascript.New(extendLua + `return {extend(KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[3]))}`)

func (e Extend) Keys() []string { return []string{e.Name} }

func (e Extend) Writes() bool { return true }

func (e Extend) Words(withSource bool) []any {
	return extendScript.Command(withSource, e.Keys(), e.Token, string(e.Attempt), formatTTL(e.TTL))
}

func (e Extend) Decode(answer any) (Answer, error) { return decode(answer, 1, false) }

func (e Extend) Apply(s *Store) Answer {
	f := s.Get(e.Name)
	a := Answer{KeyStates: []KeyState{f}}
	holds := f.Form == Plain || f.Form == Register
	blocks := f.Form == Blocking
	switch {
	case f.Attempt != e.Attempt, !holds && !blocks, holds && (!f.Value.Present || f.Value.Text != e.Token):
		return a
	case !f.Settled():
		return a
	case f.TimeLeft != NoExpiry && (e.TTL == NoExpiry || f.TimeLeft < e.TTL):
		s.Put(e.Name, f.Cell, e.TTL)
	}
	a.Applied = holds
	return a
}
