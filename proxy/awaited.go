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
	// arg is the database for slotSelect; for slotHello 1 if it logs in.
	arg int
	// family is what slotSubscribe is about.
	family family
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

// learned is what the upstream's answers have told about the connection.
type learned struct {
	proto int
	db    int
	// dbUnknown: a transaction that held a SELECT was executed.
	dbUnknown bool
	// loggedIn: an AUTH, or HELLO with AUTH, was accepted.
	loggedIn bool
	multi    bool
	// queuedSelect and queuedOdd: the transaction holds such a command.
	queuedSelect, queuedOdd bool
	subscribed              [3]int // by family
	total                   int    // channels and patterns, as the upstream counts
	// stream: the rest is bytes, not replies.
	stream   bool
	quitting bool
}

func newLearned() learned { return learned{proto: 2} }

// listening reports whether the connection takes messages.
func (l *learned) listening() bool { return l.total > 0 || l.subscribed[shards] > 0 }

// acks are the first words of answers to SUBSCRIBE and its kin.
var acks = map[string]struct {
	family family
	step   int
}{
	"subscribe": {channels, 1}, "unsubscribe": {channels, -1},
	"psubscribe": {patterns, 1}, "punsubscribe": {patterns, -1},
	"ssubscribe": {shards, 1}, "sunsubscribe": {shards, -1},
}

// reply learns from a whole reply. It reports whether the reply is one that the
// proxy asked for itself.
func (l *learned) reply(a *awaited, r *replyScanner) (captured bool) {
	first := a.first()
	if l.outOfBand(first, r) {
		l.message(a, first, r)
		return false
	}
	if first == nil {
		return false
	}
	switch first.kind {
	case slotSubscribe: // an error, or queued
		l.queuedOdd = l.queuedOdd || r.begins("+QUEUED")
		a.pop()
		return false
	case slotCapture:
		captured = true
	default:
		l.answer(*first, r)
	}
	a.done()
	return captured
}

// outOfBand tells messages and the answers to SUBSCRIBE from ordinary replies.
func (l *learned) outOfBand(first *slot, r *replyScanner) bool {
	if r.isPush() {
		return true
	}
	if r.head[0] != '*' || l.proto == 3 || !l.listening() && (first == nil || first.kind != slotSubscribe) {
		return false
	}
	switch word := r.message(); word {
	case "message", "pmessage", "smessage":
		return true
	default:
		_, ack := acks[word]
		return ack
	}
}

// message takes what came out of band; only answers to SUBSCRIBE matter.
func (l *learned) message(a *awaited, first *slot, r *replyScanner) {
	ack, ok := acks[r.message()]
	if !ok {
		return
	}
	before := l.subscribed[ack.family]
	l.count(ack.family, ack.step, int(r.last))
	if first == nil || first.kind != slotSubscribe {
		return
	}
	if first.n < 0 {
		first.n = max(1, before)
	}
	a.done()
}

// count follows the upstream's count of subscriptions: one for channels and
// patterns together, one for shard channels.
func (l *learned) count(f family, step, upstream int) {
	if f == shards {
		l.subscribed[shards] = upstream
		return
	}
	if upstream != l.total {
		l.subscribed[f] += step
	}
	l.total = upstream
}

// answer learns from the answer to a command.
func (l *learned) answer(s slot, r *replyScanner) {
	ok, queued := r.begins("+OK"), r.begins("+QUEUED")
	switch s.kind {
	case slotHello:
		l.hello(s, r)
	case slotAuth:
		l.loggedIn = l.loggedIn || ok
	case slotReset:
		if r.begins("+RESET") {
			*l = newLearned()
		}
	case slotSelect:
		l.queuedSelect = l.queuedSelect || queued
		if ok {
			l.db, l.dbUnknown = s.arg, false
		}
	case slotMulti:
		l.multi = l.multi || ok
	case slotExec:
		l.exec(r)
	case slotDiscard:
		if ok {
			l.endMulti()
		}
	case slotMonitor:
		l.stream = l.stream || ok
		l.queuedOdd = l.queuedOdd || queued
	case slotOdd:
		l.queuedOdd = l.queuedOdd || queued
	case slotQuit:
		l.quitting = true
	}
}

func (l *learned) hello(s slot, r *replyScanner) {
	switch r.head[0] {
	case '%':
		l.proto = 3
	case '*':
		l.proto = 2
	default:
		return
	}
	l.loggedIn = l.loggedIn || s.arg == 1
}

// exec ends the transaction, unless EXEC itself was refused.
func (l *learned) exec(r *replyScanner) {
	if r.isError() && !r.begins("-EXECABORT") {
		return
	}
	if !r.isError() {
		l.dbUnknown = l.dbUnknown || l.queuedSelect
		l.stream = l.stream || l.queuedOdd
	}
	l.endMulti()
}

func (l *learned) endMulti() { l.multi, l.queuedSelect, l.queuedOdd = false, false, false }

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
