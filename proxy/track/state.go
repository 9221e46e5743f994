package track

import (
	"errors"

	"redlock-proxy/internal/resp"
)

// State is the known state of a connection to the upstream.
type State struct {
	// Proto is the protocol, DB the selected database.
	Proto, DB int
	// ProtoUnknown and DBUnknown are set if a command without a reply may have changed Proto or DB.
	ProtoUnknown, DBUnknown bool
	// Identity counts how often the client may have become another user.
	Identity uint64
	// Renamed is set if the client may no longer be the user with which every connection begins.
	Renamed bool
	// URLLogin is set if every connection begins with the login of the upstream's URL.
	URLLogin bool
	// Multi is set in a transaction, Queued if a command that EXEC depends on was sent in it.
	Multi, Queued bool
	// Watching is set if keys are watched.
	Watching bool
	// Monitoring is set if the connection gets the output of MONITOR.
	Monitoring bool
	// Stream is set if the rest is bytes, not replies.
	Stream bool
	// Quitting is set if the client has sent QUIT.
	Quitting bool

	// These fields are set if the transaction contains such a command.
	queuedSelect, queuedHello, queuedLogin, queuedOdd bool

	subscribed [3]int // by family
	total      int    // channels and patterns, as the upstream counts
}

func newState() State { return State{Proto: 2} }

// Listening reports whether the connection has subscriptions.
func (s *State) Listening() bool { return s.total > 0 || s.subscribed[Shards] > 0 }

// GetsUnsolicited reports whether the connection gets messages of subscriptions or of MONITOR.
func (s *State) GetsUnsolicited() bool { return s.Listening() || s.Monitoring }

// pushes reports whether the type byte distinguishes messages from replies.
func (s *State) pushes() bool { return s.Proto == 3 && !s.ProtoUnknown }

// Restricted reports whether the connection is in RESP2's subscribed mode, which refuses most
// commands.
func (s *State) Restricted() bool { return s.Proto == 2 && s.Listening() }

var (
	errInMulti    = errors.New("the client is in a transaction at the upstream")
	errMonitors   = errors.New("the client uses MONITOR: its output and replies cannot be distinguished")
	errSubscribes = errors.New("the client is subscribed: it gets no replies to other commands")
)

// CanAsk returns an error if the next reply may not answer a command of the proxy's own.
func (s *State) CanAsk() error {
	switch {
	case s.Multi:
		return errInMulti
	case s.Monitoring, s.Stream:
		return errMonitors
	case s.Restricted() && !s.ProtoUnknown: // if it is unknown, the type of the reply to HELLO shows it
		return errSubscribes
	}
	return nil
}

// acknowledged returns the effect that a reply to a SUBSCRIBE or UNSUBSCRIBE confirms, by its first
// word. ok is false for any other word.
func acknowledged(word string) (of effect, ok bool) {
	c := followed.Find([]byte(word))
	if c == nil || c.Name != word {
		return effect{}, false
	}
	of = effects[c.Effect]
	return of, of.kind == Subscribe
}

// reply updates the state by a whole reply. It reports whether that answers the proxy's own
// command.
func (s *State) reply(a *Awaited, r *resp.ReplyScanner) (captured bool) {
	first := a.first()
	if s.outOfBand(first, r) {
		s.message(a, first, r)
		return false
	}
	if first == nil {
		return false
	}
	s.Queued = s.Queued || s.Multi && (first.queues() || failsMulti(r))
	switch first.Kind {
	case Subscribe: // an error, or queued
		s.queuedOdd = s.queuedOdd || r.Begins("+QUEUED")
		a.pop()
		return false
	case OwnCommand:
		captured = true
	default:
		s.answer(*first, r)
	}
	a.done()
	return captured
}

// failsMulti reports whether a reply in a transaction refuses a wrong number of words. Any such
// command makes EXEC fail.
func failsMulti(r *resp.ReplyScanner) bool { return r.Begins("-ERR wrong number of arguments") }

// outOfBand reports whether a reply is a message, or confirms a subscription.
func (s *State) outOfBand(first *Expected, r *resp.ReplyScanner) bool {
	switch {
	case r.IsPush():
		return true
	case s.Monitoring && r.IsMonitored():
		return true
	case r.Kind() != '*' || s.pushes():
		return false
	}
	if first != nil && first.Kind != Subscribe && !s.Listening() {
		return false
	}
	switch word := r.Message(); word {
	case "message", "pmessage", "smessage":
		return true
	default:
		_, ack := acknowledged(word)
		return ack
	}
}

// message handles an out-of-band reply. Only confirmations of subscriptions change the state.
func (s *State) message(a *Awaited, first *Expected, r *resp.ReplyScanner) {
	ack, ok := acknowledged(r.Message())
	if !ok {
		return
	}
	before := s.subscribed[ack.family]
	s.count(ack.family, ack.step, int(r.Last()))
	if first == nil || first.Kind != Subscribe || first.Family != ack.family {
		return
	}
	if first.N < 0 {
		first.N = max(1, before)
	}
	a.done()
}

// count follows the upstream's count of subscriptions. The upstream has one count for channels and
// patterns together, and one for shard channels.
func (s *State) count(f SubscriptionKind, step, upstream int) {
	if f == Shards {
		s.subscribed[Shards] = upstream
		return
	}
	if upstream != s.total {
		s.subscribed[f] += step
	}
	s.total = upstream
}

// answer updates the state by the reply to a command.
func (s *State) answer(of Expected, r *resp.ReplyScanner) {
	ok, queued := r.Begins("+OK"), r.Begins("+QUEUED")
	switch of.Kind {
	case Hello:
		s.Login(of.Arg == 1, queued)
		s.hello(r)
	case Auth:
		s.Login(true, queued)
	case Reset:
		if r.Begins("+RESET") {
			s.reset()
		}
	case Select:
		s.queuedSelect = s.queuedSelect || queued
		if ok {
			s.DB, s.DBUnknown = of.Arg, false
		}
	case Multi:
		s.Multi = s.Multi || ok
	case Watch:
		s.Watching = s.Watching || ok
	case Unwatch:
		s.Watching = s.Watching && !ok
	case Exec:
		s.exec(r)
	case Discard:
		if ok {
			s.EndMulti()
		}
	case Monitor:
		s.Monitoring = s.Monitoring || ok
		s.queuedOdd = s.queuedOdd || queued
	case Untrackable:
		s.queuedOdd = s.queuedOdd || queued
	case Quit:
		s.Quitting = s.Quitting || ok && of.Arg == 1
	}
}

// Unanswered updates the state for a command that got no reply, and so may have succeeded or
// failed.
func (s *State) Unanswered(of Expected) {
	switch of.Kind {
	case Hello:
		s.ProtoUnknown = true
		s.DisableReplies()
		s.Login(of.Arg == 1, false)
	case Auth:
		s.Login(true, false)
	case Select:
		s.DBUnknown = true
	case Reset:
		if !s.Stream {
			s.reset()
		}
	case Watch:
		s.Watching = true
	case Subscribe: // is confirmed nevertheless, unless refused
		if !s.pushes() {
			s.Stream, s.total = true, max(1, s.total)
		}
	case Multi, Exec, Discard, Monitor, Sync:
		s.Stream = true // replies can no longer be followed
	}
}

// DisableReplies is called when the client turns replies off. If messages look like replies, the
// stream can no longer be followed.
func (s *State) DisableReplies() { s.Stream = s.Stream || s.Monitoring || s.Listening() && !s.pushes() }

func (s *State) hello(r *resp.ReplyScanner) {
	switch r.Kind() {
	case '%':
		s.Proto = 3
	case '*':
		s.Proto = 2
	default:
		s.queuedHello = s.queuedHello || r.Begins("+QUEUED")
		return
	}
	s.ProtoUnknown = false
}

// Login records an AUTH, or a HELLO with AUTH, that may have changed the user. The reply does not
// matter: a HELLO that fails may already have logged in.
func (s *State) Login(tried, queued bool) {
	switch {
	case tried && queued:
		s.queuedLogin = true
	case tried:
		s.Identity++
		s.Renamed = true
	}
}

// reset sets the state after RESET: that of a new connection, but without the login of the URL.
func (s *State) reset() {
	identity, urlLogin := s.Identity+1, s.URLLogin
	*s = newState()
	s.Identity, s.Renamed, s.URLLogin = identity, urlLogin, urlLogin
}

// exec ends the transaction, unless EXEC itself was refused.
func (s *State) exec(r *resp.ReplyScanner) {
	if r.IsError() && !r.Begins("-EXECABORT") {
		return
	}
	if done := !r.IsError() && !r.IsNull(); done {
		s.DBUnknown = s.DBUnknown || s.queuedSelect
		s.ProtoUnknown = s.ProtoUnknown || s.queuedHello
	}
	s.Login(s.queuedLogin, false)
	s.EndMulti()
}

// EndMulti records that the transaction has ended.
func (s *State) EndMulti() {
	s.Multi, s.Watching, s.Queued = false, false, false
	s.queuedSelect, s.queuedHello, s.queuedLogin, s.queuedOdd = false, false, false, false
}
