package proxy

// slotKind is what a forwarded command may change of the connection, learnt from
// its answer.
type slotKind uint8

const (
	slotPlain     slotKind = iota // nothing
	slotHello                     // the protocol, and who the client is
	slotAuth                      // who the client is
	slotReset                     // everything
	slotSelect                    // the database
	slotMulti                     // in a transaction
	slotExec                      // out of it
	slotDiscard                   // out of it
	slotWatch                     // keys are watched
	slotUnwatch                   // none is any more
	slotSubscribe                 // what is subscribed to
	slotMonitor                   // an endless stream, if granted
	slotStream                    // an endless stream of no certain form
	slotQuit                      // the end
	slotCapture                   // the proxy itself asks: not for the client
	slotOdd                       // nothing, but in a transaction what cannot be followed
)

// slot awaits answers from the upstream.
type slot struct {
	kind slotKind
	// n is how many replies are to come; for slotSubscribe -1 is one for each
	// channel that is subscribed to, and at least one.
	n int
	// arg is the database for slotSelect; for slotHello 1 if it logs in; for slotQuit
	// 1 if it is the client's end, not the server's.
	arg int
	// family is what slotSubscribe is about.
	family family
}

// all is the slot, if there is one.
func (s *slot) all() []slot {
	if s == nil {
		return nil
	}
	return []slot{*s}
}

// queues reports whether the command becomes part of a transaction, or aborts it. A
// nested MULTI and a WATCH are refused without doing either.
func (s *slot) queues() bool {
	return s.kind != slotCapture && s.kind != slotMulti && s.kind != slotWatch
}

// family is a kind of subscription.
type family uint8

const (
	channels family = iota
	patterns
	shards
)

// awaited are the answers that the upstream owes, in order.
type awaited struct{ slots []slot }

func (a *awaited) empty() bool { return len(a.slots) == 0 }

// plain awaits n answers that change nothing.
func (a *awaited) plain(n int) {
	if last := len(a.slots) - 1; last >= 0 && a.slots[last].kind == slotPlain {
		a.slots[last].n += n
		return
	}
	a.add(slot{kind: slotPlain, n: n})
}

func (a *awaited) add(s slot) { a.slots = append(a.slots, s) }

// forgo takes off the answer awaited last.
func (a *awaited) forgo() {
	last := len(a.slots) - 1
	if last < 0 {
		return
	}
	if a.slots[last].n--; a.slots[last].n <= 0 || a.slots[last].kind != slotPlain {
		a.slots = a.slots[:last]
	}
}

func (a *awaited) first() *slot {
	if len(a.slots) == 0 {
		return nil
	}
	return &a.slots[0]
}

// done takes off one answer of the first slot.
func (a *awaited) done() {
	if a.slots[0].n--; a.slots[0].n <= 0 {
		a.pop()
	}
}

func (a *awaited) pop() {
	n := copy(a.slots, a.slots[1:])
	a.slots = a.slots[:n]
}

// owed counts the answers of commands of the client's.
func (a *awaited) owed() int {
	n := 0
	for _, s := range a.slots {
		if s.kind != slotCapture {
			n += max(1, s.n)
		}
	}
	return n
}

// closes reports whether an answer is awaited in whose place only the end of the
// connection is honest: that of a command after which the stream has another form.
func (a *awaited) closes() bool {
	for _, s := range a.slots {
		switch s.kind {
		case slotSubscribe, slotMonitor, slotStream, slotQuit, slotMulti, slotExec:
			return true
		}
	}
	return false
}
