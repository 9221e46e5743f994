package quorum

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/guard/script"
	"redlock-proxy/quorum/queue"
	"redlock-proxy/quorum/register"
)

// others is how the proxies of some masters know of each other's waiters: one that waits for a lock which another has leaves a mark
// beside the lock, on all masters. Who leaves the lock to it overwrites its mark, of which the masters notify the one that left it. Marks are
// hints: nothing is decided by them, and what is lost of them costs time.
type others struct {
	*Cluster
	as cell.Attempt
	// peers are the IDs of the other proxies that are known.
	peers func() []string
}

const (
	// markPrefix is before the ID of a proxy and the name of a lock's key in that of its mark.
	markPrefix = script.OwnPrefix + "waits:"
	// markTime is how long a mark stays if the proxy that left it does not remove it, passedTime if it was overwritten.
	markTime   = time.Minute
	passedTime = time.Second
)

// markOf is the name of the mark of a proxy that waits for a key.
func markOf(id string, key Key) string { return markPrefix + id + ":" + key.Name }

// Mark is of queue.Others.
func (o others) Mark(key Key, marked func()) {
	waits := cell.Cell{Form: cell.Plain, Attempt: o.as, Value: cell.Value{Present: true}}
	o.ask(key, marking{mark: markOf(o.id, key), cell: waits, last: markTime}, &census{ended: func(most bool) {
		if most {
			marked()
		}
	}})
}

// Unmark is of queue.Others.
func (o others) Unmark(key Key) { o.ask(key, unmarking{markOf(o.id, key)}, nil) }

// Ask is of queue.Others.
func (o others) Ask(key Key, answered func(next string)) {
	peers := inTurn(o.peers(), o.id)
	if len(peers) == 0 {
		answered("")
		return
	}
	marks := make(looking, len(peers))
	for i, id := range peers {
		marks[i] = markOf(id, key)
	}
	next := ""
	o.ask(key, marks, &census{
		ends: func(got register.Reply) bool {
			i := slices.IndexFunc(got.Found, func(f cell.Found) bool { return f.Form != cell.Absent })
			if i >= 0 {
				next = peers[i]
			}
			return i >= 0
		},
		ended: func(bool) { answered(next) },
	})
}

// Pass is of queue.Others.
func (o others) Pass(key Key, to string, gone func()) {
	passed := cell.Cell{Form: cell.Register, Attempt: o.as} // it holds nothing
	found := false
	o.ask(key, marking{mark: markOf(to, key), cell: passed, last: passedTime, again: true}, &census{
		ends: func(got register.Reply) bool { found = found || got.Did; return found },
		ended: func(most bool) {
			if most && !found {
				gone()
			}
		},
	})
}

// Passed is of queue.Others.
func (o others) Passed(key Key) queue.Alarm { return o.now().waker.Alarm(key.DB, markOf(o.id, key)) }

// inTurn are other proxies in the order of their turns: those behind this one first.
func inTurn(peers []string, own string) []string {
	slices.Sort(peers)
	at, _ := slices.BinarySearch(peers, own)
	return slices.Concat(peers[at:], peers[:at])
}

// ask has all masters do something with marks, unless no other proxy is known, or nobody can have a lock: masters that begin anew have to be empty.
func (o others) ask(key Key, do cell.Op, n *census) {
	c := o.now()
	switch {
	case len(o.peers()) == 0 || !c.HasQuorum():
		if n != nil {
			n.ended(false)
		}
		return
	case n == nil:
		for _, m := range c.masters {
			m.Tell(key.DB, do, false)
		}
		return
	}
	n.missing, n.enough = len(c.masters), Majority(len(c.masters))
	ops := make([]cell.Op, len(c.masters))
	for i := range ops {
		ops[i] = do
	}
	r := c.rounds.Send(c.masters, key.DB, ops, func([]register.Reply) bool { return true }, nil)
	r.Later(n.take)
	r.Forget()
}

// census takes what masters reply about marks.
type census struct {
	// ends reports whether a reply decides it alone; nil: none does.
	ends func(register.Reply) bool
	// ended is called once: when a reply has decided it, or most masters have replied (most), or all that will.
	ended func(most bool)

	mu sync.Mutex
	// missing is how many have not replied, enough how many more have to.
	missing, enough int
	over            bool
}

func (n *census) take(_ int, got register.Reply) {
	if most, over := n.count(got); over {
		n.ended(most)
	}
}

// count reports whether it is over by this reply.
func (n *census) count(got register.Reply) (most, over bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.over {
		return false, false
	}
	n.missing--
	if got.State == register.Counted {
		n.enough--
		n.over = n.ends != nil && n.ends(got)
	}
	n.over = n.over || n.enough == 0 || n.missing == 0
	return n.enough <= 0, n.over
}

// marking puts something under a mark, with again set where it is there alone.
type marking struct {
	mark  string
	cell  cell.Cell
	last  time.Duration
	again bool
}

func (m marking) Keys() []string { return []string{m.mark} }
func (m marking) Writes() bool   { return true }
func (m marking) Words(bool) []any {
	words := []any{"SET", m.mark, m.cell.String(), "PX", m.last.Milliseconds()}
	if m.again {
		words = append(words, "XX")
	}
	return words
}

// Apply is of cell.Op.
func (m marking) Apply(s *cell.Store) cell.Answer {
	if m.again && s.Look(m.mark).Form == cell.Absent {
		return cell.Answer{}
	}
	s.Put(m.mark, m.cell, m.last)
	return cell.Answer{Did: true}
}

// Decode is of cell.Op.
func (m marking) Decode(said any) (cell.Answer, error) {
	if said != any("OK") && (said != nil || !m.again) {
		return cell.Answer{}, fmt.Errorf("unexpected answer %.80v", said)
	}
	return cell.Answer{Did: said != nil}, nil
}

// unmarking removes a mark.
type unmarking struct{ mark string }

func (u unmarking) Keys() []string   { return []string{u.mark} }
func (u unmarking) Writes() bool     { return true }
func (u unmarking) Words(bool) []any { return []any{"DEL", u.mark} }

// Apply is of cell.Op.
func (u unmarking) Apply(s *cell.Store) cell.Answer {
	s.Delete(u.mark)
	return cell.Answer{Did: true}
}

// Decode is of cell.Op.
func (u unmarking) Decode(said any) (cell.Answer, error) {
	if _, ok := said.(int64); !ok {
		return cell.Answer{}, fmt.Errorf("unexpected answer %.80v", said)
	}
	return cell.Answer{Did: true}, nil
}

// looking reads marks.
type looking []string

func (l looking) Keys() []string { return l }
func (l looking) Writes() bool   { return false }
func (l looking) Words(bool) []any {
	words := []any{"MGET"}
	for _, mark := range l {
		words = append(words, mark)
	}
	return words
}

// Apply is of cell.Op.
func (l looking) Apply(s *cell.Store) cell.Answer { return cell.Read{Names: l}.Apply(s) }

// Decode is of cell.Op.
func (l looking) Decode(said any) (cell.Answer, error) {
	texts, ok := said.([]any)
	if !ok || len(texts) != len(l) {
		return cell.Answer{}, fmt.Errorf("unexpected answer %.80v", said)
	}
	a := cell.Answer{Did: true, Found: make([]cell.Found, len(l))}
	for i, text := range texts {
		if mark, ok := text.(string); ok {
			a.Found[i].Cell = cell.Parse(mark)
		}
	}
	return a, nil
}
