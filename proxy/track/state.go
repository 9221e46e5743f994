package track

import (
	"errors"

	"redlock-proxy/internal/resp"
)

// State is what is known of a connection to the upstream.
type State struct {
	// Proto is the protocol, DB the selected database.
	Proto, DB int
	// ProtoUnknown and DBUnknown: they may have changed, and no answer told.
	ProtoUnknown, DBUnknown bool
	// Identity counts how often the client may have become another user.
	Identity uint64
	// Renamed: it may not be the user any more that every connection begins with.
	Renamed bool
	// URLLogin: every connection begins with a login that the client does not know.
	URLLogin bool
	// Multi: a transaction has begun. Queued: something was sent in it that its EXEC depends on.
	Multi, Queued bool
	// Watching: keys are watched.
	Watching bool
	// Monitoring: the connection gets what MONITOR tells.
	Monitoring bool
	// Stream: the rest is bytes, not replies.
	Stream bool
	// Quitting: the client has taken its leave.
	Quitting bool

	// queuedSelect, queuedHello, queuedLogin and queuedOdd: the transaction holds such a
	// command.
	queuedSelect, queuedHello, queuedLogin, queuedOdd bool

	subscribed [3]int // by family
	total      int    // channels and patterns, as the upstream counts
}

func newState() State { return State{Proto: 2} }

// Listening reports whether the connection takes messages.
func (s *State) Listening() bool { return s.total > 0 || s.subscribed[Shards] > 0 }

// Unasked reports whether more comes than answers and pushes.
func (s *State) Unasked() bool { return s.Listening() || s.Monitoring }

// pushes reports whether messages are told from replies by their kind.
func (s *State) pushes() bool { return s.Proto == 3 && !s.ProtoUnknown }

// Restricted reports whether the upstream takes hardly anything but SUBSCRIBE and
// its kin.
func (s *State) Restricted() bool { return s.Proto == 2 && s.Listening() }

var (
	errInMulti    = errors.New("the client is in a transaction at the upstream")
	errMonitors   = errors.New("the client monitors, so that answers cannot be distinguished from what it gets")
	errSubscribes = errors.New("the client takes messages, and no answers to anything else")
)

// CanAsk says why the next answer would not be that to a question of the proxy's own; nil where
// it would be.
func (s *State) CanAsk() error {
	switch {
	case s.Multi:
		return errInMulti
	case s.Monitoring, s.Stream:
		return errMonitors
	case s.Restricted() && !s.ProtoUnknown: // else HELLO tells, with a map or with the refusal
		return errSubscribes
	}
	return nil
}

// acknowledged gives the effect that an answer to SUBSCRIBE or its kin tells of, by its first word;
// ok is false for any other word.
func acknowledged(word string) (of effect, ok bool) {
	c := followed.Find([]byte(word))
	if c == nil || c.Name != word {
		return effect{}, false
	}
	of = effects[c.Effect]
	return of, of.kind == Subscribe
}

// reply learns from a whole reply. It reports whether the reply is one that the
// proxy asked for itself.
func (s *State) reply(a *Awaited, r *resp.ReplyScanner) (captured bool) {
	first := a.first()
	if s.outOfBand(first, r) {
		s.message(a, first, r)
		return false
	}
	if first == nil {
		return false
	}
	s.Queued = s.Queued || s.Multi && (first.queues() || spoils(r))
	switch first.Kind {
	case Subscribe: // an error, or queued
		s.queuedOdd = s.queuedOdd || r.Begins("+QUEUED")
		a.pop()
		return false
	case Capture:
		captured = true
	default:
		s.answer(*first, r)
	}
	a.done()
	return captured
}

// spoils reports whether a reply in a transaction is that of a command with too few or too many
// words: the EXEC is refused then, whichever command it was.
func spoils(r *resp.ReplyScanner) bool { return r.Begins("-ERR wrong number of arguments") }

// outOfBand tells messages and the answers to SUBSCRIBE from ordinary replies.
func (s *State) outOfBand(first *Slot, r *resp.ReplyScanner) bool {
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

// message takes what came out of band; only answers to SUBSCRIBE matter.
func (s *State) message(a *Awaited, first *Slot, r *resp.ReplyScanner) {
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

// count follows the upstream's count of subscriptions: one for channels and
// patterns together, one for shard channels.
func (s *State) count(f Family, step, upstream int) {
	if f == Shards {
		s.subscribed[Shards] = upstream
		return
	}
	if upstream != s.total {
		s.subscribed[f] += step
	}
	s.total = upstream
}

// answer learns from the answer to a command.
func (s *State) answer(of Slot, r *resp.ReplyScanner) {
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
	case Odd:
		s.queuedOdd = s.queuedOdd || queued
	case Quit:
		s.Quitting = s.Quitting || ok && of.Arg == 1
	}
}

// Unheard is answer where the client wanted no answer, which may have been any.
func (s *State) Unheard(of Slot) {
	switch of.Kind {
	case Hello:
		s.ProtoUnknown = true
		s.Hush()
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
	case Subscribe: // is confirmed all the same, if it is not refused
		if !s.pushes() {
			s.Stream, s.total = true, max(1, s.total)
		}
	case Multi, Exec, Discard, Monitor, Sync:
		s.Stream = true // nothing can be told from answers any more
	}
}

// Hush is told that the client asks for silence. Where messages look like replies, it is not known
// any more which of them comes.
func (s *State) Hush() { s.Stream = s.Stream || s.Monitoring || s.Listening() && !s.pushes() }

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

// Login takes an AUTH, or a HELLO with one, for one that may have made the client another
// user, whatever the answer was: a HELLO that fails may have done it first.
func (s *State) Login(tried, queued bool) {
	switch {
	case tried && queued:
		s.queuedLogin = true
	case tried:
		s.Identity++
		s.Renamed = true
	}
}

// reset is what RESET leaves: the user of a new connection, but for a login that this
// one began with.
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

// EndMulti is told that the transaction is over.
func (s *State) EndMulti() {
	s.Multi, s.Watching, s.Queued = false, false, false
	s.queuedSelect, s.queuedHello, s.queuedLogin, s.queuedOdd = false, false, false, false
}
