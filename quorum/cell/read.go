package cell

// Read tells what stands under keys, all at one moment.
type Read struct{ Names []string }

var readScript = newScript(layoutLua + `local answer = {1}
for i, key in ipairs(KEYS) do
  answer[2 * i], answer[2 * i + 1] = get(key), redis.call('pttl', key)
end
return answer`)

// Keys is of Op.
func (r Read) Keys() []string { return r.Names }

// Writes is of Op.
func (r Read) Writes() bool { return false }

// Words is of Op.
func (r Read) Words(whole bool) []any { return readScript.call(whole, r.Names) }

// Decode is of Op.
func (r Read) Decode(answer any) (Answer, error) { return decode(answer, len(r.Names), false) }

// Apply is of Op.
func (r Read) Apply(s *Store) Answer { return Answer{Did: true, Found: s.looks(r.Names)} }
