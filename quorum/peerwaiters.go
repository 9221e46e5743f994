package quorum

import (
	"slices"
	"sync"
	"time"

	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/guard/script"
	"redlock-proxy/quorum/queue"
	"redlock-proxy/quorum/register"
	"redlock-proxy/quorum/wake"
)

// peerWaiters is how the proxies of some masters know of each other's waiters: one that waits for a
// lock which another has puts a mark beside the lock, on all masters, and removes it as it takes
// the lock. Who leaves the lock to it overwrites its mark, of which the masters notify it. Marks
// are hints: nothing is decided by them, and what is lost of them costs time.
type peerWaiters struct {
	*Cluster
	as cell.Attempt
	// peers are the IDs of the other proxies that are known.
	peers func() []string
}

const (
	// markPrefix is before the ID of a proxy and the name of a lock's key in that of its mark.
	markPrefix = script.OwnPrefix + "waits:"
	// markTime is how long a mark stays if the proxy that put it does not remove it, passedTime if
	// it was overwritten.
	markTime   = time.Minute
	passedTime = time.Second
)

// markOf is the name of the mark of a proxy that waits for a key.
func markOf(id string, key Key) string { return markPrefix + id + ":" + key.Name }

// Alone is of queue.Others: no other proxy is known, or nobody can have a lock. Masters that begin
// anew have to be empty.
func (o peerWaiters) Alone() bool { return len(o.peers()) == 0 || !o.HasQuorum() }

// ownMark is of queue.Mark.
type ownMark struct {
	*wake.Alarm
	of   peerWaiters
	in   *generation
	key  Key
	name string
}

// Mark is of queue.Others.
func (o peerWaiters) Mark(key Key) queue.Mark {
	name, now := markOf(o.id, key), o.now()
	return ownMark{now.waker.Alarm(key.DB, name), o, now, key, name}
}

// Put is of queue.Mark. A master that is not watched is told like any other thing.
func (m ownMark) Put() {
	waits := cell.Cell{Form: cell.Plain, Attempt: m.of.as, Value: cell.Value{Present: true}}
	for _, i := range m.Alarm.Put(waits.String(), markTime) {
		m.in.masters[i].Tell(m.key.DB, cell.PutWaiter{Mark: m.name, Cell: waits, TTL: markTime}, false)
	}
}

// Unmark is of queue.Others.
func (o peerWaiters) Unmark(key Key, and func()) {
	o.ask(key, cell.DeleteWaiter{Mark: markOf(o.id, key)}, and, nil)
}

// Ask is of queue.Others.
func (o peerWaiters) Ask(key Key, answered func(wanted bool)) {
	_, marks := o.marks(key)
	if len(marks) == 0 {
		answered(false)
		return
	}
	found := false
	o.ask(key, cell.ReadWaiters(marks), nil, &replyCount{
		ends:  func(got register.Reply) bool { found = markIn(got) >= 0; return found },
		ended: func() { answered(found) },
	})
}

// Pass is of queue.Others. Which proxy comes next each master says for itself; where they differ,
// the first answer is as good as any.
func (o peerWaiters) Pass(key Key, answered func(to string)) {
	passed := cell.Cell{Form: cell.Register, Attempt: o.as} // it holds nothing
	peers, marks := o.marks(key)
	if len(marks) == 0 {
		answered("")
		return
	}
	to := ""
	o.ask(key, cell.PassWaiter{Marks: marks, To: passed, TTL: passedTime}, nil, &replyCount{
		ends: func(got register.Reply) bool {
			if i := markIn(got); i >= 0 && to == "" {
				to = peers[i]
			}
			return false
		},
		ended: func() { answered(to) },
	})
}

// Left is of queue.Others.
func (o peerWaiters) Left(key Key, to string) queue.Alarm {
	return o.now().waker.Alarm(key.DB, markOf(to, key))
}

// marks are the names of the marks of the other proxies, in the order of their turns.
func (o peerWaiters) marks(key Key) (peers, marks []string) {
	peers = inTurn(o.peers(), o.id)
	for _, id := range peers {
		marks = append(marks, markOf(id, key))
	}
	return peers, marks
}

// markIn is which mark was found first, or -1.
func markIn(got register.Reply) int {
	return slices.IndexFunc(got.Found, func(f cell.Found) bool { return f.Form != cell.Absent })
}

// inTurn are other proxies in the order of their turns: those behind this one first.
func inTurn(peers []string, own string) []string {
	slices.Sort(peers)
	at, _ := slices.BinarySearch(peers, own)
	return slices.Concat(peers[at:], peers[:at])
}

// ask has all masters do something with marks, and together with what and asks, unless that is nil.
func (o peerWaiters) ask(key Key, do cell.Op, and func(), n *replyCount) {
	c := o.now()
	ops := make([]cell.Op, len(c.masters))
	for i := range ops {
		ops[i] = do
	}
	r := c.rounds.Send(c.masters, key.DB, ops, func([]register.Reply) bool { return true }, lastly(and))
	if n != nil {
		n.missing, n.enough = len(c.masters), Majority(len(c.masters))
		r.Later(n.take)
	}
	r.Forget()
}

// replyCount takes what masters reply about marks.
type replyCount struct {
	// ends reports whether a reply decides it alone.
	ends func(register.Reply) bool
	// ended is called once: when a reply has decided it, or most masters have replied, or all that
	// will.
	ended func()

	mu sync.Mutex
	// missing is how many have not replied, enough how many more have to.
	missing, enough int
	over            bool
}

func (n *replyCount) take(_ int, got register.Reply) {
	if n.count(got) {
		n.ended()
	}
}

// count reports whether it is over by this reply.
func (n *replyCount) count(got register.Reply) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.over {
		return false
	}
	n.missing--
	if got.State == register.Counted {
		n.enough--
		n.over = n.ends(got)
	}
	n.over = n.over || n.enough == 0 || n.missing == 0
	return n.over
}
