package cell

import (
	"slices"
	"time"

	"redlock-proxy/internal/luascript"
)

// What masters keep beside a lock of the proxies that wait for it: a mark of each, in a key of its
// own. Nothing is decided by marks.

// PutWaiter puts a mark for a time.
type PutWaiter struct {
	Mark string
	Cell Cell
	TTL  time.Duration
}

// Keys is of Op.
func (m PutWaiter) Keys() []string { return []string{m.Mark} }

// Writes is of Op.
func (m PutWaiter) Writes() bool { return true }

// Words is of Op.
func (m PutWaiter) Words(bool) []any {
	return []any{"SET", m.Mark, m.Cell.String(), "PX", m.TTL.Milliseconds()}
}

// Apply is of Op.
func (m PutWaiter) Apply(s *Store) Answer {
	s.Put(m.Mark, m.Cell, m.TTL)
	return Answer{Did: true}
}

// Decode is of Op.
func (m PutWaiter) Decode(said any) (Answer, error) {
	if said != any("OK") {
		return Answer{}, unexpected(said)
	}
	return Answer{Did: true}, nil
}

// PassWaiter overwrites the first of some marks that is there, for a time.
type PassWaiter struct {
	Marks []string
	To    Cell
	TTL   time.Duration
}

var passScript = luascript.New(`for i, mark in ipairs(KEYS) do
  if redis.call('set', mark, ARGV[1], 'xx', 'px', ARGV[2]) then return i end
end
return 0`)

// Keys is of Op.
func (p PassWaiter) Keys() []string { return p.Marks }

// Writes is of Op.
func (p PassWaiter) Writes() bool { return true }

// Words is of Op.
func (p PassWaiter) Words(whole bool) []any {
	return passScript.Call(whole, p.Marks, p.To.String(), p.TTL.Milliseconds())
}

// found is the answer where that was mark number i, counted from 1; 0: none was there.
func (p PassWaiter) found(i int64) Answer {
	a := Answer{Did: true, Found: make([]Found, len(p.Marks))}
	if i > 0 {
		a.Found[i-1].Cell = p.To
	}
	return a
}

// Apply is of Op.
func (p PassWaiter) Apply(s *Store) Answer {
	i := slices.IndexFunc(p.Marks, func(mark string) bool { return s.Look(mark).Form != Absent })
	if i >= 0 {
		s.Put(p.Marks[i], p.To, p.TTL)
	}
	return p.found(int64(i + 1))
}

// Decode is of Op.
func (p PassWaiter) Decode(said any) (Answer, error) {
	i, ok := said.(int64)
	if !ok || i < 0 || i > int64(len(p.Marks)) {
		return Answer{}, unexpected(said)
	}
	return p.found(i), nil
}

// DeleteWaiter removes a mark.
type DeleteWaiter struct{ Mark string }

// Keys is of Op.
func (u DeleteWaiter) Keys() []string { return []string{u.Mark} }

// Writes is of Op.
func (u DeleteWaiter) Writes() bool { return true }

// Words is of Op.
func (u DeleteWaiter) Words(bool) []any { return []any{"DEL", u.Mark} }

// Apply is of Op.
func (u DeleteWaiter) Apply(s *Store) Answer {
	s.Delete(u.Mark)
	return Answer{Did: true}
}

// Decode is of Op.
func (u DeleteWaiter) Decode(said any) (Answer, error) {
	if _, ok := said.(int64); !ok {
		return Answer{}, unexpected(said)
	}
	return Answer{Did: true}, nil
}

// ReadWaiters reads marks.
type ReadWaiters []string

// Keys is of Op.
func (l ReadWaiters) Keys() []string { return l }

// Writes is of Op.
func (l ReadWaiters) Writes() bool { return false }

// Words is of Op.
func (l ReadWaiters) Words(bool) []any {
	words := []any{"MGET"}
	for _, mark := range l {
		words = append(words, mark)
	}
	return words
}

// Apply is of Op.
func (l ReadWaiters) Apply(s *Store) Answer { return Read{Names: l}.Apply(s) }

// Decode is of Op.
func (l ReadWaiters) Decode(said any) (Answer, error) {
	texts, ok := said.([]any)
	if !ok || len(texts) != len(l) {
		return Answer{}, unexpected(said)
	}
	a := Answer{Did: true, Found: make([]Found, len(l))}
	for i, text := range texts {
		if mark, ok := text.(string); ok {
			a.Found[i].Cell = Parse(mark)
		}
	}
	return a, nil
}
