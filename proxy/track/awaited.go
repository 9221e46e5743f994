package track

// Kind is what a forwarded command may change of the connection, learnt from
// its answer.
type Kind uint8

// The kinds, by what they change.
const (
	Plain     Kind = iota // nothing
	Hello                 // the protocol, and who the client is
	Auth                  // who the client is
	Reset                 // everything
	Select                // the database
	Multi                 // in a transaction
	Exec                  // out of it
	Discard               // out of it
	Watch                 // keys are watched
	Unwatch               // none is any more
	Subscribe             // what is subscribed to
	Monitor               // an endless stream, if granted
	Sync                  // an endless stream of no certain form
	Quit                  // the end
	Capture               // the proxy itself asks: not for the client
	Odd                   // nothing, but in a transaction what cannot be followed
)

// Slot awaits answers from the upstream.
type Slot struct {
	Kind Kind
	// N is how many replies are to come; for Subscribe -1 is one for each
	// channel that is subscribed to, and at least one.
	N int
	// Arg is the database for Select; for Hello 1 if it logs in; for Quit
	// 1 if it is the client's end, not the server's.
	Arg int
	// Family is what Subscribe is about.
	Family Family
}

// queues reports whether the command becomes part of a transaction, or aborts it. A
// nested MULTI and a WATCH are refused without doing either.
func (s *Slot) queues() bool {
	return s.Kind != Capture && s.Kind != Multi && s.Kind != Watch
}

// Family is a kind of subscription.
type Family uint8

// The families.
const (
	Channels Family = iota
	Patterns
	Shards
)

// Awaited are the answers that the upstream owes, in order.
type Awaited struct{ slots []Slot }

// Empty reports whether it owes none.
func (a *Awaited) Empty() bool { return len(a.slots) == 0 }

// Plain awaits n answers that change nothing.
func (a *Awaited) Plain(n int) {
	if last := len(a.slots) - 1; last >= 0 && a.slots[last].Kind == Plain {
		a.slots[last].N += n
		return
	}
	a.Add(Slot{Kind: Plain, N: n})
}

// Add awaits the answers of a slot.
func (a *Awaited) Add(s Slot) { a.slots = append(a.slots, s) }

// Forgo takes off the answer awaited last.
func (a *Awaited) Forgo() {
	last := len(a.slots) - 1
	if last < 0 {
		return
	}
	if a.slots[last].N--; a.slots[last].N <= 0 || a.slots[last].Kind != Plain {
		a.slots = a.slots[:last]
	}
}

// first is the slot whose answer comes next, or nil.
func (a *Awaited) first() *Slot {
	if len(a.slots) == 0 {
		return nil
	}
	return &a.slots[0]
}

// done takes off one answer of the first slot.
func (a *Awaited) done() {
	if a.slots[0].N--; a.slots[0].N <= 0 {
		a.pop()
	}
}

func (a *Awaited) pop() {
	n := copy(a.slots, a.slots[1:])
	a.slots = a.slots[:n]
}

// Owed counts the answers to commands of the client's.
func (a *Awaited) Owed() int {
	n := 0
	for _, s := range a.slots {
		if s.Kind != Capture {
			n += max(1, s.N)
		}
	}
	return n
}

// Closes reports whether an answer is awaited in whose place only the end of the
// connection is honest: that of a command after which the stream has another form.
func (a *Awaited) Closes() bool {
	for _, s := range a.slots {
		switch s.Kind {
		case Subscribe, Monitor, Sync, Quit, Multi, Exec:
			return true
		}
	}
	return false
}
