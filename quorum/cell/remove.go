package cell

import (
	"redlock-proxy/internal/luascript"
	"redlock-proxy/internal/resp"
)

// RemovalMode selects the cells of an attempt that a Remove deletes.
type RemovalMode string

const (
	// Release deletes plain cells. It also deletes marks, but does not report them as deleted. It
	// leaves cells that promised a ballot: the ballot relies on the promise. It leaves blocking
	// cells: a ballot may have chosen another value with the vote of such a master.
	Release RemovalMode = "release"
	// Undo also deletes cells that promised a ballot but accepted none. It is for attempts that
	// were not granted, or whose release no ballot decided.
	Undo RemovalMode = "undo"
	// Clear also deletes blocking cells. It is for attempts that too few masters may hold, so that no
	// ballot can choose a value.
	Clear RemovalMode = "clear"
	// IfAccepted deletes a cell in register form only if AcceptedBallot is still its accepted
	// ballot. It also deletes a plain cell or a mark of the attempt. It is for leftovers, and for
	// cells that an operator removes. If a late take gave the incarnation a majority, and a ballot
	// then chose a value, the cell stays.
	IfAccepted RemovalMode = "dead"
	// IfBlocking deletes only blocking cells, and IfMark only marks. They do not report them as
	// deleted. They are for leftovers, and for cells that an operator removes.
	IfBlocking RemovalMode = "blocking"
	IfMark     RemovalMode = "mark"
)

// RemoveSeen returns the operation that deletes a leftover that a master reported. It leaves a cell
// that another ballot has changed since, and a blocking copy that a catch-up has made in the place of
// another leftover.
func RemoveSeen(name string, seen Cell) Remove {
	switch seen.Form {
	case Blocking:
		return Remove{Name: name, Attempt: seen.Attempt, Mode: IfBlocking}
	case Mark:
		return Remove{Name: name, Attempt: seen.Attempt, Mode: IfMark}
	}
	return Remove{Name: name, Attempt: seen.Attempt, Mode: IfAccepted, AcceptedBallot: seen.Accepted}
}

// Remove deletes the cell that an attempt created.
type Remove struct {
	Name    string
	Attempt Attempt
	Mode    RemovalMode
	// AcceptedBallot is the ballot that the cell had accepted when it was read; for IfAccepted.
	AcceptedBallot Ballot
}

// removeScript handles plain cells, the ordinary case, first and without the functions of
// layoutLua.
var removeScript = luascript.New(`local plain = redis.pcall('get', KEYS[1])
if type(plain) == 'string' and string.sub(plain, 1, ` + luaInt(plainHeadSize) + `) == '` + plainTag + `' .. ARGV[1] and ARGV[2] ~= 'blocking' and ARGV[2] ~= 'mark' then
  redis.call('del', KEYS[1])
  return 1
end
` + layoutLua + `local v = get(KEYS[1])
if not v or attempt(v) ~= ARGV[1] then return {0, v, redis.call('pttl', KEYS[1])} end
local form = tag(v)
if form == '` + markTag + `' and ARGV[2] ~= 'blocking' or form == '` + blockingTag + `' and (ARGV[2] == 'blocking' or ARGV[2] == 'clear') then
  redis.call('del', KEYS[1])
  return {0, v, -1}
elseif form == '` + registerTag +
	`' and (ARGV[2] == 'dead' and accepted(v) == ARGV[3] or (ARGV[2] == 'undo' or ARGV[2] == 'clear') and accepted(v) == none) then
  redis.call('del', KEYS[1])
  return 1
end
return {0, v, redis.call('pttl', KEYS[1])}`)

func (r Remove) Keys() []string { return []string{r.Name} }

func (r Remove) Writes() bool { return true }

func (r Remove) Words(withSource bool) []any {
	if r.Mode == IfAccepted {
		return removeScript.Command(withSource, r.Keys(), string(r.Attempt), string(r.Mode), r.AcceptedBallot.digits())
	}
	return removeScript.Command(withSource, r.Keys(), string(r.Attempt), string(r.Mode))
}

func (r Remove) AppendTo(b []byte, withSource bool) []byte {
	if withSource || r.Mode == IfAccepted {
		return resp.AppendCommand(b, r.Words(withSource)...)
	}
	return resp.AppendWords(b, "EVALSHA", removeScript.SHA, "1", r.Name, string(r.Attempt), string(r.Mode))
}

func (r Remove) Decode(answer any) (Answer, error) { return decode(answer, 1, false) }

// Removes reports whether r deletes a cell.
func (r Remove) Removes(c Cell) bool {
	if c.Attempt != r.Attempt {
		return false
	}
	switch c.Form {
	case Plain:
		return r.Mode != IfBlocking && r.Mode != IfMark
	case Register:
		return (r.Mode == Undo || r.Mode == Clear) && c.Accepted == "" || r.Mode == IfAccepted && c.Accepted == r.AcceptedBallot
	case Blocking:
		return r.Mode == IfBlocking || r.Mode == Clear
	default:
		return c.Form == Mark && r.Mode != IfBlocking
	}
}

func (r Remove) Apply(s *Store) Answer {
	f := s.Get(r.Name)
	if !r.Removes(f.Cell) {
		return Answer{KeyStates: []KeyState{f}}
	}
	s.Delete(r.Name)
	if f.Form == Plain || f.Form == Register {
		return Answer{Applied: true}
	}
	f.TimeLeft = NoExpiry
	return Answer{KeyStates: []KeyState{f}}
}
