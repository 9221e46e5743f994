package track

// Kind is the part of the connection's state that the reply to a forwarded command may change.
type Kind uint8

// The kinds, by the state that they change.
const (
	Plain       Kind = iota // nothing
	Hello                   // the protocol, and the user
	Auth                    // the user
	Reset                   // everything
	Select                  // the database
	Multi                   // begins a transaction
	Exec                    // ends the transaction
	Discard                 // ends the transaction
	Watch                   // watches keys
	Unwatch                 // stops watching keys
	Subscribe               // the subscriptions
	Monitor                 // begins an endless stream, if granted
	Sync                    // begins an endless stream without a fixed form
	Quit                    // ends the connection
	OwnCommand              // a command of the proxy; the client does not get the reply
	Untrackable             // nothing; within a transaction, the proxy cannot track its reply
)

// Expected describes the expected replies to one or more commands.
type Expected struct {
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
func (s *Expected) queues() bool {
	return s.Kind != OwnCommand && s.Kind != Multi && s.Kind != Watch
}

// SubscriptionKind is a kind of subscription.
type SubscriptionKind uint8

// The kinds of subscriptions.
const (
	Channels SubscriptionKind = iota
	Patterns
	Shards
)

// Awaited holds the queue of pending replies.
type Awaited struct {
	// queue holds the entries. popped is the number of entries at its beginning that were removed.
	queue  []Expected
	popped int
	// count holds the number of entries of each kind.
	count [Untrackable + 1]int
	// marked is the number of entries up to the marked reply; 0 if that reply is not pending.
	marked int
}

// expected returns the entries, in the order of the replies.
func (a *Awaited) expected() []Expected { return a.queue[a.popped:] }

// Empty reports whether no reply is pending.
func (a *Awaited) Empty() bool { return len(a.queue) == a.popped }

// Entries returns the number of entries. Consecutive replies that change nothing are one entry.
func (a *Awaited) Entries() int { return len(a.queue) - a.popped }

// AddPlain expects n replies that change nothing.
func (a *Awaited) AddPlain(n int) {
	if last := a.Entries() - 1; last >= a.marked && a.expected()[last].Kind == Plain {
		a.expected()[last].N += n
		return
	}
	a.Add(Expected{Kind: Plain, N: n})
}

// Add adds expected replies.
func (a *Awaited) Add(s Expected) {
	a.queue = append(a.queue, s)
	a.count[s.Kind]++
}

// Mark marks the last reply that is expected.
func (a *Awaited) Mark() { a.marked = a.Entries() }

// HasMarked reports whether the reply that was marked last is pending.
func (a *Awaited) HasMarked() bool { return a.marked > 0 }

// Has reports whether a reply of this kind is pending.
func (a *Awaited) Has(kind Kind) bool { return a.count[kind] > 0 }

// CancelLast removes the last reply that is expected.
func (a *Awaited) CancelLast() {
	if a.Empty() {
		return
	}
	last := &a.queue[len(a.queue)-1]
	if last.N--; last.N <= 0 || last.Kind != Plain {
		a.count[last.Kind]--
		a.queue = a.queue[:len(a.queue)-1]
		a.marked = min(a.marked, a.Entries())
	}
}

// first returns the entry of the next reply; nil if no reply is expected.
func (a *Awaited) first() *Expected {
	if a.Empty() {
		return nil
	}
	return &a.queue[a.popped]
}

// removeReply removes one reply of the first entry.
func (a *Awaited) removeReply() {
	if first := a.first(); first.N > 1 {
		first.N--
		return
	}
	a.pop()
}

// maxKept is the largest capacity, in entries, that an empty queue keeps.
const maxKept = 64

// pop removes the first entry. It moves the entries only if at least half of the queue has been
// removed, so that it moves at most one entry for each removed entry.
func (a *Awaited) pop() {
	a.count[a.queue[a.popped].Kind]--
	a.popped++
	if 2*a.popped >= len(a.queue) {
		n := copy(a.queue, a.expected())
		if a.queue, a.popped = a.queue[:n], 0; n == 0 && cap(a.queue) > maxKept {
			a.queue = nil
		}
	}
	a.marked = max(0, a.marked-1)
}

// Pending returns the number of pending replies to the client's commands.
func (a *Awaited) Pending() int {
	n := 0
	for _, s := range a.expected() {
		if s.Kind != OwnCommand {
			n += max(1, s.N)
		}
	}
	return n
}

// HasIrreplaceable reports whether an expected reply cannot be replaced by an error, because it
// changes the form of the stream. If the upstream is lost, the client's connection must then end.
func (a *Awaited) HasIrreplaceable() bool {
	for _, kind := range []Kind{Subscribe, Monitor, Sync, Quit, Multi, Exec} {
		if a.Has(kind) {
			return true
		}
	}
	return false
}
