package cell

import "redlock-proxy/internal/luascript"

// Prepare asks a master for a promise to accept nothing of a lower ballot, and what it
// holds. A plain cell takes register form with it; an absent key stays absent.
type Prepare struct {
	Name   string
	Ballot Ballot
	// Only, if it is set, asks only where the cell holds Expect: a command that wants to change
	// that value leaves no trace on a key that holds another.
	Only   bool
	Expect string
}

var prepareScript = luascript.New(layoutLua + `local v, left = get(KEYS[1]), redis.call('pttl', KEYS[1])
local now = redis.call('time')
local did = 0
if v and ARGV[2] == 'only' and token(v) ~= ARGV[3] then
  did = 0
elseif v and mark(v) == '` + plainMark + `' then
  did = 1
  redis.call('set', KEYS[1], '` + registerMark + `' .. attempt(v) .. ARGV[1] .. none .. 'v00' .. token(v), 'keepttl')
elseif v and mark(v) == '` + registerMark + `' and promised(v) < ARGV[1] then
  did = 1
  redis.call('set', KEYS[1], string.sub(v, 1, ` + lua(plainHead) + `) .. ARGV[1] .. string.sub(v, ` + lua(plainHead+idDigits+1) + `), 'keepttl')
end
return {did, v, left, now[1], now[2]}`)

// Keys is of Op.
func (p Prepare) Keys() []string { return []string{p.Name} }

// Writes is of Op.
func (p Prepare) Writes() bool { return true }

// Words is of Op.
func (p Prepare) Words(whole bool) []any {
	only := "any"
	if p.Only {
		only = "only"
	}
	return prepareScript.Call(whole, p.Keys(), string(p.Ballot), only, p.Expect)
}

// Decode is of Op.
func (p Prepare) Decode(answer any) (Answer, error) { return decode(answer, 1, true) }

// Apply is of Op.
func (p Prepare) Apply(s *Store) Answer {
	f := s.Look(p.Name)
	a := Answer{Found: []Found{f}, Now: s.Now}
	c := f.Cell
	if p.Only && (!c.Value.Present || c.Value.Text != p.Expect) {
		return a
	}
	if c.Form != Plain && (c.Form != Register || c.Promised >= p.Ballot) {
		return a
	}
	c.Form, c.Promised = Register, p.Ballot
	s.keep(p.Name, c)
	a.Did = true
	return a
}
