package quorum

import (
	"slices"
	"sync"
	"time"

	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/guard/script"
	"redlock-proxy/quorum/queue"
	"redlock-proxy/quorum/register"
	"redlock-proxy/quorum/watch"
)

// peerWaiters informs proxies that share masters of each other's waiters. A proxy with a waiter for
// another proxy's lock stores a waiter mark, a key of its own, on all masters. In this file, mark
// means waiter mark. The proxy removes the mark together with its take of the lock. A proxy that
// leaves the lock to the waiter overwrites the mark, and the masters notify the waiter. Marks are
// hints: no decision depends on them, and a lost mark costs time only.
type peerWaiters struct {
	*Cluster
	attempt cell.Attempt
	// peers returns the IDs of the known other proxies.
	peers func() []string
}

const (
	// waiterMarkPrefix begins the name of a mark; the ID of the proxy and the name of the lock key
	// follow.
	waiterMarkPrefix = script.OwnPrefix + "waits:"
	// waiterMarkTTL is the TTL of a mark, passedMarkTTL the TTL of an overwritten mark.
	waiterMarkTTL = time.Minute
	passedMarkTTL = time.Second
)

// waiterMarkName returns the name of the mark of a proxy that waits for a key.
func waiterMarkName(id string, key Key) string { return waiterMarkPrefix + id + ":" + key.Name }

// IsAlone implements queue.Peers. It also returns true if no majority votes: before a fresh start,
// no mark may be stored on the masters, which must be empty.
func (o peerWaiters) IsAlone() bool { return len(o.peers()) == 0 || !o.HasQuorum() }

// ownMark implements queue.WaiterMark.
type ownMark struct {
	*watch.Alarm
	waiters peerWaiters
	set     *masterSet
	key     Key
	name    string
}

// WaiterMark implements queue.Peers.
func (o peerWaiters) WaiterMark(key Key) queue.WaiterMark {
	name, set := waiterMarkName(o.proxyID, key), o.masterSet()
	return ownMark{set.watcher.NewAlarm(key.DB, name), o, set, key, name}
}

// Put implements queue.WaiterMark. A master that is not watched gets the mark as an ordinary
// operation.
func (m ownMark) Put() {
	mark := cell.Cell{Form: cell.Plain, Attempt: m.waiters.attempt, Value: cell.Value{Present: true}}
	for _, i := range m.Alarm.Put(mark.String(), waiterMarkTTL) {
		m.set.masters[i].Tell(m.key.DB, cell.PutWaiter{Mark: m.name, Cell: mark, TTL: waiterMarkTTL}, false)
	}
}

// RemoveWaiterMark implements queue.Peers.
func (o peerWaiters) RemoveWaiterMark(key Key, sendNext func()) {
	o.sendToAll(key, cell.DeleteWaiter{Mark: waiterMarkName(o.proxyID, key)}, sendNext, nil)
}

// AskForWaiters implements queue.Peers.
func (o peerWaiters) AskForWaiters(key Key, onAnswer func(peerWaits bool)) {
	_, marks := o.marks(key)
	if len(marks) == 0 {
		onAnswer(false)
		return
	}
	found := false
	o.sendToAll(key, cell.ReadWaiters(marks), nil, &replyCount{
		decides: func(got register.Reply) bool { found = markIndex(got) >= 0; return found },
		onEnd:   func() { onAnswer(found) },
	})
}

// PassLock implements queue.Peers. Each master names the next proxy by itself. If the masters name
// different proxies, PassLock reports the first proxy that a master names.
func (o peerWaiters) PassLock(key Key, onAnswer func(to string)) {
	emptyCell := cell.Cell{Form: cell.Register, Attempt: o.attempt}
	peers, marks := o.marks(key)
	if len(marks) == 0 {
		onAnswer("")
		return
	}
	to := ""
	o.sendToAll(key, cell.SignalWaiter{Marks: marks, To: emptyCell, TTL: passedMarkTTL}, nil, &replyCount{
		decides: func(got register.Reply) bool {
			if i := markIndex(got); i >= 0 && to == "" {
				to = peers[i]
			}
			return false
		},
		onEnd: func() { onAnswer(to) },
	})
}

// WatchPeer implements queue.Peers.
func (o peerWaiters) WatchPeer(key Key, to string) queue.Alarm {
	return o.masterSet().watcher.NewAlarm(key.DB, waiterMarkName(to, key))
}

// marks returns the other proxies in the order of their turns, and the names of their marks.
func (o peerWaiters) marks(key Key) (peers, marks []string) {
	peers = rotatePeers(o.peers(), o.proxyID)
	for _, id := range peers {
		marks = append(marks, waiterMarkName(id, key))
	}
	return peers, marks
}

// markIndex returns the index of the first mark that was found, or -1.
func markIndex(got register.Reply) int {
	return slices.IndexFunc(got.KeyStates, func(f cell.KeyState) bool { return f.Form != cell.Absent })
}

// rotatePeers returns the other proxies in the order of their turns, beginning after this proxy.
func rotatePeers(peers []string, own string) []string {
	slices.Sort(peers)
	at, _ := slices.BinarySearch(peers, own)
	return slices.Concat(peers[at:], peers[:at])
}

// sendToAll sends an operation on marks to all masters, together with the operations that sendNext
// queues, if sendNext is not nil.
func (o peerWaiters) sendToAll(key Key, op cell.Op, sendNext func(), n *replyCount) {
	set := o.masterSet()
	ops := make([]cell.Op, len(set.masters))
	for i := range ops {
		ops[i] = op
	}
	r := set.rounds.Send(set.masters, key.DB, ops, func([]register.Reply) bool { return true }, afterQueued(sendNext))
	if n != nil {
		n.missingReplies, n.neededReplies = len(set.masters), Majority(len(set.masters))
		r.OnLaterReply(n.take)
	}
	r.Release()
}

// replyCount counts the masters' replies about marks.
type replyCount struct {
	// decides reports whether a reply decides the result alone.
	decides func(register.Reply) bool
	// onEnd runs once: when a reply has decided the result, when a majority has replied, or when no
	// reply is missing.
	onEnd func()

	mu sync.Mutex
	// missingReplies is the number of missing replies, neededReplies the number of further replies
	// for a majority.
	missingReplies, neededReplies int
	ended                         bool
}

func (n *replyCount) take(_ int, got register.Reply) {
	if n.count(got) {
		n.onEnd()
	}
}

// count counts a reply, and reports whether it ends the round.
func (n *replyCount) count(got register.Reply) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ended {
		return false
	}
	n.missingReplies--
	if got.State == register.Counted {
		n.neededReplies--
		n.ended = n.decides(got)
	}
	n.ended = n.ended || n.neededReplies == 0 || n.missingReplies == 0
	return n.ended
}
