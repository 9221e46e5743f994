package legacy

import (
	"fmt"
	"strconv"
	"time"

	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/register"
)

// The commands at the legacy server, which keeps no cells. Each is a cell.Op of one key; Apply does
// on a Store of foreign values what the server would.

type take struct {
	key, token string
	ttl        time.Duration
}

func (t take) Keys() []string { return []string{t.key} }
func (t take) Writes() bool   { return true }

func (t take) Words(bool) []any {
	words := []any{"SET", t.key, t.token, "NX"}
	if t.ttl >= 0 {
		words = append(words, "PX", millis(t.ttl))
	}
	return words
}

func (t take) Decode(answer any) (cell.Answer, error) {
	return cell.Answer{Did: answer == "OK"}, nil
}

func (t take) Apply(s *cell.Store) cell.Answer {
	if s.Look(t.key).Form != cell.Absent {
		return cell.Answer{}
	}
	s.Put(t.key, foreign(t.token), t.ttl)
	return cell.Answer{Did: true}
}

type remove struct{ key, token string }

const removeScript = `if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end
return 0`

func (r remove) Keys() []string { return []string{r.key} }
func (r remove) Writes() bool   { return true }
func (r remove) Words(bool) []any {
	return []any{"EVAL", removeScript, 1, r.key, r.token}
}
func (r remove) Decode(answer any) (cell.Answer, error) { return did(answer) }

func (r remove) Apply(s *cell.Store) cell.Answer {
	did := s.Look(r.key).Value.Text == r.token && s.Look(r.key).Form != cell.Absent
	if did {
		s.Delete(r.key)
	}
	return cell.Answer{Did: did}
}

// undo removes a token that has not more time left than a lock that has just been
// taken back can have.
type undo struct {
	key, token string
	most       time.Duration
}

const undoScript = `if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end
local left, most = redis.call('pttl', KEYS[1]), tonumber(ARGV[2])
if most < 0 and left >= 0 or most >= 0 and (left < 0 or left > most) then return 0 end
return redis.call('del', KEYS[1])`

func (u undo) Keys() []string { return []string{u.key} }
func (u undo) Writes() bool   { return true }
func (u undo) Words(bool) []any {
	return []any{"EVAL", undoScript, 1, u.key, u.token, orEndless(u.most)}
}
func (u undo) Decode(answer any) (cell.Answer, error) { return did(answer) }

func (u undo) Apply(s *cell.Store) cell.Answer {
	left := s.Look(u.key).Left
	if u.most < 0 != (left < 0) || left > u.most {
		return cell.Answer{}
	}
	return remove{u.key, u.token}.Apply(s)
}

type extend struct {
	key, token string
	ttl        time.Duration
}

const extendScript = `if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end
local left, ttl = redis.call('pttl', KEYS[1]), tonumber(ARGV[2])
if left >= 0 and ttl < 0 then redis.call('persist', KEYS[1])
elseif left >= 0 and left < ttl then redis.call('pexpire', KEYS[1], ttl) end
return 1`

func (e extend) Keys() []string { return []string{e.key} }
func (e extend) Writes() bool   { return true }
func (e extend) Words(bool) []any {
	return []any{"EVAL", extendScript, 1, e.key, e.token, orEndless(e.ttl)}
}
func (e extend) Decode(answer any) (cell.Answer, error) { return did(answer) }

func (e extend) Apply(s *cell.Store) cell.Answer {
	f := s.Look(e.key)
	if f.Form == cell.Absent || f.Value.Text != e.token {
		return cell.Answer{}
	}
	if f.Left != cell.Endless && (e.ttl == cell.Endless || f.Left < e.ttl) {
		s.Put(e.key, f.Cell, e.ttl)
	}
	return cell.Answer{Did: true}
}

type read struct{ key string }

const readScript = `return {redis.call('get', KEYS[1]), redis.call('pttl', KEYS[1])}`

func (r read) Keys() []string   { return []string{r.key} }
func (r read) Writes() bool     { return false }
func (r read) Words(bool) []any { return []any{"EVAL", readScript, 1, r.key} }

func (r read) Decode(answer any) (cell.Answer, error) {
	parts, _ := answer.([]any)
	if len(parts) != 2 {
		return cell.Answer{}, fmt.Errorf("unexpected answer %.80v", answer)
	}
	text, present := parts[0].(string)
	left, _ := parts[1].(int64)
	f := cell.Found{}
	if present {
		f.Form, f.Value = cell.Foreign, cell.Value{Present: true, Text: text}
		if f.Left = cell.Endless; left >= 0 {
			f.Left = time.Duration(left) * time.Millisecond
		}
	}
	return cell.Answer{Did: true, Found: []cell.Found{f}}, nil
}

func (r read) Apply(s *cell.Store) cell.Answer {
	return cell.Answer{Did: true, Found: []cell.Found{s.Look(r.key)}}
}

// swap makes a decision's change if the key holds what it held.
type swap struct {
	key string
	was cell.Found
	do  register.Decision
}

const swapScript = `local v = redis.call('get', KEYS[1])
if ARGV[1] == '0' and v or ARGV[1] == '1' and v ~= ARGV[2] then return 0 end
if ARGV[3] == 'del' then redis.call('del', KEYS[1])
elseif ARGV[3] == 'keep' then redis.call('set', KEYS[1], ARGV[4], 'keepttl')
elseif ARGV[5] == '-1' then redis.call('set', KEYS[1], ARGV[4])
else redis.call('set', KEYS[1], ARGV[4], 'px', ARGV[5]) end
return 1`

func (w swap) Keys() []string { return []string{w.key} }
func (w swap) Writes() bool   { return true }

func (w swap) Words(bool) []any {
	there, act := "0", "set"
	if w.was.Form != cell.Absent {
		there = "1"
	}
	switch {
	case w.do.Do == register.Remove:
		act = "del"
	case w.do.KeepTTL:
		act = "keep"
	}
	return []any{"EVAL", swapScript, 1, w.key, there, w.was.Value.Text, act, w.do.Value, orEndless(w.do.TTL)}
}

func (w swap) Decode(answer any) (cell.Answer, error) { return did(answer) }

func (w swap) Apply(s *cell.Store) cell.Answer {
	f := s.Look(w.key)
	switch {
	case f.Form != w.was.Form, f.Form != cell.Absent && f.Value.Text != w.was.Value.Text:
		return cell.Answer{}
	case w.do.Do == register.Remove:
		s.Delete(w.key)
	case w.do.KeepTTL && f.Form != cell.Absent:
		s.Put(w.key, foreign(w.do.Value), f.Left)
	case w.do.KeepTTL:
		s.Put(w.key, foreign(w.do.Value), cell.Endless)
	default:
		s.Put(w.key, foreign(w.do.Value), w.do.TTL)
	}
	return cell.Answer{Did: true}
}

// foreign is a value that no proxy wrote.
func foreign(value string) cell.Cell {
	return cell.Cell{Form: cell.Foreign, Value: cell.Value{Present: true, Text: value}}
}

// did reads 1 or 0.
func did(answer any) (cell.Answer, error) {
	n, ok := answer.(int64)
	if !ok {
		return cell.Answer{}, fmt.Errorf("unexpected answer %.80v", answer)
	}
	return cell.Answer{Did: n == 1}, nil
}

// orEndless is a TTL in milliseconds, or -1.
func orEndless(ttl time.Duration) string {
	if ttl < 0 {
		return "-1"
	}
	return millis(ttl)
}

func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
