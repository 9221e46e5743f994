package track

// Kind is the part of the connection's state that the reply to a forwarded command may change.
type Kind uint8

// The kinds, by the state that they change.
const (
	Plain           Kind = iota // nothing
	Hello                       // the protocol, and the user
	Auth                        // the user
	Reset                       // everything
	Select                      // the database
	Multi                       // begins a transaction
	Exec                        // ends the transaction
	Discard                     // ends the transaction
	Watch                       // watches keys
	Unwatch                     // stops watching keys
	Subscribe                   // the subscriptions
	Monitor                     // begins an endless stream, if granted
	Sync                        // begins an endless stream without a fixed form
	Quit                        // ends the connection
	InternalCommand             // an internal command: the reply goes to the proxy
	Untrackable                 // nothing; within a transaction, the proxy cannot track its reply
)

// ExpectedReply describes the expected replies to one or more commands.
type ExpectedReply struct {
	Kind Kind
	// N is the number of replies to come. For Subscribe, -1 stands for a reply for each subscribed
	// channel, at least one.
	N int
	// Arg is the database for Select. For Hello it is 1 if the command logs in. For Quit it is 1 if
	// the command ends the client's connection, 0 if it stops the server.
	Arg int
	// SubscriptionKind is the kind of subscription, for Subscribe.
	SubscriptionKind SubscriptionKind
}

// queues reports whether the command becomes part of a transaction, or makes it fail. A nested
// MULTI or a WATCH does neither: the upstream just refuses it.
func (s *ExpectedReply) queues() bool {
	return s.Kind != InternalCommand && s.Kind != Multi && s.Kind != Watch
}

// SubscriptionKind is a kind of subscription.
type SubscriptionKind uint8

// The kinds of subscriptions.
const (
	Channels SubscriptionKind = iota
	Patterns
	Shards
)

// AwaitedReplies holds the queue of pending replies.
type AwaitedReplies struct {
	// queue holds the entries. poppedCount is the number of entries at its beginning that were
	// removed.
	queue       []ExpectedReply
	poppedCount int
	// count holds the number of entries of each kind.
	count [Untrackable + 1]int
	// markedCount is the number of entries up to the marked reply; 0 if that reply is not pending.
	markedCount int
}

// pendingEntries returns the entries, in the order of the replies.
func (a *AwaitedReplies) pendingEntries() []ExpectedReply { return a.queue[a.poppedCount:] }

// Empty reports whether no reply is pending.
func (a *AwaitedReplies) Empty() bool { return len(a.queue) == a.poppedCount }

// EntryCount returns the number of entries. Consecutive replies that change nothing are one entry.
func (a *AwaitedReplies) EntryCount() int { return len(a.queue) - a.poppedCount }

// AddPlain expects n replies that change nothing.
func (a *AwaitedReplies) AddPlain(n int) {
	if last := a.EntryCount() - 1; last >= a.markedCount && a.pendingEntries()[last].Kind == Plain {
		a.pendingEntries()[last].N += n
		return
	}
	a.Add(ExpectedReply{Kind: Plain, N: n})
}

// Add adds expected replies.
func (a *AwaitedReplies) Add(s ExpectedReply) {
	a.queue = append(a.queue, s)
	a.count[s.Kind]++
}

// Mark marks the last reply that is expected.
func (a *AwaitedReplies) Mark() { a.markedCount = a.EntryCount() }

// HasMarked reports whether the reply that was marked last is pending.
func (a *AwaitedReplies) HasMarked() bool { return a.markedCount > 0 }

// Has reports whether a reply of this kind is pending.
func (a *AwaitedReplies) Has(kind Kind) bool { return a.count[kind] > 0 }

// CancelLast removes the last reply that is expected.
func (a *AwaitedReplies) CancelLast() {
	if a.Empty() {
		return
	}
	last := &a.queue[len(a.queue)-1]
	if last.N--; last.N <= 0 || last.Kind != Plain {
		a.count[last.Kind]--
		a.queue = a.queue[:len(a.queue)-1]
		a.markedCount = min(a.markedCount, a.EntryCount())
	}
}

// first returns the entry of the next reply; nil if no reply is expected.
func (a *AwaitedReplies) first() *ExpectedReply {
	if a.Empty() {
		return nil
	}
	return &a.queue[a.poppedCount]
}

// removeReply removes one reply of the first entry.
func (a *AwaitedReplies) removeReply() {
	if first := a.first(); first.N > 1 {
		first.N--
		return
	}
	a.pop()
}

// maxKeptEntries is the largest capacity, in entries, that an empty queue keeps.
const maxKeptEntries = 64

// pop removes the first entry. It moves the entries only if at least half of the queue has been
// removed, so that it moves at most one entry for each removed entry.
func (a *AwaitedReplies) pop() {
	a.count[a.queue[a.poppedCount].Kind]--
	a.poppedCount++
	if 2*a.poppedCount >= len(a.queue) {
		n := copy(a.queue, a.pendingEntries())
		if a.queue, a.poppedCount = a.queue[:n], 0; n == 0 && cap(a.queue) > maxKeptEntries {
			a.queue = nil
		}
	}
	a.markedCount = max(0, a.markedCount-1)
}

// PendingCount returns the number of pending replies to the client's commands.
func (a *AwaitedReplies) PendingCount() int {
	n := 0
	for _, s := range a.pendingEntries() {
		if s.Kind != InternalCommand {
			n += max(1, s.N)
		}
	}
	return n
}

// HasIrreplaceable reports whether an expected reply cannot be replaced by an error, because it
// changes the form of the stream. If the upstream is lost, the client's connection must then end.
func (a *AwaitedReplies) HasIrreplaceable() bool {
	for _, kind := range []Kind{Subscribe, Monitor, Sync, Quit, Multi, Exec} {
		if a.Has(kind) {
			return true
		}
	}
	return false
}
