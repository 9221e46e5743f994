package cell

import (
	"github.com/tidwall/redcon"

	"redlock-proxy/internal/luascript"
	"redlock-proxy/internal/resp"
)

// Extends extends several cells in one script. Each Extend succeeds or fails independently.
// Answer.AppliedKeys reports which cells were extended.
type Extends []Extend

// extendsScript returns the previous PTTL of each plain cell that it extended. For each other cell
// it returns the three results of extend, the content first.
var extendsScript = luascript.New(extendLua + `local answer = {}
for i, key in ipairs(KEYS) do
  local did, v, left = extend(key, ARGV[3 * i - 2], ARGV[3 * i - 1], tonumber(ARGV[3 * i]))
  if did == 0 or tag(v) ~= '` + plainTag + `' then
    answer[#answer + 1] = v
    answer[#answer + 1] = did
  end
  answer[#answer + 1] = left
end
return answer`)

// Keys implements Op.
func (es Extends) Keys() []string {
	keys := make([]string, len(es))
	for i := range es {
		keys[i] = es[i].Name
	}
	return keys
}

// Writes implements Op.
func (es Extends) Writes() bool { return true }

// Words implements Op.
func (es Extends) Words(withSource bool) []any {
	args := make([]any, 0, 3*len(es))
	for _, e := range es {
		args = append(args, e.Token, string(e.Attempt), formatTTL(e.TTL))
	}
	return extendsScript.Command(withSource, es.Keys(), args...)
}

// AppendTo implements Appender.
func (es Extends) AppendTo(b []byte, withSource bool) []byte {
	if withSource {
		return resp.AppendCommand(b, es.Words(true)...)
	}
	b = redcon.AppendArray(b, 3+4*len(es))
	b = redcon.AppendBulkString(redcon.AppendBulkString(b, "EVALSHA"), extendsScript.SHA)
	b = resp.AppendNumber(b, int64(len(es)))
	for i := range es {
		b = redcon.AppendBulkString(b, es[i].Name)
	}
	for i := range es {
		b = redcon.AppendBulkString(redcon.AppendBulkString(b, es[i].Token), string(es[i].Attempt))
		b = resp.AppendNumber(b, ttlMillis(es[i].TTL))
	}
	return b
}

// Decode implements Op.
func (es Extends) Decode(answer any) (Answer, error) {
	parts, _ := answer.([]any)
	a := Answer{Applied: true, AppliedKeys: make([]bool, len(es)), KeyStates: make([]KeyState, len(es))}
	for i := range es {
		if len(parts) == 0 {
			return Answer{}, unexpectedAnswer(answer)
		}
		if left, isPlain := parts[0].(int64); isPlain {
			a.AppliedKeys[i], a.KeyStates[i] = true, es[i].plainState(left)
			parts = parts[1:]
			continue
		}
		if len(parts) < 3 {
			return Answer{}, unexpectedAnswer(answer)
		}
		one, err := decode([]any{parts[1], parts[0], parts[2]}, 1, false)
		if err != nil {
			return Answer{}, err
		}
		a.AppliedKeys[i], a.KeyStates[i] = one.Applied, one.KeyStates[0]
		a.Applied = a.Applied && one.Applied
		parts = parts[3:]
	}
	if len(parts) > 0 {
		return Answer{}, unexpectedAnswer(answer)
	}
	return a, nil
}

// plainState returns the previous state of a plain cell that was extended.
func (e Extend) plainState(timeLeft int64) KeyState {
	c := Cell{Form: Plain, Attempt: e.Attempt, Value: Value{Present: true, Text: e.Token}}
	return KeyState{Cell: c, TimeLeft: timeLeftOf(timeLeft)}
}

// Apply implements Op.
func (es Extends) Apply(s *Store) Answer {
	a := Answer{Applied: true}
	for _, e := range es {
		one := e.Apply(s)
		a.Applied = a.Applied && one.Applied
		a.AppliedKeys, a.KeyStates = append(a.AppliedKeys, one.Applied), append(a.KeyStates, one.KeyStates[0])
	}
	return a
}
