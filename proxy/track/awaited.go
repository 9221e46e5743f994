package track

import "slices"

// Kind tells which state of the connection the reply to a forwarded command may change.
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

// Awaited is the queue of pending replies.
type Awaited struct {
	expected []Expected
	// marked is the number of entries up to the marked reply; 0 if it is not pending.
	marked int
}

// Empty reports whether no reply is pending.
func (a *Awaited) Empty() bool { return len(a.expected) == 0 }

// AddPlain expects n replies that change nothing.
func (a *Awaited) AddPlain(n int) {
	if last := len(a.expected) - 1; last >= a.marked && a.expected[last].Kind == Plain {
		a.expected[last].N += n
		return
	}
	a.Add(Expected{Kind: Plain, N: n})
}

// Add adds expected replies.
func (a *Awaited) Add(s Expected) { a.expected = append(a.expected, s) }

// Mark marks the last reply that is expected.
func (a *Awaited) Mark() { a.marked = len(a.expected) }

// HasMarked reports whether the reply that was marked last is pending.
func (a *Awaited) HasMarked() bool { return a.marked > 0 }

// Has reports whether a reply of this kind is pending.
func (a *Awaited) Has(kind Kind) bool {
	return slices.ContainsFunc(a.expected, func(s Expected) bool { return s.Kind == kind })
}

// CancelLast removes the last reply that is expected.
func (a *Awaited) CancelLast() {
	last := len(a.expected) - 1
	if last < 0 {
		return
	}
	if a.expected[last].N--; a.expected[last].N <= 0 || a.expected[last].Kind != Plain {
		a.expected = a.expected[:last]
		a.marked = min(a.marked, last)
	}
}

// first returns the entry of the next reply; nil if no reply is expected.
func (a *Awaited) first() *Expected {
	if len(a.expected) == 0 {
		return nil
	}
	return &a.expected[0]
}

// removeReply removes one reply of the first entry.
func (a *Awaited) removeReply() {
	if a.expected[0].N--; a.expected[0].N <= 0 {
		a.pop()
	}
}

func (a *Awaited) pop() {
	n := copy(a.expected, a.expected[1:])
	a.expected, a.marked = a.expected[:n], max(0, a.marked-1)
}

// Pending returns the number of pending replies to the client's commands.
func (a *Awaited) Pending() int {
	n := 0
	for _, s := range a.expected {
		if s.Kind != OwnCommand {
			n += max(1, s.N)
		}
	}
	return n
}

// HasIrreplaceable reports whether an expected reply cannot be replaced by an error, because it
// changes the form of the stream. If the upstream is lost, the client's connection must then end.
func (a *Awaited) HasIrreplaceable() bool {
	for _, s := range a.expected {
		switch s.Kind {
		case Subscribe, Monitor, Sync, Quit, Multi, Exec:
			return true
		}
	}
	return false
}
