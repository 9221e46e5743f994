package cell

import (
	"slices"
	"time"

	"redlock-proxy/internal/luascript"
)

// For each proxy that waits for a lock, masters keep a mark next to the lock, in a key of its own.
// Marks decide nothing.

// PutWaiter puts a mark for a time.
type PutWaiter struct {
	Mark string
	Cell Cell
	TTL  time.Duration
}

// Keys implements Op.
func (m PutWaiter) Keys() []string { return []string{m.Mark} }

// Writes implements Op.
func (m PutWaiter) Writes() bool { return true }

// Words implements Op.
func (m PutWaiter) Words(bool) []any {
	return []any{"SET", m.Mark, m.Cell.String(), "PX", m.TTL.Milliseconds()}
}

// Apply implements Op.
func (m PutWaiter) Apply(s *Store) Answer {
	s.Put(m.Mark, m.Cell, m.TTL)
	return Answer{Did: true}
}

// Decode implements Op.
func (m PutWaiter) Decode(answer any) (Answer, error) {
	if answer != any("OK") {
		return Answer{}, unexpected(answer)
	}
	return Answer{Did: true}, nil
}

// PassWaiter overwrites the first of some marks that exists, for a time.
type PassWaiter struct {
	Marks []string
	To    Cell
	TTL   time.Duration
}

var passWaiterScript = luascript.New(`for i, mark in ipairs(KEYS) do
  if redis.call('set', mark, ARGV[1], 'xx', 'px', ARGV[2]) then return i end
end
return 0`)

// Keys implements Op.
func (p PassWaiter) Keys() []string { return p.Marks }

// Writes implements Op.
func (p PassWaiter) Writes() bool { return true }

// Words implements Op.
func (p PassWaiter) Words(whole bool) []any {
	return passWaiterScript.Call(whole, p.Marks, p.To.String(), p.TTL.Milliseconds())
}

// found returns the answer for mark number i, counted from 1. If i is 0, no mark exists.
func (p PassWaiter) found(i int64) Answer {
	a := Answer{Did: true, Found: make([]Found, len(p.Marks))}
	if i > 0 {
		a.Found[i-1].Cell = p.To
	}
	return a
}

// Apply implements Op.
func (p PassWaiter) Apply(s *Store) Answer {
	i := slices.IndexFunc(p.Marks, func(mark string) bool { return s.Look(mark).Form != Absent })
	if i >= 0 {
		s.Put(p.Marks[i], p.To, p.TTL)
	}
	return p.found(int64(i + 1))
}

// Decode implements Op.
func (p PassWaiter) Decode(answer any) (Answer, error) {
	i, ok := answer.(int64)
	if !ok || i < 0 || i > int64(len(p.Marks)) {
		return Answer{}, unexpected(answer)
	}
	return p.found(i), nil
}

// DeleteWaiter removes a mark.
type DeleteWaiter struct{ Mark string }

// Keys implements Op.
func (u DeleteWaiter) Keys() []string { return []string{u.Mark} }

// Writes implements Op.
func (u DeleteWaiter) Writes() bool { return true }

// Words implements Op.
func (u DeleteWaiter) Words(bool) []any { return []any{"DEL", u.Mark} }

// Apply implements Op.
func (u DeleteWaiter) Apply(s *Store) Answer {
	s.Delete(u.Mark)
	return Answer{Did: true}
}

// Decode implements Op.
func (u DeleteWaiter) Decode(answer any) (Answer, error) {
	if _, ok := answer.(int64); !ok {
		return Answer{}, unexpected(answer)
	}
	return Answer{Did: true}, nil
}

// ReadWaiters reads marks.
type ReadWaiters []string

// Keys implements Op.
func (l ReadWaiters) Keys() []string { return l }

// Writes implements Op.
func (l ReadWaiters) Writes() bool { return false }

// Words implements Op.
func (l ReadWaiters) Words(bool) []any {
	words := []any{"MGET"}
	for _, mark := range l {
		words = append(words, mark)
	}
	return words
}

// Apply implements Op.
func (l ReadWaiters) Apply(s *Store) Answer { return Read{Names: l}.Apply(s) }

// Decode implements Op.
func (l ReadWaiters) Decode(answer any) (Answer, error) {
	texts, ok := answer.([]any)
	if !ok || len(texts) != len(l) {
		return Answer{}, unexpected(answer)
	}
	a := Answer{Did: true, Found: make([]Found, len(l))}
	for i, text := range texts {
		if mark, ok := text.(string); ok {
			a.Found[i].Cell = Parse(mark)
		}
	}
	return a, nil
}
