package cell

import (
	"redlock-proxy/internal/luascript"
	"redlock-proxy/internal/resp"
)

// Removal selects the cells of an attempt that a Remove deletes.
type Removal string

const (
	// Release deletes plain cells. It also deletes blocking cells and marks, which do not count as
	// deleted. It leaves a cell that promised a ballot, which relies on the promise.
	Release Removal = "release"
	// Undo also deletes cells that promised a ballot but accepted none. It is for attempts that
	// were not granted.
	Undo Removal = "undo"
	// Exact deletes a cell only if it has accepted the ballot Seen: a leftover, or a cell that an
	// operator wants to remove. A late take may have given the incarnation a majority since. If a
	// ballot has then chosen a value, the cell stays.
	Exact Removal = "dead"
)

// Remove deletes the cell that an attempt created.
type Remove struct {
	Name    string
	Attempt Attempt
	How     Removal
	// Seen is the ballot that the cell had accepted when it was read, for Exact.
	Seen Ballot
}

// removeScript handles plain cells, the ordinary case, first: that needs no helper of layoutLua.
var removeScript = luascript.New(`local plain = redis.pcall('get', KEYS[1])
if type(plain) == 'string' and string.sub(plain, 1, ` + luaInt(plainHead) + `) == '` + plainTag + `' .. ARGV[1] then
  redis.call('del', KEYS[1])
  return 1
end
` + layoutLua + `local v = get(KEYS[1])
if not v or attempt(v) ~= ARGV[1] then return {0, v, redis.call('pttl', KEYS[1])} end
local form = mark(v)
if form == '` + blockingTag + `' or form == '` + markTag + `' then
  redis.call('del', KEYS[1])
  return {0, v, -1}
elseif form == '` + registerTag +
	`' and (ARGV[2] == 'dead' and accepted(v) == ARGV[3] or ARGV[2] == 'undo' and accepted(v) == none) then
  redis.call('del', KEYS[1])
  return 1
end
return {0, v, redis.call('pttl', KEYS[1])}`)

func (r Remove) Keys() []string { return []string{r.Name} }

func (r Remove) Writes() bool { return true }

func (r Remove) Words(whole bool) []any {
	if r.How == Exact {
		return removeScript.Call(whole, r.Keys(), string(r.Attempt), string(r.How), r.Seen.wire())
	}
	return removeScript.Call(whole, r.Keys(), string(r.Attempt), string(r.How))
}

func (r Remove) AppendTo(b []byte, whole bool) []byte {
	if whole || r.How == Exact {
		return resp.AppendCommand(b, r.Words(whole)...)
	}
	return resp.AppendWords(b, "EVALSHA", removeScript.SHA, "1", r.Name, string(r.Attempt), string(r.How))
}

func (r Remove) Decode(answer any) (Answer, error) { return decode(answer, 1, false) }

func (r Remove) Apply(s *Store) Answer {
	f := s.Look(r.Name)
	untouched := r.How == Undo && f.Accepted == "" || r.How == Exact && f.Accepted == r.Seen
	switch {
	case f.Attempt != r.Attempt:
	case f.Form == Plain, f.Form == Register && untouched:
		s.Delete(r.Name)
		return Answer{Did: true}
	case f.Form == Blocking, f.Form == Mark:
		s.Delete(r.Name)
		f.Left = Endless
	}
	return Answer{Found: []Found{f}}
}
