package proxy

// learned is what the upstream's answers have told about the connection.
type learned struct {
	proto int
	db    int
	// dbUnknown and protoUnknown: they may have changed, and no answer told.
	dbUnknown, protoUnknown bool
	// loggedIn: an AUTH, or HELLO with AUTH, was accepted.
	loggedIn bool
	multi    bool
	// watching: keys are watched at the upstream.
	watching bool
	// queued: something was sent in the transaction.
	queued bool
	// queuedSelect, queuedHello and queuedOdd: the transaction holds such a command.
	queuedSelect, queuedHello, queuedOdd bool
	subscribed                           [3]int // by family
	total                                int    // channels and patterns, as the upstream counts
	// stray: subscriptions were changed without their answers being awaited.
	stray      bool
	monitoring bool
	// stream: the rest is bytes, not replies.
	stream   bool
	quitting bool
}

func newLearned() learned { return learned{proto: 2} }

// listening reports whether the connection takes messages.
func (l *learned) listening() bool { return l.total > 0 || l.subscribed[shards] > 0 }

// unasked reports whether more comes than answers and pushes.
func (l *learned) unasked() bool { return l.listening() || l.monitoring || l.stray }

// restricted reports whether the upstream takes hardly anything but SUBSCRIBE and
// its kin.
func (l *learned) restricted() bool { return l.proto == 2 && l.listening() }

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
	l.queued = l.queued || l.multi && first.queues()
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
	switch {
	case r.isPush():
		return true
	case l.monitoring && r.isMonitored():
		return true
	case r.kind != '*' || l.proto == 3 && !l.protoUnknown:
		return false
	}
	if first != nil && first.kind != slotSubscribe && !l.listening() && !l.stray {
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
	if first == nil || first.kind != slotSubscribe || first.family != ack.family {
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
	case slotWatch:
		l.watching = l.watching || ok
	case slotUnwatch:
		l.watching = l.watching && !ok
	case slotExec:
		l.exec(r)
	case slotDiscard:
		if ok {
			l.endMulti()
		}
	case slotMonitor:
		l.monitoring = l.monitoring || ok
		l.queuedOdd = l.queuedOdd || queued
	case slotOdd:
		l.queuedOdd = l.queuedOdd || queued
	case slotQuit:
		l.quitting = l.quitting || ok && s.arg == 1
	}
}

// unheard is answer where the client wanted no answer, which may have been any.
func (l *learned) unheard(s slot) {
	switch s.kind {
	case slotHello:
		l.protoUnknown = true
	case slotSelect:
		l.dbUnknown = true
	case slotReset:
		*l = newLearned()
	case slotWatch:
		l.watching = true
	case slotSubscribe: // is answered all the same
		l.stray = true
	case slotMulti, slotExec, slotDiscard, slotMonitor, slotStream:
		l.stream = true // nothing can be told from answers any more
	}
}

func (l *learned) hello(s slot, r *replyScanner) {
	switch r.kind {
	case '%':
		l.proto = 3
	case '*':
		l.proto = 2
	default:
		l.queuedHello = l.queuedHello || r.begins("+QUEUED")
		return
	}
	l.protoUnknown = false
	l.loggedIn = l.loggedIn || s.arg == 1
}

// exec ends the transaction, unless EXEC itself was refused.
func (l *learned) exec(r *replyScanner) {
	if r.isError() && !r.begins("-EXECABORT") {
		return
	}
	if done := !r.isError() && !r.isNull(); done {
		l.dbUnknown = l.dbUnknown || l.queuedSelect
		l.protoUnknown = l.protoUnknown || l.queuedHello
	}
	l.endMulti()
}

func (l *learned) endMulti() {
	l.multi, l.watching, l.queued = false, false, false
	l.queuedSelect, l.queuedHello, l.queuedOdd = false, false, false
}
