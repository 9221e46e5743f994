package cell

import (
	"slices"
	"time"

	"redlock-proxy/internal/luascript"
)

// A proxy that waits for a lock stores a mark on the masters, in a key of its own. No decision
// about a lock depends on these marks. They are not cells of the form Mark.

// PutWaiter stores Cell under the name Mark, with a TTL.
type PutWaiter struct {
	Mark string
	Cell Cell
	TTL  time.Duration
}

func (m PutWaiter) Keys() []string { return []string{m.Mark} }

func (m PutWaiter) Writes() bool { return true }

func (m PutWaiter) Words(bool) []any {
	return []any{"SET", m.Mark, m.Cell.String(), "PX", m.TTL.Milliseconds()}
}

func (m PutWaiter) Apply(s *Store) Answer {
	s.Put(m.Mark, m.Cell, m.TTL)
	return Answer{Applied: true}
}

func (m PutWaiter) Decode(answer any) (Answer, error) {
	if answer != any("OK") {
		return Answer{}, unexpectedAnswer(answer)
	}
	return Answer{Applied: true}, nil
}

// SignalWaiter replaces the first of Marks that exists with To, which expires after TTL.
type SignalWaiter struct {
	Marks []string
	To    Cell
	TTL   time.Duration
}

var signalWaiterScript = luascript.New(`for i, mark in ipairs(KEYS) do
  if redis.call('set', mark, ARGV[1], 'xx', 'px', ARGV[2]) then return i end
end
return 0`)

func (p SignalWaiter) Keys() []string { return p.Marks }

func (p SignalWaiter) Writes() bool { return true }

func (p SignalWaiter) Words(withSource bool) []any {
	return signalWaiterScript.Command(withSource, p.Marks, p.To.String(), p.TTL.Milliseconds())
}

// foundAnswer returns the answer for mark number i, counted from 1; 0 means that no mark exists.
func (p SignalWaiter) foundAnswer(i int64) Answer {
	a := Answer{Applied: true, KeyStates: make([]KeyState, len(p.Marks))}
	if i > 0 {
		a.KeyStates[i-1].Cell = p.To
	}
	return a
}

func (p SignalWaiter) Apply(s *Store) Answer {
	i := slices.IndexFunc(p.Marks, func(mark string) bool { return s.Get(mark).Form != Absent })
	if i >= 0 {
		s.Put(p.Marks[i], p.To, p.TTL)
	}
	return p.foundAnswer(int64(i + 1))
}

func (p SignalWaiter) Decode(answer any) (Answer, error) {
	i, ok := answer.(int64)
	if !ok || i < 0 || i > int64(len(p.Marks)) {
		return Answer{}, unexpectedAnswer(answer)
	}
	return p.foundAnswer(i), nil
}

// DeleteWaiter removes a mark.
type DeleteWaiter struct{ Mark string }

func (u DeleteWaiter) Keys() []string { return []string{u.Mark} }

func (u DeleteWaiter) Writes() bool { return true }

func (u DeleteWaiter) Words(bool) []any { return []any{"DEL", u.Mark} }

func (u DeleteWaiter) Apply(s *Store) Answer {
	s.Delete(u.Mark)
	return Answer{Applied: true}
}

func (u DeleteWaiter) Decode(answer any) (Answer, error) {
	if _, ok := answer.(int64); !ok {
		return Answer{}, unexpectedAnswer(answer)
	}
	return Answer{Applied: true}, nil
}

// ReadWaiters reads marks.
type ReadWaiters []string

func (l ReadWaiters) Keys() []string { return l }

func (l ReadWaiters) Writes() bool { return false }

func (l ReadWaiters) Words(bool) []any {
	words := []any{"MGET"}
	for _, mark := range l {
		words = append(words, mark)
	}
	return words
}

func (l ReadWaiters) Apply(s *Store) Answer { return Read{Names: l}.Apply(s) }

func (l ReadWaiters) Decode(answer any) (Answer, error) {
	texts, ok := answer.([]any)
	if !ok || len(texts) != len(l) {
		return Answer{}, unexpectedAnswer(answer)
	}
	a := Answer{Applied: true, KeyStates: make([]KeyState, len(l))}
	for i, text := range texts {
		if mark, ok := text.(string); ok {
			a.KeyStates[i].Cell = Parse(mark)
		}
	}
	return a, nil
}
