package quorum

import (
	"fmt"
	"sync"
	"time"

	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/guard/script"
	"redlock-proxy/quorum/register"
)

// others is how the proxies of some masters know of each other's waiters: one that waits for a lock which another has leaves a mark
// beside the lock, on all masters; the last one to wait overwrites those before. A mark is a hint: nothing is decided by it, and what
// is lost of it costs time. It is a cell of an attempt of the proxy's own, so that a release removes it, unless it is another's by now.
type others struct {
	*Cluster
	as cell.Attempt
}

const (
	// markPrefix is before the name of a lock's key in that of its mark.
	markPrefix = script.OwnPrefix + "waits:"
	// markTime is how long a mark stays if the proxy that left it does not remove it.
	markTime = 10 * time.Second
)

// isAlone reports whether no other proxy is known.
func (c *generation) isAlone() bool { return !c.unguarded && len(c.guards.Peers()) == 0 }

// Mark is of queue.Others.
func (o others) Mark(key Key) {
	o.tell(key, marking{markPrefix + key.Name, cell.Cell{Form: cell.Plain, Attempt: o.as, Value: cell.Value{Present: true}}})
}

// Unmark is of queue.Others.
func (o others) Unmark(key Key) {
	o.tell(key, cell.Remove{Name: markPrefix + key.Name, Attempt: o.as, How: cell.Release})
}

// tell has all masters do something with a mark, unless no other proxy is known, or nobody can have a lock: masters that begin anew have to be empty.
func (o others) tell(key Key, do cell.Op) {
	c := o.now()
	if c.isAlone() || !c.HasQuorum() {
		return
	}
	for _, m := range c.masters {
		m.Tell(key.DB, do, false)
	}
}

// Ask is of queue.Others.
func (o others) Ask(key Key, answered func(waits bool)) {
	c := o.now()
	if c.isAlone() {
		answered(false)
		return
	}
	ops := make([]cell.Op, len(c.masters))
	for i := range ops {
		ops[i] = cell.Read{Names: []string{markPrefix + key.Name}}
	}
	r := c.rounds.Send(c.masters, key.DB, ops, func([]register.Reply) bool { return true }, nil)
	n := &census{own: o.as, missing: len(ops), enough: Majority(len(ops)), answered: answered}
	r.Later(n.take)
	r.Forget()
}

// census takes what masters answer to whether others wait.
type census struct {
	own      cell.Attempt
	answered func(waits bool)

	mu sync.Mutex
	// missing is how many have not answered, enough how many more have to know of nobody.
	missing, enough int
	told            bool
}

func (n *census) take(_ int, got register.Reply) {
	if waits, told := n.count(got); told {
		n.answered(waits)
	}
}

// count reports whether others wait, once that is known.
func (n *census) count(got register.Reply) (waits, told bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.missing--
	switch {
	case got.State != register.Counted:
	case got.Found[0].Form != cell.Absent && got.Found[0].Attempt != n.own:
		waits = true
	default:
		n.enough--
	}
	if n.told || !waits && n.missing > 0 && n.enough > 0 {
		return false, false
	}
	n.told = true
	return waits, true
}

// marking leaves a mark, whatever was there.
type marking struct {
	mark string
	cell cell.Cell
}

func (m marking) Keys() []string { return []string{m.mark} }
func (m marking) Writes() bool   { return true }
func (m marking) Words(bool) []any {
	return []any{"SET", m.mark, m.cell.String(), "PX", markTime.Milliseconds()}
}

// Apply is of cell.Op.
func (m marking) Apply(s *cell.Store) cell.Answer {
	s.Put(m.mark, m.cell, markTime)
	return cell.Answer{Did: true}
}

// Decode is of cell.Op.
func (m marking) Decode(said any) (cell.Answer, error) {
	if said != any("OK") {
		return cell.Answer{}, fmt.Errorf("unexpected answer %.80v", said)
	}
	return cell.Answer{Did: true}, nil
}
