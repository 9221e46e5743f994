package track

// Kind is the state of the connection that the reply to a forwarded command may change.
type Kind uint8

// The kinds, by the state that they change.
const (
	Plain       Kind = iota // nothing
	Hello                   // the protocol, and the user
	Auth                    // the user
	Reset                   // everything
	Select                  // the database
	Multi                   // begins a transaction
	Exec                    // ends it
	Discard                 // ends it
	Watch                   // watches keys
	Unwatch                 // stops watching keys
	Subscribe               // the subscriptions
	Monitor                 // begins an endless stream, if granted
	Sync                    // begins an endless stream without a fixed form
	Quit                    // ends the connection
	OwnCommand              // a command of the proxy; the client does not get the reply
	Untrackable             // nothing, but within a transaction its reply cannot be followed
)

// Expected describes the expected replies to one or more commands.
type Expected struct {
	Kind Kind
	// N is the number of replies to come. -1, for Subscribe only, stands for one per channel that
	// is subscribed to, and at least one.
	N int
	// Arg is the database for Select. For Hello it is 1 if the command logs in. For Quit it is 1 if
	// the client ends, 0 if the server does.
	Arg int
	// Family is the kind of subscription, for Subscribe.
	Family SubscriptionKind
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

// Awaited is the queue of pending replies.
type Awaited struct{ slots []Expected }

// Empty reports whether no reply is pending.
func (a *Awaited) Empty() bool { return len(a.slots) == 0 }

// Plain expects n replies that change nothing.
func (a *Awaited) Plain(n int) {
	if last := len(a.slots) - 1; last >= 0 && a.slots[last].Kind == Plain {
		a.slots[last].N += n
		return
	}
	a.Add(Expected{Kind: Plain, N: n})
}

// Add expects the replies of a slot.
func (a *Awaited) Add(s Expected) { a.slots = append(a.slots, s) }

// CancelLast removes the last reply that is expected.
func (a *Awaited) CancelLast() {
	last := len(a.slots) - 1
	if last < 0 {
		return
	}
	if a.slots[last].N--; a.slots[last].N <= 0 || a.slots[last].Kind != Plain {
		a.slots = a.slots[:last]
	}
}

// first returns the slot of the next reply; nil if no reply is expected.
func (a *Awaited) first() *Expected {
	if len(a.slots) == 0 {
		return nil
	}
	return &a.slots[0]
}

// done removes one reply of the first slot.
func (a *Awaited) done() {
	if a.slots[0].N--; a.slots[0].N <= 0 {
		a.pop()
	}
}

func (a *Awaited) pop() {
	n := copy(a.slots, a.slots[1:])
	a.slots = a.slots[:n]
}

// Pending returns the number of pending replies to the client's commands.
func (a *Awaited) Pending() int {
	n := 0
	for _, s := range a.slots {
		if s.Kind != OwnCommand {
			n += max(1, s.N)
		}
	}
	return n
}

// Closes reports whether a reply is expected that no error can replace, because the stream has
// another form after it. If the upstream is lost, the client's connection must end.
func (a *Awaited) Closes() bool {
	for _, s := range a.slots {
		switch s.Kind {
		case Subscribe, Monitor, Sync, Quit, Multi, Exec:
			return true
		}
	}
	return false
}
