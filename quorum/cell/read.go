package cell

// Read returns the current values of keys, all at one moment.
type Read struct {
	Names []string
	// Fences asks for their fence counters, too.
	Fences bool
}

var readScript = NewScript(layoutLua + `local answer = {1}
for i, key in ipairs(KEYS) do
  answer[2 * i], answer[2 * i + 1] = get(key), redis.call('pttl', key)
end
return answer`)

// readFencesScript has the names of the counters behind those of the keys.
var readFencesScript = NewScript(layoutLua + fenceLua + `local answer, n = {1}, #KEYS / 2
for i = 1, n do
  answer[2 * i], answer[2 * i + 1] = get(KEYS[i]), redis.call('pttl', KEYS[i])
  answer[2 * n + 1 + i] = fence(KEYS[n + i])
end
return answer`)

// Keys is of Op.
func (r Read) Keys() []string { return r.Names }

// Writes is of Op.
func (r Read) Writes() bool { return false }

// Words is of Op.
func (r Read) Words(whole bool) []any {
	if !r.Fences {
		return readScript.Call(whole, r.Names)
	}
	keys := make([]string, 0, 2*len(r.Names))
	keys = append(keys, r.Names...)
	for _, name := range r.Names {
		keys = append(keys, FenceKey(name))
	}
	return readFencesScript.Call(whole, keys)
}

// Decode is of Op.
func (r Read) Decode(answer any) (Answer, error) {
	if r.Fences {
		return decodeFenced(answer, len(r.Names))
	}
	return decode(answer, len(r.Names), false)
}

// Apply is of Op.
func (r Read) Apply(s *Store) Answer {
	a := Answer{Did: true, Found: s.looks(r.Names)}
	if r.Fences {
		for _, name := range r.Names {
			a.Fences = append(a.Fences, s.fence(name))
		}
	}
	return a
}
