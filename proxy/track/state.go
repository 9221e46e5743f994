package track

import (
	"errors"
	"slices"

	"redlock-proxy/internal/resp"
)

// State holds the known state of a connection to the upstream.
type State struct {
	// Proto is the protocol, DB the selected database.
	Proto, DB int
	// ProtoUnknown and DBUnknown are set if a command without a reply may have changed Proto or DB.
	ProtoUnknown, DBUnknown bool
	// UserChanges counts how often the client may have become another user.
	UserChanges uint64
	// UserChanged is set if the client may no longer be the user with which every connection
	// begins.
	UserChanged bool
	// URLLogin is set if every connection begins with the login of the upstream's URL.
	URLLogin bool
	// Multi is set in a transaction, Queued if the transaction got a command that EXEC depends on.
	Multi, Queued bool
	// Watching is set if keys are watched.
	Watching bool
	// Monitoring is set if the connection gets the output of MONITOR.
	Monitoring bool
	// Stream is set if the following bytes are not replies, or cannot be matched with commands.
	// Replicating is set, too, if they are the stream of a replica.
	Stream, Replicating bool
	// Quitting is set if the upstream has accepted the client's QUIT.
	Quitting bool

	// Each of these fields is set if the transaction contains a command of the kind in the field's
	// name.
	queuedSelect, queuedHello, queuedLogin, queuedUntrackable bool

	subscriptionsByKind [3]int // indexed by SubscriptionKind
	subscriptionCount   int    // channels and patterns, as the upstream counts them
}

func newState() State { return State{Proto: 2} }

// HasSubscriptions reports whether the connection has subscriptions.
func (s *State) HasSubscriptions() bool {
	return s.subscriptionCount > 0 || s.subscriptionsByKind[Shards] > 0
}

// GetsMessages reports whether the connection gets messages of subscriptions or of MONITOR.
func (s *State) GetsMessages() bool { return s.HasSubscriptions() || s.Monitoring }

// pushes reports whether messages differ from replies by their type byte.
func (s *State) pushes() bool { return s.Proto == 3 && !s.ProtoUnknown }

// Restricted reports whether the connection is in RESP2's subscribed mode, which refuses most
// commands.
func (s *State) Restricted() bool { return s.Proto == 2 && s.HasSubscriptions() }

var (
	errInMulti    = errors.New("the client is in a transaction at the upstream")
	errMonitoring = errors.New("the client uses MONITOR: its output and replies cannot be distinguished")
	errSubscribed = errors.New("the client is subscribed: it gets no replies to other commands")
)

// CheckCanAsk returns the reason why the proxy cannot send internal commands; nil if it can send
// them.
func (s *State) CheckCanAsk() error {
	switch {
	case s.Multi:
		return errInMulti
	case s.Monitoring, s.Stream:
		return errMonitoring
	// If the protocol is unknown, HELLO can be sent: the type of its reply shows the protocol.
	case s.Restricted() && !s.ProtoUnknown:
		return errSubscribed
	}
	return nil
}

// confirmedEffect returns the effect that a reply to a SUBSCRIBE or UNSUBSCRIBE confirms, by its
// first word. ok is false for any other word.
func confirmedEffect(word string) (eff effect, ok bool) {
	c := stateCommands.Find([]byte(word))
	if c == nil || c.Name != word {
		return effect{}, false
	}
	eff = effects[c.Effect]
	return eff, eff.kind == Subscribe
}

// handleReply updates the state from a whole reply. It reports whether the reply answers an
// internal command.
func (s *State) handleReply(a *AwaitedReplies, r *resp.ReplyScanner) (isInternal bool) {
	first := a.first()
	if s.isOutOfBand(first, r) {
		s.handleMessage(a, first, r)
		return false
	}
	if first == nil {
		return false
	}
	s.Queued = s.Queued || s.Multi && (first.queues() || failsMulti(r))
	switch first.Kind {
	case Subscribe: // the reply is an error, or QUEUED
		s.queuedUntrackable = s.queuedUntrackable || r.Begins("+QUEUED")
		a.pop()
		return false
	case InternalCommand:
		isInternal = true
	default:
		s.applyReply(*first, r)
	}
	a.removeReply()
	return isInternal
}

// failsMulti reports whether a reply in a transaction refuses a wrong number of words. Such a
// refusal makes EXEC fail.
func failsMulti(r *resp.ReplyScanner) bool { return r.Begins("-ERR wrong number of arguments") }

// isOutOfBand reports whether a reply is a message, or confirms a subscription.
func (s *State) isOutOfBand(first *ExpectedReply, r *resp.ReplyScanner) bool {
	switch {
	case r.IsPush():
		return true
	case s.Monitoring && r.IsMonitorLine():
		return true
	case r.Kind() != '*' || s.pushes():
		return false
	}
	if first != nil && first.Kind != Subscribe && !s.HasSubscriptions() {
		return false
	}
	switch word := r.Message(); word {
	case "message", "pmessage", "smessage":
		return true
	default:
		_, ack := confirmedEffect(word)
		return ack
	}
}

// handleMessage handles an out-of-band reply. Only confirmations of subscriptions change the state.
func (s *State) handleMessage(a *AwaitedReplies, first *ExpectedReply, r *resp.ReplyScanner) {
	ack, ok := confirmedEffect(r.Message())
	if !ok {
		return
	}
	before := s.subscriptionsByKind[ack.subscriptionKind]
	s.updateSubscriptions(ack.subscriptionKind, ack.delta, int(r.LastInt()))
	if first == nil || first.Kind != Subscribe || first.SubscriptionKind != ack.subscriptionKind {
		return
	}
	if first.N < 0 {
		first.N = max(1, before)
	}
	a.removeReply()
}

// updateSubscriptions updates the number of subscriptions by the upstream's count. The upstream has
// one count for channels and patterns together, and one for shard channels.
func (s *State) updateSubscriptions(f SubscriptionKind, delta, count int) {
	if f == Shards {
		s.subscriptionsByKind[Shards] = count
		return
	}
	if count != s.subscriptionCount {
		s.subscriptionsByKind[f] += delta
	}
	s.subscriptionCount = count
}

// applyReply updates the state from the reply to a command.
func (s *State) applyReply(expected ExpectedReply, r *resp.ReplyScanner) {
	ok, queued := r.Begins("+OK"), r.Begins("+QUEUED")
	switch expected.Kind {
	case Hello:
		s.RecordLogin(expected.Arg == 1, queued)
		s.applyHello(r)
	case Auth:
		s.RecordLogin(true, queued)
	case Reset:
		if r.Begins("+RESET") {
			s.reset()
		}
	case Select:
		s.queuedSelect = s.queuedSelect || queued
		if ok {
			s.DB, s.DBUnknown = expected.Arg, false
		}
	case Multi:
		s.Multi = s.Multi || ok
	case Watch:
		s.Watching = s.Watching || ok
	case Unwatch:
		s.Watching = s.Watching && !ok
	case Exec:
		s.applyExec(r)
	case Discard:
		if ok {
			s.EndMulti()
		}
	case Monitor:
		s.Monitoring = s.Monitoring || ok
		s.queuedUntrackable = s.queuedUntrackable || queued
	case Untrackable:
		s.queuedUntrackable = s.queuedUntrackable || queued
	case Quit:
		s.Quitting = s.Quitting || ok && expected.Arg == 1
	}
}

// RecordReplyless updates the state for a command that got no reply, and so may have succeeded or
// failed.
func (s *State) RecordReplyless(expected ExpectedReply) {
	switch expected.Kind {
	case Hello:
		s.ProtoUnknown = true
		s.DisableReplies()
		s.RecordLogin(expected.Arg == 1, false)
	case Auth:
		s.RecordLogin(true, false)
	case Select:
		s.DBUnknown = true
	case Reset:
		if !s.Stream {
			s.reset()
		}
	case Watch:
		s.Watching = true
	case Subscribe: // the upstream replies even with replies off
		if !s.pushes() {
			s.Stream, s.subscriptionCount = true, max(1, s.subscriptionCount)
		}
	case Multi, Exec, Discard, Monitor, Sync:
		s.Stream = true // replies can no longer be tracked
	}
}

// DisableReplies records that the client has turned replies off. If messages look like replies, the
// replies can no longer be tracked.
func (s *State) DisableReplies() {
	s.Stream = s.Stream || s.Monitoring || s.HasSubscriptions() && !s.pushes()
}

func (s *State) applyHello(r *resp.ReplyScanner) {
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

// RecordLogin records an AUTH, or a HELLO with AUTH, that may have changed the user. The reply does
// not matter: a HELLO that fails may already have logged in.
func (s *State) RecordLogin(logsIn, queued bool) {
	switch {
	case logsIn && queued:
		s.queuedLogin = true
	case logsIn:
		s.UserChanges++
		s.UserChanged = true
	}
}

// reset sets the state after RESET: the state of a new connection, but without the login of the
// URL.
func (s *State) reset() {
	identity, urlLogin := s.UserChanges+1, s.URLLogin
	*s = newState()
	s.UserChanges, s.UserChanged, s.URLLogin = identity, urlLogin, urlLogin
}

// execDiscards lists the errors to EXEC with which the transaction ends: EXECABORT, and the errors
// of a cluster's node that does not serve the keys.
var execDiscards = []string{"-EXECABORT", "-MOVED ", "-ASK ", "-TRYAGAIN ", "-CROSSSLOT ", "-CLUSTERDOWN "}

// applyExec ends the transaction, unless EXEC itself was refused.
func (s *State) applyExec(r *resp.ReplyScanner) {
	if r.IsError() && !slices.ContainsFunc(execDiscards, r.Begins) {
		return
	}
	if executed := !r.IsError() && !r.IsNull(); executed {
		s.DBUnknown = s.DBUnknown || s.queuedSelect
		s.ProtoUnknown = s.ProtoUnknown || s.queuedHello
	}
	s.RecordLogin(s.queuedLogin, false)
	s.EndMulti()
}

// EndMulti records that the transaction has ended.
func (s *State) EndMulti() {
	s.Multi, s.Watching, s.Queued = false, false, false
	s.queuedSelect, s.queuedHello, s.queuedLogin, s.queuedUntrackable = false, false, false, false
}
