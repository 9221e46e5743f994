package cell

import (
	"redlock-proxy/internal/luascript"
	"redlock-proxy/internal/resp"
)

// Removal is which cells of an attempt a Remove deletes.
type Removal string

const (
	// Release deletes plain cells, and blocking ones and marks, which do not count as deleted.
	// A cell for which a ballot was promised stays: the promise counts on it.
	Release Removal = "release"
	// Undo deletes cells that hold what the attempt put there, also where a ballot was
	// promised: for an attempt that was not granted.
	Undo Removal = "undo"
	// Dead deletes a cell as it was seen: what is left of an incarnation that can have no majority,
	// or what an operator wants gone. A take that was on its way may have given it a majority
	// since, and then a ballot may have chosen something there, which stays.
	Dead Removal = "dead"
)

// Remove deletes the cell that an attempt created.
type Remove struct {
	Name    string
	Attempt Attempt
	How     Removal
	// Seen is the ballot that was accepted in a cell that is Dead, if any was.
	Seen Ballot
}

// The ordinary case, a plain cell, comes first: it needs none of the helpers.
var removeScript = luascript.New(`local plain = redis.pcall('get', KEYS[1])
if type(plain) == 'string' and string.sub(plain, 1, ` + lua(plainHead) + `) == '` + plainMark + `' .. ARGV[1] then
  redis.call('del', KEYS[1])
  return 1
end
` + layoutLua + `local v = get(KEYS[1])
if not v or attempt(v) ~= ARGV[1] then return {0, v, redis.call('pttl', KEYS[1])} end
local form = mark(v)
if form == '` + blockingMark + `' or form == '` + placeMark + `' then
  redis.call('del', KEYS[1])
  return {0, v, -1}
elseif form == '` + registerMark + `' and (ARGV[2] == 'dead' and accepted(v) == ARGV[3] or ARGV[2] == 'undo' and accepted(v) == none) then
  redis.call('del', KEYS[1])
  return 1
end
return {0, v, redis.call('pttl', KEYS[1])}`)

// Keys is of Op.
func (r Remove) Keys() []string { return []string{r.Name} }

// Writes is of Op.
func (r Remove) Writes() bool { return true }

// Words is of Op.
func (r Remove) Words(whole bool) []any {
	if r.How == Dead {
		return removeScript.Call(whole, r.Keys(), string(r.Attempt), string(r.How), r.Seen.wire())
	}
	return removeScript.Call(whole, r.Keys(), string(r.Attempt), string(r.How))
}

// AppendTo is of Appender.
func (r Remove) AppendTo(b []byte, whole bool) []byte {
	if whole || r.How == Dead {
		return resp.AppendCommand(b, r.Words(whole)...)
	}
	return resp.AppendWords(b, "EVALSHA", removeScript.SHA, "1", r.Name, string(r.Attempt), string(r.How))
}

// Decode is of Op.
func (r Remove) Decode(answer any) (Answer, error) { return decode(answer, 1, false) }

// Apply is of Op.
func (r Remove) Apply(s *Store) Answer {
	f := s.Look(r.Name)
	untouched := r.How == Undo && f.Accepted == "" || r.How == Dead && f.Accepted == r.Seen
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
