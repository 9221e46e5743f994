package cell

import (
	"fmt"

	"redlock-proxy/internal/luascript"
)

// Read returns the current values of keys, atomically.
type Read struct {
	Names []string
	// WithFences also requests the fence counters.
	WithFences bool
	// HeadBytes, unless it is 0, limits the bytes of each encoded cell. Value.UnreadBytes counts
	// the bytes that follow. HeadBytes must exceed the head of a cell in register form, and has no
	// effect with WithFences.
	HeadBytes int
}

var readScript = luascript.New(layoutLua + `local answer = {1}
for i, key in ipairs(KEYS) do
  answer[2 * i], answer[2 * i + 1] = get(key), redis.call('pttl', key)
end
return answer`)

// headsScript returns the head of each cell, and the number of bytes that follow. It returns whole
// cells if the proxy's user may not use GETRANGE or STRLEN.
var headsScript = luascript.New(layoutLua + `local answer, most = {1}, tonumber(ARGV[1])
for i, key in ipairs(KEYS) do
  local v, rest = redis.pcall('getrange', key, 0, most - 1), 0
  if #v == most then
    local length = redis.pcall('strlen', key)
    if type(length) == 'number' then rest = length - most else v = '' end
  end
  if type(v) == 'table' or v == '' then v = get(key) end
  answer[2 * i], answer[2 * i + 1], answer[2 * #KEYS + 1 + i] = v, redis.call('pttl', key), rest
end
return answer`)

// readFencesScript takes the names of the keys, then the names of their counters.
var readFencesScript = luascript.New(layoutLua + fenceLua + `local answer, n = {1}, #KEYS / 2
for i = 1, n do
  answer[2 * i], answer[2 * i + 1] = get(KEYS[i]), redis.call('pttl', KEYS[i])
  answer[2 * n + 1 + i] = fence(KEYS[n + i])
end
return answer`)

func (r Read) Keys() []string { return r.Names }

func (r Read) Writes() bool { return false }

func (r Read) Words(withSource bool) []any {
	switch {
	case r.WithFences:
		return readFencesScript.Command(withSource, withFenceKeys(r.Names))
	case r.HeadBytes > 0:
		return headsScript.Command(withSource, r.Names, r.HeadBytes)
	default:
		return readScript.Command(withSource, r.Names)
	}
}

func (r Read) Decode(answer any) (Answer, error) {
	switch {
	case r.WithFences:
		return decodeFenced(answer, len(r.Names))
	case r.HeadBytes > 0:
		return decodeHeads(answer, len(r.Names))
	default:
		return decode(answer, len(r.Names), false)
	}
}

func decodeHeads(answer any, keys int) (Answer, error) {
	return decodeWithExtra(answer, keys, func(a *Answer, i int, part any) error {
		rest, ok := part.(int64)
		if !ok || rest < 0 || i >= len(a.KeyStates) {
			return fmt.Errorf("unexpected length %.80v", part)
		}
		a.KeyStates[i].Value.UnreadBytes = int(rest)
		return nil
	})
}

// decodeWithExtra decodes a reply that ends with one more element for each key, and passes these
// elements to decodeExtra.
func decodeWithExtra(answer any, keys int, decodeExtra func(a *Answer, i int, part any) error) (Answer, error) {
	parts, _ := answer.([]any)
	if len(parts) < keys {
		return decode(answer, keys, false)
	}
	first := len(parts) - keys
	a, err := decode(parts[:first], keys, false)
	if err != nil {
		return Answer{}, err
	}
	for i, part := range parts[first:] {
		if err := decodeExtra(&a, i, part); err != nil {
			return Answer{}, err
		}
	}
	return a, nil
}

func (r Read) Apply(s *Store) Answer {
	a := Answer{Applied: true, KeyStates: s.getAll(r.Names)}
	if r.WithFences {
		for _, name := range r.Names {
			a.Fences = append(a.Fences, s.fence(name))
		}
		return a
	}
	if r.HeadBytes > 0 {
		for i := range a.KeyStates {
			a.KeyStates[i].Value = a.KeyStates[i].Value.withoutTail(len(a.KeyStates[i].String()) - r.HeadBytes)
		}
	}
	return a
}

func (v Value) withoutTail(size int) Value {
	if size > 0 {
		v.UnreadBytes = min(size, len(v.Text))
		v.Text = v.Text[:len(v.Text)-v.UnreadBytes]
	}
	return v
}
