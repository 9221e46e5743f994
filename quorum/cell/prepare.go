package cell

import "redlock-proxy/internal/luascript"

// Prepare requests the promise to accept no lower ballot, and the state of the cell. A plain cell
// takes register form with the promise. An absent key stays absent.
type Prepare struct {
	Name   string
	Ballot Ballot
	// OnlyExpected restricts the promise to a cell that holds Expected, so that a command for this
	// value leaves other values untouched.
	OnlyExpected bool
	Expected     string
}

var prepareScript = luascript.New(layoutLua + `local v, left = get(KEYS[1]), redis.call('pttl', KEYS[1])
local now = redis.call('time')
local did = 0
if v and ARGV[2] == 'only' and token(v) ~= ARGV[3] then
  did = 0
elseif v and tag(v) == '` + plainTag + `' then
  did = 1
  redis.call('set', KEYS[1], '` + registerTag + `' .. attempt(v) .. ARGV[1] .. none .. 'v00' .. token(v), 'keepttl')
elseif v and tag(v) == '` + registerTag + `' and promised(v) < ARGV[1] then
  did = 1
  redis.call('set', KEYS[1], string.sub(v, 1, ` + luaInt(plainHeadSize) +
	`) .. ARGV[1] .. string.sub(v, ` + luaInt(plainHeadSize+idDigits+1) + `), 'keepttl')
end
return {did, v, left, now[1], now[2]}`)

func (p Prepare) Keys() []string { return []string{p.Name} }

func (p Prepare) Writes() bool { return true }

func (p Prepare) Words(withSource bool) []any {
	condition := "any"
	if p.OnlyExpected {
		condition = "only"
	}
	return prepareScript.Command(withSource, p.Keys(), string(p.Ballot), condition, p.Expected)
}

func (p Prepare) Decode(answer any) (Answer, error) { return decode(answer, 1, true) }

func (p Prepare) Apply(s *Store) Answer {
	f := s.Get(p.Name)
	a := Answer{KeyStates: []KeyState{f}, Now: s.Now}
	c := f.Cell
	if p.OnlyExpected && (!c.Value.Present || c.Value.Text != p.Expected) {
		return a
	}
	if c.Form != Plain && (c.Form != Register || c.Promised >= p.Ballot) {
		return a
	}
	c.Form, c.Promised = Register, p.Ballot
	s.replaceKeepingTTL(p.Name, c)
	a.Applied = true
	return a
}
